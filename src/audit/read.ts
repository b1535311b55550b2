/** Reading whole logs out of a database, page by page, in the order in which they are exported. */
import type { TenantId } from '../base/ids.ts';
import type { ReadOnlyStore } from '../store/open/read-only.ts';
import { checkpointsAfter, removalsAfter } from '../store/queries/log-statements.ts';
import { alteredBlocks, blocksAfter } from '../store/queries/logs.ts';
import { nextTenantWithLogs } from '../store/queries/tenants.ts';
import type { Row } from '../store/tables.ts';
import { streamsOf } from './checkpoints.ts';
import type { LogRecord } from './records.ts';

/** Statements fetched at a time; bounds the memory that a log of any length takes. */
const pageRowsMax = 1_000;
/** Blocks fetched at a time, each of which has up to 500 entries. */
export const pageBlocksMax = 200;

/** Blocks that cannot be read, and are named one by one. */
const alteredBlocksMax = 100;

/** Every record of the tenants' logs. */
export async function* readLogs(
  store: ReadOnlyStore,
  tenants: readonly TenantId[],
): AsyncGenerator<LogRecord> {
  for (const tenant_id of tenants) {
    yield { kind: 'begin', tenant_id };
    for await (const signed of removalsOf(store, tenant_id)) yield { kind: 'removal', signed };
    for await (const signed of checkpointsOf(store, tenant_id))
      yield { kind: 'checkpoint', signed };
    for (const block of await store.select(alteredBlocks(tenant_id, alteredBlocksMax)))
      yield { kind: 'altered', ...block };
    yield* blocksOf(store, tenant_id);
    yield { kind: 'end', tenant_id };
  }
}

/** Every tenant that has, or had, a log; also those that are deleted. */
export function tenantsWithLogs(store: ReadOnlyStore): Promise<TenantId[]> {
  return tenantsIn(store, logTables);
}

/** Includes tenants with a row and no log, which an attacker may have written to the database. */
export function tenantsWithLogsOrRows(store: ReadOnlyStore): Promise<TenantId[]> {
  return tenantsIn(store, [...logTables, 'tenants']);
}

type TenantTable = 'logs' | 'checkpoints' | 'log_removals' | 'tenants';

const logTables = ['logs', 'checkpoints', 'log_removals'] as const;

async function tenantsIn(
  store: ReadOnlyStore,
  tables: readonly TenantTable[],
): Promise<TenantId[]> {
  const found: TenantId[] = [];
  for (;;) {
    const after = found.at(-1);
    const following: TenantId[] = [];
    for (const table of tables) following.push(...(await nextTenant(store, table, after)));
    const next = following.sort()[0];
    if (next === undefined) return found;
    found.push(next);
  }
}

/** How many entries the logs hold, without counting them one by one. */
export async function countEntries(
  store: ReadOnlyStore,
  tenants: readonly TenantId[],
): Promise<number> {
  let count = 0;
  for (const tenant of tenants) {
    for await (const { first_seq, last_seq } of streamsOf(store, tenant)) {
      count += last_seq - first_seq + 1;
    }
  }
  return count;
}

async function nextTenant(
  store: ReadOnlyStore,
  table: TenantTable,
  after: TenantId | undefined,
): Promise<TenantId[]> {
  const rows = await store.select(nextTenantWithLogs(table, after));
  return rows.map((row) => row.tenant_id);
}

/** How far retention has removed each stream. */
export function removalsOf(
  store: Pick<ReadOnlyStore, 'select'>,
  tenant: TenantId,
): AsyncGenerator<Row<'log_removals'>> {
  return paged((after) => store.select(removalsAfter({ tenant, after, limit: pageRowsMax })));
}

function checkpointsOf(store: ReadOnlyStore, tenant: TenantId): AsyncGenerator<Row<'checkpoints'>> {
  return paged((after) => store.select(checkpointsAfter({ tenant, after, limit: pageRowsMax })));
}

async function* paged<R>(page: (last: R | undefined) => Promise<R[]>): AsyncGenerator<R> {
  let last: R | undefined;
  for (;;) {
    const rows = await page(last);
    yield* rows;
    last = rows.at(-1);
    if (rows.length < pageRowsMax) return;
  }
}

/** Streams by their ids, each in its order. The next page is fetched while this one is looked at. */
async function* blocksOf(store: ReadOnlyStore, tenant: TenantId): AsyncGenerator<LogRecord> {
  const page = (after: Row<'logs'> | undefined) =>
    store.select(blocksAfter({ tenant, after, limit: pageBlocksMax }));
  let next = page(undefined);
  for (;;) {
    const blocks = await next;
    if (blocks.length === 0) return;
    next = page(blocks.at(-1));
    // Its failure is thrown where it is awaited.
    next.catch(() => undefined);
    yield { kind: 'blocks', blocks };
  }
}
