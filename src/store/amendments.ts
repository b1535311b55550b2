/** What is amended in rows that otherwise stay as they were made: some columns, where others are as they were. */
import type { Key, Row, TableShape } from './tables.ts';

interface AmendmentSpec {
  readonly set: readonly string[];
  /** Of these an amendment also says what they were before; anything else is a conflict. */
  readonly was: readonly string[];
}

/** Cheaper than a row that is replaced: an event keeps its body, and rows need no version. */
const amendments = {
  events: { set: ['sequence', 'proof'], was: ['sequence'] },
  event_sequences: { set: ['last', 'ended_at'], was: ['last'] },
  deliveries: { set: ['state', 'due_at', 'attempts'], was: ['state', 'due_at'] },
  leases: { set: ['holder', 'until'], was: ['holder', 'until'] },
} as const satisfies Record<string, AmendmentSpec>;

export type AmendedTable = keyof typeof amendments;

type ColumnsSetBy<T extends AmendedTable> = (typeof amendments)[T]['set'][number] & keyof Row<T>;
type WasBy<T extends AmendedTable> = (typeof amendments)[T]['was'][number] & keyof Row<T> & string;

/** What columns were has their names behind `was_`. */
export type Amendment<T extends AmendedTable> = Key<T> &
  Pick<Row<T>, ColumnsSetBy<T>> & { readonly [C in WasBy<T> as `was_${C}`]: Row<T>[C] };

const before = 'was_';

/** None for a table that is never amended. */
export function amendedColumns({ name, key }: TableShape): readonly string[] {
  const spec = specOf(name);
  return spec ? [...key, ...spec.set, ...spec.was.map((column) => before + column)] : [];
}

/** The columns that are set, and those that have to be as they were, with the names of their values. */
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

/** The column of which a value is given. */
export function columnOfValue(value: string): string {
  return value.startsWith(before) ? value.slice(before.length) : value;
}

function specOf(name: string): AmendmentSpec | undefined {
  return (amendments as Readonly<Record<string, AmendmentSpec>>)[name];
}
