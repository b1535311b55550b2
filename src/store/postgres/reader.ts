/**
 * Reads by key on PostgreSQL: those that arrive in one turn of the event loop share one query, or, where tenants are
 * spread over machines, one for each tenant. Large rows are read again, each by itself: whoever shares a query waits
 * until all of it was received, and until all that it gave was opened and sent.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { isIntegrityError } from '../../base/errors.ts';
import { pageBytesMax, type SealedName, sealedColumns } from '../queries/key-versions.ts';
import { readRows, storedKey } from '../stored-form.ts';
import type { RowFromStore } from '../stored-row.ts';
import { type Key, kindOf, type SqlValue, shapes, type Table } from '../tables.ts';
import { arrayTypes } from './array-types.ts';
import type { LargeReads } from './large-reads.ts';

type RunRead = (sql: string, values: unknown[], name: string) => Promise<unknown[]>;

interface PendingRead {
  readonly values: readonly SqlValue[];
  resolve(row: unknown): void;
  reject(error: unknown): void;
}

interface ReaderParts {
  readonly query: RunRead;
  readonly isDistributed: () => Promise<boolean>;
  readonly readLarge: LargeReads;
}

/** Reads that are fetched together run in the context of none of their callers. */
export function createPostgresReader({ query, isDistributed, readLarge }: ReaderParts) {
  const waiting = new Map<Table, PendingRead[]>();
  /** Of the queries, by their names. */
  const texts = new Map<string, string>();
  const detached = AsyncLocalStorage.snapshot();

  async function fetchWaiting(table: Table): Promise<void> {
    const batch = waiting.get(table) ?? [];
    waiting.delete(table);
    let isSpread: boolean;
    try {
      isSpread = shapes[table].key[0] === 'tenant_id' && (await isDistributed());
    } catch (error) {
      for (const pending of batch) pending.reject(error);
      return;
    }
    const batches = isSpread ? Map.groupBy(batch, ({ values }) => values[0]).values() : [batch];
    await Promise.all(Array.from(batches, (part) => fetchBatch(table, part, isSpread)));
  }

  async function fetchBatch(
    table: Table,
    batch: readonly PendingRead[],
    isOfTenant: boolean,
  ): Promise<void> {
    const { key } = shapes[table];
    const sealed = sealedColumnOf(table);
    try {
      const keys = batch.map((pending) => storedKey(table, pending.values));
      const rows = await fetchRows({ table, keys, isOfTenant, form: 'small' });
      const byKey = new Map(
        rows.map((row) => [JSON.stringify(key.map((column) => row[column])), row]),
      );
      for (const pending of batch) {
        const row = byKey.get(JSON.stringify(pending.values));
        if (row && sealed && row[sealed] === null) fetchLarge(table, pending, isOfTenant);
        else pending.resolve(row);
      }
    } catch (error) {
      // A row that cannot be read fails only the requests for that row.
      const isOfOneRow = isIntegrityError(error);
      if (isOfOneRow && batch.length > 1) {
        await Promise.all(batch.map((pending) => fetchBatch(table, [pending], isOfTenant)));
      } else {
        for (const pending of batch) pending.reject(error);
      }
    }
  }

  function fetchLarge(table: Table, pending: PendingRead, isOfTenant: boolean): void {
    const keys = [storedKey(table, pending.values)];
    readLarge(String(pending.values[0]), () =>
      fetchRows({ table, keys, isOfTenant, form: 'whole' }),
    )
      .then(([row]) => row)
      .then(pending.resolve, pending.reject);
  }

  async function fetchRows({ table, keys, isOfTenant, form }: RowsOfBatch) {
    const { key } = shapes[table];
    const lists = key.map((_, column) => keys.map((values) => values[column]));
    const [tenant] = keys[0] ?? [];
    const name = `${form} ${table} ${isOfTenant ? 'of a tenant by key' : 'by key'}`;
    const sql = texts.get(name) ?? (isOfTenant ? sqlOfTenant : sqlOf)(table, form);
    texts.set(name, sql);
    const found = await query(sql, isOfTenant ? [tenant, ...lists.slice(1)] : lists, name);
    return readRows(found as Record<string, SqlValue>[]);
  }

  return <T extends Table>(table: T, key: Key<T>): Promise<RowFromStore<T> | undefined> =>
    new Promise((resolve, reject) => {
      const values = shapes[table].key.map(
        (column) => (key as Record<string, SqlValue>)[column] ?? null,
      );
      const batch = waiting.get(table);
      const pending: PendingRead = { values, resolve: resolve as PendingRead['resolve'], reject };
      if (batch) {
        batch.push(pending);
      } else {
        waiting.set(table, [pending]);
        detached(() => setImmediate(() => void fetchWaiting(table)));
      }
    });
}

interface RowsOfBatch {
  readonly table: Table;
  readonly keys: readonly (readonly SqlValue[])[];
  readonly isOfTenant: boolean;
  readonly form: RowForm;
}

/** `small`: a sealed value that is not is null. */
type RowForm = 'small' | 'whole';

/** It is null in a small form alone. Rows of other tables are never large. */
function sealedColumnOf(table: Table): string | undefined {
  return table in sealedColumns ? sealedColumns[table as SealedName].column : undefined;
}

/** One length alone: those of the other columns of a token would cost PostgreSQL a quarter more for each read. */
function columnsOf(table: Table, form: RowForm): string {
  const sealed = sealedColumnOf(table);
  if (sealed === undefined || form === 'whole') return '*';
  const small = `case when octet_length(${sealed}) <= ${pageBytesMax} then ${sealed} end as ${sealed}`;
  return shapes[table].columns.map((column) => (column === sealed ? small : column)).join(', ');
}

function sqlOf(table: Table, form: RowForm): string {
  const { key } = shapes[table];
  const lists = key.map((column, index) => `$${index + 1}::${arrayTypes[kindOf(table, column)]}`);
  const same = key.map((column) => `r.${column} = k.${column}`);
  // One look-up for each key, whatever the planner believes: until a table was analysed for the first
  // time it would rather read all of it. "offset 0" keeps it from turning this into a join.
  return `select t.* from (select distinct * from unnest(${lists.join(', ')}) as k (${key.join(', ')})) k
    cross join lateral (select ${columnsOf(table, form)} from ${table} r where ${same.join(' and ')} offset 0) t`;
}

/** The tenant is a constant, so that Citus routes the query to one machine. */
function sqlOfTenant(table: Table, form: RowForm): string {
  const [, ...others] = shapes[table].key;
  const own = `select ${columnsOf(table, form)} from ${table} r where r.tenant_id = $1`;
  if (others.length === 0) return own;
  const lists = others.map(
    (column, index) => `$${index + 2}::${arrayTypes[kindOf(table, column)]}`,
  );
  const columns = others.map((column) => `r.${column}`).join(', ');
  return `${own} and (${columns}) in (select * from unnest(${lists.join(', ')}))`;
}
