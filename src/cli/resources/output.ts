/** What a command for a resource prints: a table or a list of attributes for people, JSON for programs. */
import { isObject, type Json } from '../../base/json.ts';
import { selectJson } from '../../expressions/select-json.ts';
import { type Flags, jsonFlag, UsageError } from '../terminal/command.ts';
import { printList } from '../terminal/table.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { visible } from '../terminal/visible.ts';

export const outputFlags = {
  json: jsonFlag,
  query: {
    kind: 'string',
    value: 'JSONPATH',
    meaning: 'print only what this JSONPath (RFC 9535) selects, a line each',
  },
} as const;

export function printResponse(
  terminal: Terminal,
  flags: Flags,
  {
    response,
    columns,
  }: { readonly response: unknown; readonly columns: readonly string[] | undefined },
): void {
  const { query } = flags;
  if (response === undefined) return;
  if (typeof query === 'string') printSelected(terminal, query, response);
  else if (flags['json'] === true) terminal.stdout.write(`${JSON.stringify(response)}\n`);
  else if (columns) printRows(terminal, flags, response, columns);
  else
    terminal.stdout.write(
      attributesOf(response)
        .map((line) => `${line}\n`)
        .join(''),
    );
}

function printSelected({ stdout }: Terminal, path: string, response: unknown): void {
  const values = selectJson(path, response as Json);
  if (values === undefined)
    throw new UsageError('--query must be a JSONPath, such as $.data[*].id');
  stdout.write(values.map((value) => `${textOf(value)}\n`).join(''));
}

function printRows(
  terminal: Terminal,
  flags: Flags,
  response: unknown,
  columns: readonly string[],
): void {
  const list = isObject(response) ? response['data'] : response;
  const rows = (Array.isArray(list) ? list : []).filter(isObject);
  printList(terminal, flags, {
    rows,
    json: (row) => row,
    columns: Object.fromEntries(
      columns.map((name) => [name, (row: Readonly<Record<string, unknown>>) => textOf(row[name])]),
    ),
  });
  const { next, total_items } =
    isObject(response) && isObject(response['pagination']) ? response['pagination'] : {};
  if (typeof next === 'string') terminal.stderr.write(`More: --start ${visible(next)}\n`);
  else if (typeof total_items === 'number' && total_items > rows.length) {
    terminal.stderr.write(`${rows.length} of ${total_items}; more with --page and --size\n`);
  }
}

function attributesOf(response: unknown): readonly string[] {
  if (!isObject(response)) return [textOf(response)];
  const width = Math.max(...Object.keys(response).map((name) => name.length));
  return Object.entries(response).map(
    ([name, value]) => `${visible(name).padEnd(width)}  ${textOf(value)}`,
  );
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  return visible(typeof value === 'string' ? value : JSON.stringify(value));
}
