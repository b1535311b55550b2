/**
 * Amendments: updates of some columns of a row that otherwise never changes, if other columns have expected values.
 * Resealings are the same for sealed columns, whose values come under another key.
 */
import type { Key, Row, TableShape } from './tables.ts';

interface AmendmentSpec {
  readonly set: readonly string[];
  /** The columns of which an amendment also gives the expected value. Any other value is a conflict. */
  readonly was: readonly string[];
}

/** Cheaper than replacing a row: an event keeps its body, and rows need no version. */
const amendments = {
  activity: { set: ['started_at', 'figures', 'revision'], was: ['revision'] },
  events: { set: ['sequence', 'proof'], was: ['sequence'] },
  event_sequences: { set: ['last', 'ended_at'], was: ['last'] },
  deliveries: { set: ['state', 'due_at', 'attempts'], was: ['state', 'due_at'] },
  leases: { set: ['holder', 'until'], was: ['holder', 'until'] },
  log_pushes: { set: ['seq', 'proof'], was: ['seq'] },
  stored_bytes: { set: ['bytes'], was: ['bytes'] },
  vault_keys: { set: ['private_key'], was: ['private_key'] },
  key_rotations: {
    set: [
      'phase',
      'phase_at',
      'is_paused',
      'started_at',
      'rows_done',
      'rows_total',
      'unreadable',
      'holder',
      'until',
      'finished_at',
      'revision',
    ],
    was: ['revision'],
  },
} as const satisfies Record<string, AmendmentSpec>;

/**
 * Cheaper than replacing a row, whose indexes are written again: no index has one of these columns. All values are as
 * long as before, so that the stored bytes stay the same.
 */
const resealings = {
  tokens: { set: ['version', 'data'], was: ['version'] },
  token_intents: { set: ['version', 'data', 'fingerprint'], was: ['version'] },
  reactor_runs: { set: ['version', 'body'], was: ['version'] },
  events: { set: ['body'], was: ['body'] },
} as const satisfies Record<string, AmendmentSpec>;

/** The same with a new fingerprint of the same length. Only the indexes of fingerprints are written. */
const refingerprintings = {
  tokens: { set: ['version', 'data', 'fingerprint'], was: ['version'] },
} as const satisfies Record<string, AmendmentSpec>;

/** An update of some columns, by its table of columns. */
export type PartialUpdate = 'amend' | 'reseal' | 'refingerprint';

const specs: Readonly<Record<PartialUpdate, Readonly<Record<string, AmendmentSpec>>>> = {
  amend: amendments,
  reseal: resealings,
  refingerprint: refingerprintings,
};

/** True for an action that updates some columns of a row. */
export function isPartialUpdate(action: string): action is PartialUpdate {
  return Object.hasOwn(specs, action);
}

export type AmendedTable = keyof typeof amendments;
export type ResealedTable = keyof typeof resealings;
export type RefingerprintedTable = keyof typeof refingerprintings;

type ColumnsSetBy<T extends AmendedTable> = (typeof amendments)[T]['set'][number] & keyof Row<T>;
type WasBy<T extends AmendedTable> = (typeof amendments)[T]['was'][number] & keyof Row<T> & string;

/** The expected values of columns have their names after `was_`. */
export type Amendment<T extends AmendedTable> = Key<T> &
  Pick<Row<T>, ColumnsSetBy<T>> & { readonly [C in WasBy<T> as `was_${C}`]: Row<T>[C] };

type ExpectedBy<T extends ResealedTable> = (typeof resealings)[T]['was'][number] &
  keyof Row<T> &
  string;

/** The whole row as it becomes, of which the sealed columns are written. */
export type Resealing<T extends ResealedTable> = Row<T> & {
  readonly [C in ExpectedBy<T> as `was_${C}`]: Row<T>[C];
};

const before = 'was_';

/** No columns for a table that is never updated in this way. */
export function amendedColumns(
  action: PartialUpdate,
  { name, key }: TableShape,
): readonly string[] {
  const spec = specs[action][name];
  return spec ? [...key, ...spec.set, ...spec.was.map((column) => before + column)] : [];
}

/** The columns to set, and the columns with an expected value, each with the name of its value. */
export function amendedParts(
  action: PartialUpdate,
  name: string,
): readonly {
  readonly column: string;
  readonly value: string;
  readonly isCondition: boolean;
}[] {
  const { set, was } = specs[action][name] ?? { set: [], was: [] };
  return [
    ...set.map((column) => ({ column, value: column, isCondition: false })),
    ...was.map((column) => ({ column, value: before + column, isCondition: true })),
  ];
}

/** The column to which a value belongs. */
export function columnOfValue(value: string): string {
  return value.startsWith(before) ? value.slice(before.length) : value;
}
