/** Reports the progress of a long command on standard error. */
import type { Terminal, TerminalOutput } from './terminal.ts';

const terminalEveryMs = 200;
/** Without a terminal each report is a line of its own, so there are fewer. */
const lineEveryMs = 10_000;

export interface Progress {
  /** May be called at any rate. */
  report(done: number): void;
  finish(): void;
}

/** @param total the number of items; `undefined` if it is unknown. */
export function startProgress(
  { stderr }: Terminal,
  noun: string,
  total: number | undefined,
): Progress {
  const started = performance.now();
  const everyMs = stderr.isTTY ? terminalEveryMs : lineEveryMs;
  let last = started;
  const textOf = (done: number, now: number) => {
    const rate = Math.round(done / ((now - started) / 1000));
    const of = total === undefined ? '' : ` of ${grouped(total)}`;
    const left = total === undefined ? '' : `, ${Math.ceil((total - done) / rate)} s left`;
    const bar = stderr.isTTY && total !== undefined ? `${barOf(done / total)} ` : '';
    return `${bar}${grouped(done)}${of} ${noun}, ${grouped(rate)} a second${left}`;
  };
  return {
    report: (done) => {
      const now = performance.now();
      if (now - last < everyMs || done === 0) return;
      last = now;
      const text = textOf(done, now);
      if (stderr.isTTY) redraw(stderr, text);
      else stderr.write(`${text}\n`);
    },
    finish: () => {
      if (stderr.isTTY) redraw(stderr, '');
    },
  };
}

/** Writes over the line of the cursor. Bytes are not made visible; see `shown-terminal.ts`. */
export function redraw(output: TerminalOutput, text: string): void {
  output.write(Buffer.from(`\r${text}\u001b[K`));
}

const barLength = 24;

function barOf(part: number): string {
  const full = Math.min(barLength, Math.round(part * barLength));
  return `[${'#'.repeat(full)}${'-'.repeat(barLength - full)}]`;
}

/** `1,234,567` */
export function grouped(count: number): string {
  return count.toLocaleString('en-US');
}

/** The count with its noun, such as `1 row`, `2,000 rows` and `0 entries`. */
export function counted(count: number, noun: string): string {
  const plural = /[^aeiou]y$/.test(noun) ? `${noun.slice(0, -1)}ies` : `${noun}s`;
  return `${grouped(count)} ${count === 1 ? noun : plural}`;
}
