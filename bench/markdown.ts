/** Numbers to text: medians, and tables that read well in a terminal and in Markdown. */

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const low = sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
  const high = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  return (low + high) / 2;
}

/** A number with its digits after the point; empty for none. */
export function digits(value: number, count = 0): string {
  if (!Number.isFinite(value)) return '';
  const [whole = '', fraction] = value.toFixed(count).split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

export interface Column<T> {
  readonly title: string;
  readonly cell: (row: T) => string;
}

/** The first column is text, the others are numbers. Columns without any content are left out. */
export function table<T>(columns: readonly Column<T>[], rows: readonly T[]): string {
  const filled = columns
    .map(({ title, cell }) => [title, ...rows.map(cell)])
    .filter(([, ...cells]) => cells.some((cell) => cell !== ''));
  const padded = filled.map((cells, column) => {
    const width = Math.max(...cells.map((cell) => cell.length));
    const [title = '', ...rest] = cells.map((cell) =>
      column === 0 ? cell.padEnd(width) : cell.padStart(width),
    );
    const rule = column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`;
    return [title, rule, ...rest];
  });
  const lines = Array.from({ length: rows.length + 2 }, (_, line) =>
    padded.map((cells) => cells[line]).join(' | '),
  );
  return lines.map((line) => `| ${line} |`).join('\n');
}
