/** A plot over time, in the colors of the page. */
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { isDark, theme } from '../core/theme.ts';

export interface Line {
  readonly name: string;
  /** The name of a color of the page, such as `--accent`. */
  readonly color: string;
  readonly values: readonly number[];
}

interface PlotProps {
  readonly label: string;
  /** In seconds. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
}

const height = 190;

export function Plot({ label, times, lines }: PlotProps) {
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
    const options: uPlot.Options = {
      width: element.clientWidth,
      height,
      legend: { show: false },
      cursor: { y: false },
      axes: [axis, { ...axis, size: 44, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] }],
      scales: { y: { range: (_plot, _min, max) => [0, Math.max(4, max)] } },
      series: [
        {},
        ...lines.map((line) => ({
          label: line.name,
          stroke: color(line.color),
          width: 2,
          fill: `color-mix(in srgb, ${color(line.color)} 12%, transparent)`,
          points: { show: false },
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
  const sums = lines.map(({ name, values }) => `${name}: ${values.reduce((a, b) => a + b, 0)}`);
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
      <div class="plot" ref={parent} role="img" aria-label={`${label}. ${sums.join(', ')}`} />
    </figure>
  );
}
