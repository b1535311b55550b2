/** The server engine: reads of a turn fetched together, changes in groups of one statement each. */
import pg from 'pg';
import { type CommitGroup, createLane } from '../commit/lane.ts';
import { purgeCounters, sharedLimiter } from '../limiter.ts';
import type { ColumnTypes } from '../migrations/column-types.ts';
import {
  createVersionTable,
  type Migration,
  pendingStatements,
  refusalOf,
  released,
  schemaVersion,
  selectState,
  stateOf,
} from '../migrations/migrate.ts';
import type { OnCommitEnd } from '../notify-after-commit.ts';
import { postgresBuilder } from '../query-builder.ts';
import { createScanTurns } from '../scan-turns.ts';
import type { AttachOptions, Query, StoreEngine, StoreOptions } from '../store.ts';
import { readRows } from '../stored-form.ts';
import { impossible, unavailable } from '../unavailable.ts';
import { createPostgresCommitter } from './commit.ts';
import { createDiskState } from './disk-state.ts';
import {
  checkDistributable,
  distributeNewTables,
  distributeTables,
  isDistributed,
} from './distribution.ts';
import { failureOf, isLockLost, isWorkerLost } from './failure.ts';
import { createLargeReads } from './large-reads.ts';
import { type Line, Pool } from './pool.ts';
import { createPostgresReader } from './reader.ts';
import { Servers, type SessionParameters, serverName } from './servers.ts';
import { commitSideBySide } from './side-by-side-commits.ts';
import { checkServers, explainPooler } from './start.ts';
import { watchSilence } from './watch.ts';
import { explainWorker } from './workers.ts';

/** Text sorts by code point, as the embedded engine sorts it and as prefix searches need it. */
export const types: ColumnTypes = {
  engine: 'postgres',
  text: 'text collate "C"',
  integer: 'bigint',
  bytes: 'bytea',
  tenant: 'integer',
  // By the clock of the one machine that has the tenant's rows. Sequences would be shared by all machines.
  rowid: 'rowid bigint not null default (extract(epoch from clock_timestamp()) * 1000000),',
  byRowid: ', rowid',
  strict: '',
  scratchTable: 'unlogged table',
  keptByKey: '',
  keyCovers: (columns) => `include (${columns})`,
};

const statementTimeoutMs = 30_000;
/** For a session of the pool to be free. */
const waitMsMax = 5_000;

/** Queries that wait for a connection of the pool; what comes on top of them is refused at once. */
export const queriesWaitingMax = 1_000;

/**
 * An index keeps every list in its order. Until a table was analysed the planner takes it for small,
 * and would rather read all of a tenant's rows and sort them, for every page.
 */
const readsByIndex = { enable_bitmapscan: 'off', enable_seqscan: 'off' };

/**
 * Every statement of a commit finds its rows by their whole key. Until a table was analysed for the first time
 * the planner would rather read all of it (measured: 11 ms instead of 0.1 ms in 40,000 rows).
 */
const findByKey = { enable_seqscan: 'off', enable_hashjoin: 'off', enable_mergejoin: 'off' };

/** Any number that other software on the same database is unlikely to lock. */
export const migrationLock = 7_476_200_118;

export const parsers = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === pg.types.builtins.INT8 ? integerOf : pg.types.getTypeParser(oid, format as 'text'),
} as pg.CustomTypesConfig;

/**
 * All integers are milliseconds, counts, and versions, far below 2^53. An attacker wrote any other integer. Rounding
 * it would yield another position, and a reader that continues after that position would never finish.
 */
function integerOf(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value)) return value;
  throw impossible(new RangeError('an integer beyond 2^53'));
}

/** Only a write shows that writes succeed; without its log the vault may release no secret either. */
const probeSql = `with entry as (insert into logs select * from logs where false)
  update schema_version set version = version returning version, oldest_server`;

interface EngineWidth {
  readonly pool: number;
  /** Groups are written side by side on this many connections, each with its own log stream. */
  readonly lanes: number;
  readonly threads: number;
}

const whole: EngineWidth = { pool: 8, lanes: 2, threads: 1 };

/** The width of one of several threads that share a server's connections: the pool of all is twice that of one. */
function partOf(threads: number): EngineWidth {
  const pool = Math.max(2, Math.ceil((2 * whole.pool) / threads));
  return { pool, lanes: threads > 2 ? 1 : 2, threads };
}

interface NotifyingOptions extends StoreOptions {
  readonly onCommitEnd?: OnCommitEnd;
}

export async function openPostgres(
  databaseUrl: string,
  options: NotifyingOptions & Partial<Pick<AttachOptions, 'epochs'>>,
  migrations = released,
): Promise<StoreEngine> {
  const servers = new Servers(databaseUrl, connection, options.epochs);
  try {
    await checkServers(servers);
    if (options.isDistributed) await checkDistributable(servers);
    await migrate(servers, migrations);
    if (options.isDistributed) await distributeTables(servers, { emptyOnly: true });
  } catch (error) {
    await servers.close();
    throw explainPooler(explainWorker(error));
  }
  return createEngine(servers, options, whole, migrations.length);
}

/** The engine on another thread of the process that opened it. It creates and migrates nothing. */
export function attachPostgres(
  databaseUrl: string,
  options: AttachOptions & NotifyingOptions,
): StoreEngine {
  const servers = new Servers(databaseUrl, connection, options.epochs);
  return createEngine(servers, options, partOf(options.threads));
}

/** The engine on a database that a restore has filled and no server may open yet. It creates and migrates nothing. */
export function openRestoredPostgres(databaseUrl: string, options: NotifyingOptions): StoreEngine {
  return createEngine(new Servers(databaseUrl, connection), options, whole);
}

const connection: pg.ClientConfig = {
  query_timeout: statementTimeoutMs + waitMsMax,
  application_name: serverName,
  types: parsers,
};

function createEngine(
  servers: Servers,
  options: NotifyingOptions & Partial<Pick<AttachOptions, 'epochs'>>,
  { pool: sessionsMax, lanes, threads }: EngineWidth,
  known = schemaVersion,
): StoreEngine {
  const connecting = (parameters: SessionParameters) => () =>
    servers.connect({ statement_timeout: statementTimeoutMs, ...parameters });
  const pool = new Pool({
    sessionsMax,
    waitingMax: Math.ceil(queriesWaitingMax / threads),
    waitMsMax,
    connect: connecting(readsByIndex),
  });
  const stopWatching = watchSilence(servers);
  const query = async (text: string, values: unknown[], name?: string, line?: Line) => {
    const config = name === undefined ? { text, values } : { name, text, values };
    try {
      return (await pool.query(config, line)).rows;
    } catch (error) {
      if (!isWorkerLost(error)) throw failureOf(error);
    }
    // The coordinator connects to the worker again, which may only have restarted.
    try {
      return (await pool.query(config, line)).rows;
    } catch (error) {
      throw failureOf(error);
    }
  };
  /** Read once, so a server has to be restarted after its database was distributed. */
  let spread: Promise<boolean> | undefined;
  const isSpread = (): Promise<boolean> => {
    spread ??= isDistributed(async (sql) => ({
      rows: (await query(sql, [])) as Record<string, unknown>[],
    })).catch((error: unknown) => {
      spread = undefined;
      throw error;
    });
    return spread;
  };
  const room = createDiskState(options.clock);
  const committers = Array.from({ length: lanes }, () =>
    commitSideBySide(
      () => createPostgresCommitter(connecting(findByKey), { ...options, room }, isSpread),
      isSpread,
    ),
  );
  const commitGroup: CommitGroup = async (...group) => {
    const free = committers.pop();
    if (!free) throw new Error('more groups than committers');
    try {
      return await free.commit(...group);
    } finally {
      options.epochs?.advance('commits');
      committers.push(free);
    }
  };
  const lane = createLane(lanes, commitGroup, { ...options, threads });
  const select = async <R>(build: Query<R>): Promise<R[]> => {
    const { sql, parameters } = build(postgresBuilder).compile();
    return readRows(await query(sql, [...parameters], build.statement));
  };
  // The others serve reads of single rows.
  const turns = createScanTurns(Math.max(1, Math.floor(sessionsMax / 2)));
  return {
    engine: 'postgres',
    get: createPostgresReader({
      query: (text, values, name) => query(text, values, name, 'by key'),
      isDistributed: isSpread,
      readLarge: createLargeReads(Math.ceil(sessionsMax / 4)),
    }),
    select,
    scan: (build, payer) => turns.take(payer, () => select(build)),
    snapshot: async (work) => {
      if (await isSpread()) return undefined;
      const session = await connecting(readsByIndex)().catch((error) => {
        throw failureOf(error);
      });
      const ask = (text: string, values: unknown[] = []) =>
        session.query({ text, values }).catch((error) => {
          throw failureOf(error);
        });
      try {
        await ask('begin isolation level repeatable read, read only');
        return await work(async (build) => {
          const { sql, parameters } = build(postgresBuilder).compile();
          return readRows((await ask(sql, [...parameters])).rows);
        });
      } finally {
        // That ends the transaction.
        await session.close();
      }
    },
    commit: (change) => lane.commit(change),
    record: (work) => lane.record(work),
    hosts: () => servers.health(),
    state: () => ({ backlog: lane.backlog, pool: pool.state }),
    ping: async () => {
      const [state] = await query(probeSql, []);
      // A server that is too old for what another one made of the schema takes no more requests.
      const refusal = state && refusalOf(stateOf(state), known);
      if (refusal) throw unavailable(refusal.message, refusal);
      return { isShort: room.isShort() };
    },
    limiter: (limit) => sharedLimiter(limit, query),
    scrub: () => purgeCounters(query),
    close: async () => {
      await lane.close();
      await Promise.all(committers.map((committer) => committer.close()));
      await pool.close();
      stopWatching();
      await servers.close();
    },
  };
}

/** Deadlocks with servers that are at work after which a start fails. */
const migrationTriesMax = 10;

async function migrate(servers: Servers, migrations: readonly Migration[]): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await migrateOnce(servers, migrations);
    } catch (error) {
      // Nothing was done. Citus ends the youngest transaction of a deadlock, which is this one.
      if (!isLockLost(error) || tries === migrationTriesMax) throw error;
    }
  }
}

async function migrateOnce(servers: Servers, migrations: readonly Migration[]): Promise<void> {
  const session = await servers.connect({ statement_timeout: statementTimeoutMs });
  const run = async (text: string, values: unknown[] = []) =>
    (await session.query({ text, values })).rows;
  try {
    await run('begin');
    await run('select pg_advisory_xact_lock($1)', [migrationLock]);
    await run(createVersionTable(types));
    const [row] = await run(selectState);
    const pending = pendingStatements(stateOf(row), types, migrations);
    const ask = async (text: string) => ({ rows: await run(text) });
    if (await isDistributed(ask)) {
      // Citus passes the text that it gets on to each machine, which takes one statement at a time.
      for (const statement of pending) await run(statement);
      await distributeNewTables(ask);
      await run('commit');
    } else {
      // Together, because each of them alone would cross the network and back.
      await run([...pending, 'commit'].join('; '));
    }
  } finally {
    // Closing the connection rolls back what was not committed.
    await session.close();
  }
}
