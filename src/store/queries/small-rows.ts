/** Many rows by their ids in one query, of which large values are not read. */
import { sql } from 'kysely';
import type { TenantId } from '../../lib/ids.ts';
import { prepared } from '../prepared.ts';
import type { Query } from '../store.ts';
import { storedForm, tenantNumber } from '../stored-form.ts';
import { type Row, type SqlValue, shapes } from '../tables.ts';

/** Tables whose rows have sealed `data` and a key of tenant and id, and how the id is called there. */
export const sealedIds = { tokens: 'token_id', token_intents: 'token_intent_id' } as const;

export type SealedTable = keyof typeof sealedIds;

/** Stored bytes up to which data is read with its row. */
const smallBytesMax = 8_192;

export type SmallRow<T extends SealedTable> = Omit<Row<T>, 'data'> & {
  /** Null where it is not small. */
  readonly data: Row<T>['data'] | null;
  /** Of the data. Neither engine reads a value for its length. */
  readonly bytes: number;
};

/** Ids in one query. */
const idsMax = 500;

/** So few numbers of them, and so few texts of queries. What is left repeats the first. */
const idCounts = [16, 64, 128, 256, idsMax] as const;

/** The rows that exist, in no order. Each query takes no more ids than are in one list. */
export function smallRows<T extends SealedTable>(
  table: T,
  tenant: TenantId,
  ids: readonly string[],
): readonly Query<SmallRow<T>>[] {
  const queries: Query<SmallRow<T>>[] = [];
  for (let at = 0; at < ids.length; at += idsMax) {
    queries.push(rowsOf(table, tenant, ids.slice(at, at + idsMax)));
  }
  return queries;
}

/** The tenant, and then the ids. */
type SmallRowsValues = readonly SqlValue[];

const knownQueries = new Map<string, (values: SmallRowsValues) => Query<never>>();

function rowsOf<T extends SealedTable>(
  table: T,
  tenant: TenantId,
  ids: readonly string[],
): Query<SmallRow<T>> {
  const count = idCounts.find((one) => one >= ids.length) ?? idsMax;
  const name = `small ${table} ${count}`;
  const query = knownQueries.get(name) ?? queryOf(table, count, name);
  knownQueries.set(name, query);
  const stored = ids.map((id) => storedForm('id', id));
  const repeated = Array.from({ length: count - ids.length }, () => stored[0] ?? null);
  return query([tenantNumber(tenant), ...stored, ...repeated]);
}

function queryOf(table: SealedTable, count: number, name: string) {
  const { columns } = shapes[table];
  const beside = columns.filter((column) => column !== 'data');
  return prepared<SmallRowsValues, never>((placeOf) => {
    const ids = Array.from({ length: count }, (_, at) => placeOf(at + 1));
    const list = beside.map((column) => sql.ref(column));
    const query = sql`select ${sql.join(list)}, octet_length(data) as bytes,
      case when octet_length(data) <= ${sql.lit(smallBytesMax)} then data end as data
      from ${sql.table(table)}
      where tenant_id = ${placeOf(0)} and ${sql.ref(sealedIds[table])} in (${sql.join(ids)})`;
    return (db) => ({ compile: () => query.compile(db) as never });
  }, name);
}
