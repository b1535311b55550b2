/**
 * Amendments: updates of some columns of a row that otherwise never changes, if other columns have expected values.
 */
import type { Key, Row, TableShape } from './tables.ts';

interface AmendmentSpec {
  readonly set: readonly string[];
  /** The columns of which an amendment also gives the expected value. Any other value is a conflict. */
  readonly was: readonly string[];
}

/** Cheaper than replacing a row: an event keeps its body, and rows need no version. */
const amendments = {
  events: { set: ['sequence', 'proof'], was: ['sequence'] },
  event_sequences: { set: ['last', 'ended_at'], was: ['last'] },
  deliveries: { set: ['state', 'due_at', 'attempts'], was: ['state', 'due_at'] },
  leases: { set: ['holder', 'until'], was: ['holder', 'until'] },
  vault_keys: { set: ['private_key'], was: ['private_key'] },
} as const satisfies Record<string, AmendmentSpec>;

export type AmendedTable = keyof typeof amendments;

type ColumnsSetBy<T extends AmendedTable> = (typeof amendments)[T]['set'][number] & keyof Row<T>;
type WasBy<T extends AmendedTable> = (typeof amendments)[T]['was'][number] & keyof Row<T> & string;

/** The expected values of columns have their names after `was_`. */
export type Amendment<T extends AmendedTable> = Key<T> &
  Pick<Row<T>, ColumnsSetBy<T>> & { readonly [C in WasBy<T> as `was_${C}`]: Row<T>[C] };

const before = 'was_';

/** No columns for a table that is never amended. */
export function amendedColumns({ name, key }: TableShape): readonly string[] {
  const spec = specOf(name);
  return spec ? [...key, ...spec.set, ...spec.was.map((column) => before + column)] : [];
}

/** The columns to set, and the columns with an expected value, each with the name of its value. */
export function amendedParts(name: string): readonly {
  readonly column: string;
  readonly value: string;
  readonly isCondition: boolean;
}[] {
  const { set, was } = specOf(name) ?? { set: [], was: [] };
  return [
    ...set.map((column) => ({ column, value: column, isCondition: false })),
    ...was.map((column) => ({ column, value: before + column, isCondition: true })),
  ];
}

/** The column to which a value belongs. */
export function columnOfValue(value: string): string {
  return value.startsWith(before) ? value.slice(before.length) : value;
}

function specOf(name: string): AmendmentSpec | undefined {
  return (amendments as Readonly<Record<string, AmendmentSpec>>)[name];
}
