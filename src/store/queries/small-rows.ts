/** Many rows by their ids in one query, of which what is large is not read. */
import { sql } from 'kysely';
import type { TenantId } from '../../base/ids.ts';
import { prepared } from '../prepared.ts';
import type { Query } from '../store.ts';
import { storedForm, tenantNumber } from '../stored-form.ts';
import type { ListedRow } from '../stored-row.ts';
import { type SqlValue, shapes } from '../tables.ts';

/** Tables whose rows have sealed `data` and a key of tenant and id, and what of their rows may be large. */
export const sealedTables = {
  tokens: { id: 'token_id', large: ['search_indexes', 'mask', 'metadata', 'data'] },
  token_intents: { id: 'token_intent_id', large: ['data'] },
} as const;

export type SealedTable = keyof typeof sealedTables;

/** A row that is not whole where it is not small. */
export type SmallRow<T extends SealedTable> = ListedRow<T> & {
  /** Of all that may be large. */
  readonly bytes: number;
};

/** Ids in one query. */
export const idsMax = 500;

/** So few numbers of them, and so few texts of queries. What is left repeats the first. */
const idCounts = [16, 64, 128, 256, idsMax] as const;

/** The tenant, how many bytes a small row has, and then the ids. */
type SmallRowsValues = readonly SqlValue[];

const knownQueries = new Map<string, (values: SmallRowsValues) => Query<never>>();

export interface SmallRowsWanted {
  /** Each once, and at most {@link idsMax}. */
  readonly ids: readonly [string, ...string[]];
  /** Up to which a row is read whole. */
  readonly smallBytesMax: number;
}

/** The rows that exist, in no order. */
export function smallRows<T extends SealedTable>(
  table: T,
  tenant: TenantId,
  { ids, smallBytesMax }: SmallRowsWanted,
): Query<SmallRow<T>> {
  const count = idCounts.find((one) => one >= ids.length) ?? idsMax;
  const name = `small ${table} ${count}`;
  const query = knownQueries.get(name) ?? queryOf(table, count, name);
  knownQueries.set(name, query);
  const [first, ...others] = ids;
  const stored = [first, ...others].map((id) => storedForm('id', id));
  while (stored.length < count) stored.push(storedForm('id', first));
  return query([tenantNumber(tenant), smallBytesMax, ...stored]);
}

function queryOf(table: SealedTable, count: number, name: string) {
  const { id, large } = sealedTables[table];
  const mayBeLarge = new Set<string>(large);
  const columns = shapes[table].columns.filter((column) => !mayBeLarge.has(column));
  return prepared<SmallRowsValues, never>((placeOf) => {
    const ids = Array.from({ length: count }, (_, at) => placeOf(at + 2));
    // Neither engine reads a value for its length.
    const lengths = large.map((column) => sql`coalesce(octet_length(${sql.ref(column)}), 0)`);
    const bytes = sql.join(lengths, sql` + `);
    const read = columns.map((column) => sql.ref(column));
    const whole = large.map(
      (column) =>
        sql`case when ${bytes} <= ${placeOf(1)} then ${sql.ref(column)} end as ${sql.ref(column)}`,
    );
    const query = sql`select ${sql.join([...read, ...whole])}, ${bytes} as bytes
      from ${sql.table(table)}
      where tenant_id = ${placeOf(0)} and ${sql.ref(id)} in (${sql.join(ids)})`;
    return (db) => ({ compile: () => query.compile(db) as never });
  }, name);
}
