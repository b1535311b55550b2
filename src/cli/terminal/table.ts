/** Lists: a table for people, a line of JSON for each row for programs. */
import type { Flags } from './command.ts';
import type { Terminal } from './terminal.ts';
import { visible } from './visible.ts';

/** The text of a row under each heading. */
export type Columns<R> = Readonly<Record<string, (row: R) => string>>;

interface List<R> {
  readonly rows: readonly R[];
  readonly json: (row: R) => object;
  readonly columns: Columns<R>;
}

export function printList<R>(
  { stdout }: Terminal,
  flags: Flags,
  { rows, json, columns }: List<R>,
): void {
  const lines =
    flags['json'] === true ? rows.map((row) => JSON.stringify(json(row))) : table(rows, columns);
  stdout.write(lines.map((line) => `${line}\n`).join(''));
}

const gap = '  ';

function table<R>(rows: readonly R[], columns: Columns<R>): string[] {
  const headings = Object.keys(columns).map((name) => name.toUpperCase());
  const cells = rows.map((row) => Object.values(columns).map((textOf) => visible(textOf(row))));
  const widths = headings.map((heading, index) =>
    Math.max(heading.length, ...cells.map((line) => line[index]?.length ?? 0)),
  );
  return [headings, ...cells].map((line) =>
    line
      .map((text, index) => text.padEnd(widths[index] ?? 0))
      .join(gap)
      .trimEnd(),
  );
}
