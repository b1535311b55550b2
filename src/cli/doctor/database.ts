/** The database: reached, of this release, keeping what it acknowledges, and with the root key that opens it. */
import { existsSync, statSync } from 'node:fs';
import { minute, second } from '../../base/clock.ts';
import type { Config } from '../../runtime/config/config.ts';
import { type EngineFacts, inspectPostgres, inspectSqlite } from '../../store/open/inspect.ts';
import {
  EmptyDatabaseError,
  NoDatabaseError,
  openReadOnly,
  type ReadOnlyStore,
} from '../../store/open/read-only.ts';
import { allTenants, anyProductionTenant } from '../../store/queries/tenants.ts';
import { databaseFile } from '../../store/sqlite/database.ts';
import { UnfinishedRestoreError } from '../../store/unfinished-restore.ts';
import { explain } from '../terminal/failure.ts';
import { checkBackup } from './backup.ts';
import { type Finding, reporter } from './finding.ts';
import { checkRoleRules } from './identity-provider.ts';
import { checkNewRootKey, checkRootKey } from './root-key.ts';

const pooled =
  'a pooler is in front of it: set statement_timeout and the planner there (docs/postgresql.md, Poolers)';

export async function checkDatabase(config: Config): Promise<readonly Finding[]> {
  const { ok, warning, problem } = reporter('database');
  const { databaseUrl, dataDir } = config;
  if (databaseUrl === undefined && !existsSync(databaseFile(dataDir))) {
    return [
      ok(`there is none yet; the first start creates it in ${dataDir}`),
      ...checkClock(undefined, config),
      ...(await checkNewRootKey(config)),
    ];
  }
  let facts: EngineFacts;
  try {
    facts = await (databaseUrl === undefined
      ? inspectSqlite(dataDir)
      : inspectPostgres(databaseUrl));
  } catch (error) {
    const advice =
      databaseUrl === undefined
        ? 'Check the disk and the owner of the file, or restore a backup.'
        : 'Check STRONGROOM_DATABASE_URL, the network, and that PostgreSQL runs and lets this user in.';
    return [problem(`it cannot be reached: ${explain(error)}`, advice)];
  }
  if (facts.problem !== undefined) {
    return [problem(`STRONGROOM_DATABASE_URL ${facts.problem}`, 'A start would be refused.')];
  }
  return [
    ok(`${facts.version} can be reached`),
    ...(facts.isPooled ? [ok(pooled)] : []),
    ...facts.unreachable.map((name) =>
      warning(`${name} cannot be reached`, 'No failover to it is possible. Repair the standby.'),
    ),
    ...checkDurability(facts),
    ...checkFailover(facts),
    ...checkDistribution(facts, config),
    ...checkClock(facts.clockMs, config),
    // Rows that nothing can read would look like a source of the root key that fails.
    ...(facts.unreachableWorkers.length > 0 ? [] : await checkContent(config)),
  ];
}

function checkDurability({ unsafe }: EngineFacts): readonly Finding[] {
  const { ok, problem } = reporter('durability');
  if (unsafe.length === 0) return [ok('what is acknowledged survives a crash of the machine')];
  return unsafe.map(({ name, found }) =>
    problem(
      `${name} is ${found}, so a crash of the machine can lose what was acknowledged`,
      name === 'journal_mode'
        ? 'Start the vault once; it sets the journal mode that it needs.'
        : `Set ${name} = on in postgresql.conf, and reload PostgreSQL.`,
    ),
  );
}

/** What the vault cannot know where a managed service denies the function to its users. */
const lost = {
  pg_control_system:
    'a server that has other data and a database of the same name would not be recognized',
  pg_walfile_name:
    'a promotion is noticed only once the old primary responds as a standby, or after a restart',
} as const;

function checkFailover({ failover }: EngineFacts): readonly Finding[] {
  const { ok, warning } = reporter('failover');
  if (failover === undefined) return [];
  const { hosts, hidden } = failover;
  return hidden.map((name) => {
    const message = `the server does not let this user call ${name}(): `;
    if (hosts === 1)
      return ok(`${message}nothing is lost with one host; with several, ${lost[name]}`);
    const advice =
      `Let the user call ${name}(), or name one host that always leads to the primary. ` +
      'Fence the old primary before you promote.';
    return warning(message + lost[name], advice);
  });
}

function checkDistribution(
  { distribution, unreachableWorkers }: EngineFacts,
  { isDistributed }: Config,
): readonly Finding[] {
  const { ok, warning, problem } = reporter('distribution');
  if (distribution === undefined) return [];
  const { version, missing, wrong } = distribution;
  if (version === undefined) {
    if (!isDistributed) return [ok('all tables lie on one server')];
    const message =
      'STRONGROOM_DATABASE_DISTRIBUTE=citus, and it does not have the extension citus';
    return [problem(message, 'A start would be refused. Create it, or leave the variable out.')];
  }
  if (unreachableWorkers.length > 0) {
    const advice = 'Start them. Until then, requests for the tenants whose rows they have get 503.';
    const names = unreachableWorkers.join(', ');
    return [problem(`the coordinator cannot reach these workers: ${names}`, advice)];
  }
  if (wrong.length > 0) {
    const advice = 'Undo that with undistribute_table(), and run strongroom database distribute.';
    return [problem(`these tables are distributed in another way: ${wrong.join(', ')}`, advice)];
  }
  if (missing.length > 0) {
    const tables = missing.map(({ table }) => table).join(', ');
    const advice = 'Run strongroom database distribute, and restart the servers.';
    return [warning(`Citus ${version} has these tables on one server: ${tables}`, advice)];
  }
  return [ok(`Citus ${version} has tables by tenant, and copies of the directories everywhere`)];
}

/** Expiry goes by the clock: by how far it may be off. */
const clockOffMs = { warning: 5 * second, problem: minute };

/** @param databaseMs the clock of the database, which the vault's is compared with. */
function checkClock(databaseMs: number | undefined, { dataDir }: Config): readonly Finding[] {
  const { ok, warning, problem } = reporter('clock');
  const advice = 'Run an NTP client, such as chrony or systemd-timesyncd, on all machines.';
  const now = Date.now();
  if (databaseMs !== undefined) {
    const off = Math.abs(databaseMs - now);
    const message = `it differs from that of the database by ${(off / second).toFixed(1)} s`;
    if (off > clockOffMs.problem) return [problem(message, advice)];
    return [off > clockOffMs.warning ? warning(message, advice) : ok(message)];
  }
  const written = ['', '-wal'].map(
    (suffix) => statSync(`${databaseFile(dataDir)}${suffix}`, { throwIfNoEntry: false })?.mtimeMs,
  );
  const ahead = Math.max(...written.map((ms) => ms ?? 0)) - now;
  return ahead > clockOffMs.problem
    ? [problem('the database was written at a later time than it is now', advice)]
    : [ok(`it is ${new Date(now).toISOString()}`)];
}

function adviceOn(error: unknown): string {
  if (error instanceof UnfinishedRestoreError) return 'Until then, no server starts here.';
  if (error instanceof NoDatabaseError) return 'Start the vault of the release that wrote it.';
  return 'Use the release that wrote it, or a later one.';
}

async function checkContent(config: Config): Promise<readonly Finding[]> {
  const { ok, problem } = reporter('schema');
  let store: ReadOnlyStore;
  try {
    store = await openReadOnly(config.databaseUrl ?? config.dataDir);
  } catch (error) {
    if (error instanceof EmptyDatabaseError) {
      return [
        ok('the database is empty; the first start fills it'),
        ...(await checkNewRootKey(config)),
      ];
    }
    return [problem(explain(error), adviceOn(error))];
  }
  try {
    const tenants = await store.select(allTenants);
    const count = `${tenants.length} ${tenants.length === 1 ? 'tenant' : 'tenants'}`;
    const found = ok(`it is the one of this release, with ${count}`);
    const hasProductionTenant = (await store.select(anyProductionTenant)).length > 0;
    return [
      found,
      ...(await checkRootKey(config, store, tenants)),
      ...checkBackup(config, hasProductionTenant),
      ...(await checkRoleRules(config, store)),
    ];
  } finally {
    await store.close();
  }
}
