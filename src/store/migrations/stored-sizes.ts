/**
 * How many stored bytes a row counts as, and for which application. The writer of the embedded engine computes it
 * from the values that it writes, and SQL from the rows that are stored: both come from one table.
 */

type StoredValue = string | number | Uint8Array | null;

interface CountedTable {
  /** What a row takes besides its values, for its indexes. */
  readonly fixed: number;
  /** The columns whose bytes count. */
  readonly lengths: readonly string[];
  /** The bytes of an index for each quotation mark in a column of JSON, which no engine has to parse for that. */
  readonly quotationMarks?: Readonly<Record<string, number>>;
  /** The columns that name the application: the first that is not null. Where all are null, the row does not count. */
  readonly owner: readonly string[];
}

/** See docs/time-and-limits.md, which promises these numbers. To change them needs a migration that counts again. */
export const countedTables = {
  tokens: {
    fixed: 400,
    lengths: [
      'token_id',
      'data',
      'mask',
      'metadata',
      'search_indexes',
      'type',
      'container',
      'fingerprint',
      'fingerprint_expression',
    ],
    // An expression has two quotation marks, a pair of metadata four.
    quotationMarks: { search_indexes: 80, metadata: 40 },
    owner: ['created_by'],
  },
  token_intents: { fixed: 250, lengths: ['data'], owner: ['created_by'] },
  replies: { fixed: 250, lengths: ['reply', 'route'], owner: ['charged_to', 'application_id'] },
  sessions: { fixed: 700, lengths: ['permissions', 'rules'], owner: ['application_id'] },
  // With its deliveries.
  events: { fixed: 600, lengths: ['body'], owner: ['charged_to'] },
} as const satisfies Record<string, CountedTable>;

export type CountedName = keyof typeof countedTables;

export function isCounted(table: string): table is CountedName {
  return Object.hasOwn(countedTables, table);
}

/** SQL for the bytes of a stored row, on both engines. */
export function sizeSql(table: CountedName, row: string): string {
  const { fixed, lengths, quotationMarks = {} }: CountedTable = countedTables[table];
  const length = (column: string) => `coalesce(octet_length(${row}.${column}), 0)`;
  const quotes = (column: string) => {
    const others = `octet_length(replace(${row}.${column}, '"', ''))`;
    return `coalesce(octet_length(${row}.${column}) - ${others}, 0)`;
  };
  return [
    fixed,
    ...lengths.map(length),
    ...Object.entries(quotationMarks).map(([column, bytes]) => `${bytes} * ${quotes(column)}`),
  ].join(' + ');
}

/** The tenant and the application of a row in SQL, as `stored_bytes` names them. */
export interface CountedOwner {
  readonly tenant: string;
  readonly application: string;
  /** False of a row that the vault cannot have written, which is not counted. */
  readonly isCounted?: string;
}

const uuidForm = '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$';

/** Sessions name both by texts, of which `stored-form.ts` makes the stored forms. */
export function ownerOnPostgres(table: CountedName, row: string): CountedOwner {
  if (table !== 'sessions') {
    return { tenant: `${row}.tenant_id`, application: ownerSql(table, row) };
  }
  return {
    tenant: `('x' || substr(${row}.tenant_id, 1, 8))::bit(32)::int`,
    application: `decode('01' || replace(${row}.application_id, '-', ''), 'hex')`,
    isCounted: `${row}.tenant_id ~ '${uuidForm}' and ${row}.application_id ~ '${uuidForm}'`,
  };
}

/** SQL for the application that the row counts for, in the form of the table's own columns. */
export function ownerSql(table: CountedName, row: string): string {
  const columns = countedTables[table].owner.map((column) => `${row}.${column}`);
  return columns.length === 1 ? String(columns[0]) : `coalesce(${columns.join(', ')})`;
}

/** The same of values in their stored form, by the columns that they are given for. */
export function sizeReader(
  table: CountedName,
  columns: readonly string[],
): (stored: readonly StoredValue[]) => number {
  const { fixed, lengths, quotationMarks = {} }: CountedTable = countedTables[table];
  const measured = lengths.map((column) => columns.indexOf(column));
  const marked = Object.entries(quotationMarks).map(
    ([column, bytes]) => [columns.indexOf(column), bytes] as const,
  );
  return (stored) => {
    let size = fixed;
    for (const place of measured) size += lengthOf(stored[place] ?? null);
    for (const [place, bytes] of marked) size += bytes * quotationMarksIn(stored[place] ?? null);
    return size;
  };
}

function lengthOf(value: StoredValue): number {
  if (value === null) return 0;
  return value instanceof Uint8Array ? value.byteLength : Buffer.byteLength(String(value));
}

function quotationMarksIn(value: StoredValue): number {
  if (typeof value !== 'string') return 0;
  let count = 0;
  for (let at = value.indexOf('"'); at >= 0; at = value.indexOf('"', at + 1)) count++;
  return count;
}
