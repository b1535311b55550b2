/** A plot over time, in the colors of the page. */
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { isDark, theme } from '../core/theme.ts';

export interface Line {
  readonly name: string;
  /** The name of a color of the page, such as `--accent`. */
  readonly color: string;
  /** Null where there is nothing to show. */
  readonly values: readonly (number | null)[];
}

interface PlotProps {
  readonly label: string;
  /** What the lines say, for whoever does not see them. */
  readonly summary: string;
  /** In seconds. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
}

/** Counts are whole numbers. */
const steps = [1, 2, 5]
  .flatMap((one) => [one, 10 * one, 100 * one, 1e3 * one, 1e4 * one, 1e5 * one])
  .sort((a, b) => a - b);

const height = 170;

const dayMs = 86_400_000;
const clock = new Intl.DateTimeFormat('en', {
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
});
const date = new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric' });

/** Dates where a day is one point, and times otherwise. */
function timeFormat([first = 0, second = 0]: readonly number[]): (seconds: number) => string {
  const format = (second - first) * 1000 >= dayMs ? date : clock;
  return (seconds) => format.format(new Date(seconds * 1000));
}

export function Plot({ label, summary, times, lines }: PlotProps) {
  const parent = useRef<HTMLDivElement>(null);
  const shown = JSON.stringify([times, lines, theme.value, isDark()]);
  useEffect(() => {
    const element = parent.current;
    if (!element) return undefined;
    const styles = getComputedStyle(document.documentElement);
    const color = (name: string) => styles.getPropertyValue(name).trim();
    const axis = {
      stroke: color('--muted'),
      grid: { stroke: color('--line'), width: 1 },
      ticks: { show: false },
      font: '11px system-ui',
    };
    const format = timeFormat(times);
    const options: uPlot.Options = {
      width: element.clientWidth,
      height,
      legend: { show: false },
      cursor: { y: false },
      axes: [
        { ...axis, size: 26, gap: 6, values: (_plot, splits) => splits.map(format) },
        { ...axis, size: 44, incrs: steps },
      ],
      scales: { y: { range: (_plot, _min, max) => [0, Math.max(4, max)] } },
      series: [
        {},
        ...lines.map(({ values, ...line }) => ({
          label: line.name,
          stroke: color(line.color),
          width: 2,
          fill: `color-mix(in srgb, ${color(line.color)} 12%, transparent)`,
          // A line needs two.
          points: { show: values.filter((value) => value !== null).length === 1, size: 6 },
          spanGaps: true,
        })),
      ],
    };
    const data = [[...times], ...lines.map(({ values }) => [...values])] as uPlot.AlignedData;
    const plot = new uPlot(options, data, element);
    const resized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
  }, [shown]);
  return (
    <figure>
      <div class="plot-legend">
        {lines.map(({ name, color }) => (
          <span key={name}>
            <i style={{ background: `var(${color})` }} />
            {name}
          </span>
        ))}
      </div>
      <div class="plot" ref={parent} role="img" aria-label={`${label}. ${summary}`} />
    </figure>
  );
}
