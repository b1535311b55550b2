/** Distributes the tables over the machines of a Citus database, with the tenant as the distribution column. */
import { isCounted } from '../migrations/stored-sizes.ts';
import { kindOf, shapes, type Table } from '../tables.ts';
import { Servers, serverName } from './servers.ts';
import { explainTls } from './tls.ts';
import { explainWorker, type RunSql } from './workers.ts';

/** Found before the tenant is known, or of no tenant: every machine has a copy. */
const referenceTables: readonly string[] = [
  'tenants',
  'api_keys',
  'proxy_addresses',
  'tenant_hosts',
  'vault_keys',
  'rate_limits',
  'schema_version',
];

const tenantTables = (Object.keys(shapes) as Table[]).filter(
  (table) => !referenceTables.includes(table),
);

export interface TableDistribution {
  readonly table: string;
  readonly statement: string;
}

/**
 * In the order in which they are to be run. Tables are co-located by the type of the column, which Citus demands:
 * those that name the tenant by its id, and those that name it by its number.
 */
export function distributionStatements(): readonly TableDistribution[] {
  const first = new Map<string, string>();
  return [
    ...referenceTables.map((table) => ({
      table,
      statement: `select create_reference_table('${table}')`,
    })),
    ...tenantTables.map((table) => {
      const kind = kindOf(table, 'tenant_id');
      const neighbour = first.get(kind) ?? 'none';
      if (neighbour === 'none') first.set(kind, table);
      const arguments_ = `'${table}', 'tenant_id', colocate_with => '${neighbour}'`;
      return { table, statement: `select create_distributed_table(${arguments_})` };
    }),
  ];
}

/** The distribution of each table. `undefined` for a table that is on one machine. */
type TablePlacement = ReadonlyMap<string, 'by tenant' | 'copied' | 'otherwise'>;

export interface DistributionFacts {
  /** The version of the extension. `undefined` if the database does not have it. */
  readonly version: string | undefined;
  /** The statements that are still needed to distribute every table that is there. */
  readonly missing: readonly TableDistribution[];
  /** Tables that lie otherwise. */
  readonly wrong: readonly string[];
}

/** Changes nothing. */
export async function distributionFacts(ask: RunSql): Promise<DistributionFacts> {
  const { rows } = await ask(`select extversion from pg_extension where extname = 'citus'`);
  const version = rows[0] && String(rows[0]['extversion']);
  const placement = version === undefined ? new Map() : await placementOf(ask);
  const existing = await tablesIn(ask);
  return {
    version,
    missing: distributionStatements().filter(
      ({ table }) => existing.has(table) && !placement.has(table),
    ),
    wrong: wrongIn(placement),
  };
}

async function tablesIn(ask: RunSql): Promise<ReadonlySet<string>> {
  const names = distributionStatements().map(({ table }) => `'${table}'`);
  const { rows } = await ask(`select name from unnest(array[${names.join(', ')}]) as name
    where to_regclass(name) is not null`);
  return new Set(rows.map(({ name }) => String(name)));
}

async function placementOf(ask: RunSql): Promise<TablePlacement> {
  const { rows } = await ask(`select logicalrelid::text as name, partmethod as method,
    case when partkey is null then null else column_to_column_name(logicalrelid, partkey) end as key
    from pg_dist_partition`);
  return new Map(
    rows.map(({ name, method, key }) => {
      if (method === 'n') return [String(name), 'copied'];
      return [String(name), method === 'h' && key === 'tenant_id' ? 'by tenant' : 'otherwise'];
    }),
  );
}

/** Whether statements have to stay within one tenant each: one place says so for reads and for writes. */
export async function isDistributed(ask: RunSql): Promise<boolean> {
  const { rows } = await ask(`select to_regclass('pg_dist_partition') is not null as has`);
  if (rows[0]?.['has'] !== true) return false;
  const found = await ask(
    `select 1 from pg_dist_partition where logicalrelid = to_regclass('tokens')`,
  );
  return found.rows.length > 0;
}

/** The database cannot be distributed, for a reason that its operator can fix. */
export class DistributionError extends Error {
  override readonly name = 'DistributionError';
}

/**
 * Distributes what is not distributed yet, all of it or nothing.
 * @returns the tables that were distributed by this call.
 * @throws DistributionError where Citus is missing, a table is distributed in another way, or a server works on a vault
 * whose tables lie on one server: it would go on as there.
 */
export async function distribute(url: string): Promise<readonly TableDistribution[]> {
  const servers = new Servers(url, { application_name: 'strongroom database distribute' });
  try {
    return await distributeTables(servers, { stoppedOnly: true });
  } catch (error) {
    throw explainWorker(error);
  } finally {
    await servers.close();
  }
}

/** Any number that nothing else on the same database is likely to lock. */
const distributionLock = 7_476_200_119;

/**
 * The same over servers that are known. Of several processes that start at once, one distributes.
 * @throws DistributionError with `emptyOnly` also where a vault has rows on one server by now.
 */
export async function distributeTables(
  servers: Servers,
  { emptyOnly = false, stoppedOnly = false } = {},
): Promise<readonly TableDistribution[]> {
  return withSession(servers, async (ask) => {
    await ask('begin');
    await ask(`select pg_advisory_xact_lock(${distributionLock})`);
    const { missing } = await usableFacts(ask);
    const isOnOneServer = missing.some(({ table }) => table === 'tokens');
    if (stoppedOnly && isOnOneServer) await requireNoServer(ask);
    if (emptyOnly && isOnOneServer) {
      // Another server may have begun since the check before the migration, and makes a tenant.
      await ask('lock table tenants in share row exclusive mode');
      await requireNoTenants(ask);
    }
    for (const statement of withoutTriggers(missing)) await ask(statement);
    for (const { statement } of missing) await ask(statement);
    await ask('commit');
    return missing;
  });
}

/**
 * What lies on one server yet, in the transaction of the caller, who made the tables. Nothing where the database
 * does not have the extension.
 */
export async function distributeNewTables(ask: RunSql): Promise<'distributed' | 'on one server'> {
  const { version, missing } = await distributionFacts(ask);
  if (version === undefined) return 'on one server';
  for (const statement of withoutTriggers(missing)) await ask(statement);
  for (const { statement } of missing) await ask(statement);
  return 'distributed';
}

/** Citus distributes no table that has triggers, so it does without those that count stored bytes. */
function withoutTriggers(missing: readonly TableDistribution[]): readonly string[] {
  return missing
    .filter(({ table }) => isCounted(table))
    .flatMap(({ table }) =>
      ['insert', 'update', 'delete'].map(
        (action) => `drop trigger if exists stored_bytes_${table}_${action} on ${table}`,
      ),
    );
}

/**
 * What a start demands that is to distribute the tables, before anything is created.
 * @throws DistributionError also where a vault has rows on one server: other servers of it may be running.
 */
export async function checkDistributable(servers: Servers): Promise<void> {
  try {
    await withSession(servers, async (ask) => {
      const { missing } = await usableFacts(ask);
      if (missing.every(({ table }) => table !== 'tokens')) return;
      const { rows } = await ask(`select to_regclass('tenants') is not null as has`);
      if (rows[0]?.['has'] !== true) return;
      await requireNoTenants(ask);
    });
  } catch (error) {
    if (!(error instanceof DistributionError)) throw error;
    throw new DistributionError(`STRONGROOM_DATABASE_DISTRIBUTE=citus: ${error.message}`);
  }
}

async function requireNoTenants(ask: RunSql): Promise<void> {
  const { rows } = await ask('select 1 from tenants limit 1');
  if (rows.length > 0) throw new DistributionError(onOneServer);
}

async function requireNoServer(ask: RunSql): Promise<void> {
  const { rows } = await ask(
    `select 1 from pg_stat_activity
      where datname = current_database() and application_name = '${serverName}' limit 1`,
  );
  if (rows.length > 0) {
    throw new DistributionError(
      'A server is connected to the database. Stop all servers of the vault first. Nothing was changed.',
    );
  }
}

/** Closing the session rolls back what was not committed. */
async function withSession<T>(servers: Servers, work: (ask: RunSql) => Promise<T>): Promise<T> {
  const session = await servers.connect({}).catch((error) => {
    throw explainTls(error);
  });
  try {
    return await work((text) => session.query({ text }));
  } finally {
    await session.close();
  }
}

async function usableFacts(ask: RunSql): Promise<DistributionFacts> {
  const facts = await distributionFacts(ask);
  if (facts.version === undefined) throw new DistributionError(noExtension);
  if (facts.wrong.length === 0) return facts;
  const tables = facts.wrong.join(', ');
  throw new DistributionError(
    `These tables are distributed in another way: ${tables}. Undo that with undistribute_table().`,
  );
}

const noExtension =
  'The database does not have the extension citus. Load it with shared_preload_libraries, add the workers, and ' +
  'run "create extension citus" in this database.';
const onOneServer =
  'The database has a vault whose tables lie on one server. Stop all servers of the vault, and run ' +
  '"strongroom database distribute".';

/** Tables of the vault that are distributed otherwise than it needs. What else is in the database is not its own. */
function wrongIn(placement: TablePlacement): readonly string[] {
  const own = distributionStatements().map(({ table }) => table);
  return own.filter((table) => {
    const how = placement.get(table);
    return how !== undefined && how !== (referenceTables.includes(table) ? 'copied' : 'by tenant');
  });
}
