/** The database that a vault is copied from: one that no server has, or one that servers go on writing to. */
import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { second } from '../../base/clock.ts';
import type { TenantId } from '../../base/ids.ts';
import { NoDatabaseError } from '../open/read-only.ts';
import { awayForGood, movedServer, movingServer, outgoingCopy } from '../outgoing-copy.ts';
import { isDistributed } from '../postgres/distribution.ts';
import { migrationLock } from '../postgres/engine.ts';
import { isLockLost } from '../postgres/failure.ts';
import { serverName } from '../postgres/servers.ts';
import { RestoreError } from '../restore-error.ts';
import { databaseFile } from '../sqlite/database.ts';
import { type DirectoryLock, isBusy, lockDirectory, lockFile } from '../sqlite/directory-lock.ts';
import type { SqlValue } from '../tables.ts';
import { type CopyDatabase, selectTable, writing } from './copy-database.ts';
import {
  type Journaled,
  journalStatements,
  refusalStatements,
  withoutJournal,
  withoutTenantRefusals,
} from './journal.ts';
import { openPostgresCopy, type PostgresCopy, takeLock } from './postgres-copy.ts';
import type { TenantScope } from './rows.ts';
import { openSqliteCopy } from './sqlite-copy.ts';

/** Of a database: either the URL of PostgreSQL, or the data directory of the embedded engine. */
export type DatabaseAddress = { readonly databaseUrl: string } | { readonly dataDir: string };

export interface CopySource {
  readonly database: CopyDatabase;
  /** Whether the database can follow its changes, and refuse writes. Distributed tables have no triggers. */
  readonly hasTriggers: boolean;
  release(): Promise<void>;
}

/**
 * Keeps servers away from a database until it is released.
 * @throws RestoreError when a server has it.
 * @throws NoDatabaseError when there is none.
 */
export async function holdStill(address: DatabaseAddress): Promise<CopySource> {
  if ('databaseUrl' in address) {
    const database = await openPostgresCopy(address.databaseUrl);
    return held(database, (isDistributed) => requireNoServer(database, isDistributed));
  }
  const file = fileOf(address.dataDir);
  const lock = lockDirectory(address.dataDir, () => {
    throw new RestoreError(
      `A server is running on ${address.dataDir}. Stop it first, or copy with --live while it runs.`,
    );
  });
  try {
    return underLock(openSqliteCopy(file, { isReadOnly: true }), lock);
  } catch (error) {
    lock.release();
    throw error;
  }
}

function underLock(database: CopyDatabase, lock: DirectoryLock): CopySource {
  return {
    database,
    hasTriggers: true,
    release: async () => {
      await database.close();
      lock.release();
    },
  };
}

function fileOf(dataDir: string): string {
  const file = databaseFile(dataDir);
  if (existsSync(file)) return file;
  throw new NoDatabaseError(`There is no database ${file}.`);
}

/** @param check gives whether the tables are distributed. */
async function held(
  database: PostgresCopy,
  check: (isDistributed: boolean) => Promise<void>,
): Promise<CopySource> {
  try {
    const distributed = await isDistributed(async (text) => ({ rows: await database.ask(text) }));
    await check(distributed);
    return { database, hasTriggers: !distributed, release: () => database.close() };
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** Each server takes the lock of migrations when it starts, so none starts while this holds it. */
async function requireNoServer(database: PostgresCopy, isDistributed: boolean): Promise<void> {
  const isHeld = await takeLock(database, migrationLock);
  const [found] = await database.ask(
    `select count(*)::int as connected from pg_stat_activity
      where datname = current_database() and application_name = '${serverName}'`,
  );
  if (isHeld && found?.['connected'] === 0) return;
  const otherwise = isDistributed ? '' : ', or copy with --live while they run';
  throw new RestoreError(
    `A server is connected to the database. Stop all servers first${otherwise}.`,
  );
}

/** Any number that other software on the same database is unlikely to lock. */
const copyLock = 7_476_200_121;

/**
 * A database that servers may go on writing to. Of several copies of one vault, one is made at a time.
 * @param isStopped whether one with distributed tables can be taken as well, while no server has it.
 * @throws RestoreError while another copy is made, or where tables are distributed: those have no triggers.
 * @throws NoDatabaseError when there is none.
 */
export async function takeServed(
  address: DatabaseAddress,
  { isStopped = false } = {},
): Promise<CopySource> {
  if ('databaseUrl' in address) {
    const database = await openPostgresCopy(address.databaseUrl);
    return held(database, async (isDistributed) => {
      if (!(await takeLock(database, copyLock))) throw new RestoreError(anotherCopy);
      if (!isDistributed) return;
      if (isStopped) return requireNoServer(database, isDistributed);
      throw new RestoreError(
        'The tables are distributed over several servers, so that no copy can follow their changes. Stop the ' +
          'servers of the vault, and copy it without --live.',
      );
    });
  }
  const file = fileOf(address.dataDir);
  const lock = lockFile(address.dataDir, 'copy.lock');
  if (lock === undefined) throw new RestoreError(anotherCopy);
  try {
    return underLock(openSqliteCopy(file), lock);
  } catch (error) {
    lock.release();
    throw error;
  }
}

const anotherCopy = 'Another copy of this vault is being made. Nothing was changed.';

/** What the source knows of a copy that is made while servers run. */
export interface OutgoingCopy {
  /** A new one for each that begins. */
  readonly id: string;
  /** When the source began to refuse writes to what is copied; null before. */
  readonly stoppedAt: number | null;
  /** When that became final; null before. */
  readonly movedAt: number | null;
  /** When its new place was opened; null before, and then the vault is served nowhere. */
  readonly openedAt: number | null;
}

const outgoingColumns = 'id, stopped_at, moved_at, opened_at';

/** @param tenant of a copy of it alone. */
export async function readOutgoing(
  database: CopyDatabase,
  tenant?: TenantId,
): Promise<OutgoingCopy | undefined> {
  const exists = selectTable(database.engine, outgoingCopy);
  if ((await database.rows(exists)).length === 0) return undefined;
  const [row] =
    tenant === undefined
      ? await database.rows(`select ${outgoingColumns} from ${outgoingCopy} where tenant is null`)
      : await database.rows(`select ${outgoingColumns} from ${outgoingCopy} where tenant = ?1`, [
          tenant,
        ]);
  if (row === undefined) return undefined;
  const [id, stoppedAt, movedAt, openedAt] = row;
  const numberOf = (value: SqlValue | undefined) => (value == null ? null : Number(value));
  return {
    id: String(id),
    stoppedAt: numberOf(stoppedAt),
    movedAt: numberOf(movedAt),
    openedAt: numberOf(openedAt),
  };
}

/** From now on every change is noted. What an earlier copy has left is removed. */
export async function beginJournal(
  database: CopyDatabase,
  journaled: Journaled,
  id: string,
): Promise<void> {
  await withoutWriters(database, journaled, async () => {
    await database.run(...withoutJournal(database.types));
    await insertOutgoing(database, journaled, id);
    await database.run(...journalStatements(database.types, journaled));
  });
}

/** Copies of others that have not stopped anything followed a journal that is gone. */
async function insertOutgoing(
  database: CopyDatabase,
  { tenant }: Pick<Journaled, 'tenant'>,
  id: string,
): Promise<void> {
  const { text, integer } = database.types;
  await database.run(
    `create table if not exists ${outgoingCopy} (id ${text} not null, tenant ${text},
      stopped_at ${integer}, moved_at ${integer}, opened_at ${integer})`,
    `delete from ${outgoingCopy} where stopped_at is null`,
  );
  const values = [id, tenant ?? null];
  await database.rows(`insert into ${outgoingCopy} (id, tenant) values (?1, ?2)`, values);
}

/** Removes what a copy needs of the source, where it has not moved. What was refused is accepted again. */
export async function endJournal(database: CopyDatabase, journaled: Journaled): Promise<void> {
  const { tables, tenant } = journaled;
  await withoutWriters(database, journaled, async () => {
    await database.run(...withoutJournal(database.types));
    if (tenant === undefined) {
      await database.run(`delete from ${outgoingCopy} where tenant is null`);
    } else {
      await database.run(...withoutTenantRefusals(database.types, tables, tenant));
      await setAway(database, tenant, null);
      await database.rows(`delete from ${outgoingCopy} where tenant = ?1`, [tenant]);
    }
  });
}

async function setAway(database: CopyDatabase, tenant: TenantId, until: number | null) {
  await database.rows(`update tenants set away_until = ${until} where tenant_id = ?1`, [tenant]);
}

/** For how long servers are to refuse a tenant that is about to move, if the command is killed before it has. */
const leavingMs = 20 * second;
/** In which time servers have read the rows of tenants again. */
const followedMs = 1.1 * second;

/**
 * Lets the servers of the source refuse what comes for a tenant, so that no write of it is under way when the database
 * refuses them too, next to writes of others. It ends by itself.
 */
export async function announceMove(database: CopyDatabase, tenant: TenantId): Promise<void> {
  const until = (await nowOf(database)) + leavingMs;
  await writing(database, () => setAway(database, tenant, until), { lasts: true });
  await pause(followedMs);
}

/** Lets the servers serve the tenant again. */
export async function withdrawMove(database: CopyDatabase, tenant: TenantId): Promise<void> {
  await writing(database, () => setAway(database, tenant, null), { lasts: true });
}

/** The source refuses the tenant from now on, while it is copied. The move is not final yet. */
export async function stopTenant(source: CopySource, scope: TenantScope, id: string) {
  const { database } = source;
  if (source.hasTriggers) await announceMove(database, scope.tenant);
  await withoutWriters(database, scope, async () => {
    await insertOutgoing(database, scope, id);
    await refuseWrites(source, scope, await nowOf(database));
  });
}

async function refuseWrites(
  { database, hasTriggers }: Pick<CopySource, 'database' | 'hasTriggers'>,
  journaled: Journaled,
  at: number,
): Promise<void> {
  const { tenant } = journaled;
  if (tenant === undefined) {
    await database.run(`update schema_version set oldest_server = ${movingServer}`);
    await database.rows(`update ${outgoingCopy} set stopped_at = ?1 where tenant is null`, [at]);
  } else {
    await setAway(database, tenant, awayForGood);
    await database.rows(`update ${outgoingCopy} set stopped_at = ?1 where tenant = ?2`, [
      at,
      tenant,
    ]);
  }
  if (hasTriggers) await database.run(...refusalStatements(database.types, journaled));
}

/** A tenant that was stopped has moved: from the commit on only its copy may be opened. */
export async function moveStopped(database: CopyDatabase, tenant: TenantId): Promise<number> {
  const at = await nowOf(database);
  const text = `update ${outgoingCopy} set moved_at = ?1 where tenant = ?2`;
  await writing(database, () => database.rows(text, [at, tenant]), { lasts: true });
  return at;
}

/** What refuses writes to a tenant that has moved, and what is known of the move, when all of its rows are to go. */
export async function forgetMove(database: CopyDatabase, scope: TenantScope): Promise<void> {
  await withoutWriters(database, scope, () =>
    database.run(...withoutTenantRefusals(database.types, scope.tables, scope.tenant)),
  );
}

/** Afterwards the tenant can come back. */
export async function removeOutgoing(database: CopyDatabase, tenant: TenantId): Promise<void> {
  if ((await readOutgoing(database, tenant)) === undefined) return;
  const text = `delete from ${outgoingCopy} where tenant = ?1`;
  await writing(database, () => database.rows(text, [tenant]), { lasts: true });
}

/** How long writers are kept waiting before others get their turn again. */
const lockTimeoutMs = 2_000;
const lockTriesMax = 30;

/** A transaction during which nobody else writes to the tables. Readers go on. */
async function withoutWriters<T>(
  database: CopyDatabase,
  { tables }: Pick<Journaled, 'tables'>,
  work: () => Promise<T>,
): Promise<T> {
  const locked = async () => {
    if (database.engine === 'postgres') {
      await database.run(
        `set local lock_timeout = ${lockTimeoutMs}`,
        `lock table ${tables.join(', ')} in share row exclusive mode`,
      );
    }
    return work();
  };
  for (let tries = 1; ; tries++) {
    try {
      return await writing(database, locked, { lasts: true });
    } catch (error) {
      // A server that writes had locks that this waited for, or the other way round. Nothing was done.
      if (!(isLockLost(error) || isBusy(error)) || tries === lockTriesMax) throw error;
      await pause(second / 2);
    }
  }
}

/** The longest time for which a copy keeps the source from writing; that of a tenant keeps others waiting. */
const stopMsMax = { vault: 8 * second, tenant: 2 * second } as const;

/** The rest was too large to be copied while nobody writes. The source goes on. */
export class StopTooLongError extends Error {
  override readonly name = 'StopTooLongError';
}

export interface Stopped {
  readonly movedAt: number;
  /** How long writes waited before they were refused. */
  readonly stoppedMs: number;
}

/**
 * Stops the writes, does the rest, and commits that the vault has moved: until that commit a crash lets the source go
 * on as if nothing had happened, and from it on no server writes there again.
 * @param rest gets what it calls from time to time: it throws {@link StopTooLongError} once the time is over.
 */
export async function stopForGood(
  database: CopyDatabase,
  journaled: Journaled,
  rest: (check: () => void) => Promise<void>,
): Promise<Stopped> {
  let begun = 0;
  const { tenant } = journaled;
  const most = stopMsMax[tenant === undefined ? 'vault' : 'tenant'];
  const check = () => {
    if (performance.now() - begun > most) throw new StopTooLongError('the rest is too large');
  };
  const movedAt = await withoutWriters(database, journaled, async () => {
    begun = performance.now();
    await rest(check);
    const at = await nowOf(database);
    await refuseWrites({ database, hasTriggers: true }, journaled, at);
    await database.run(
      ...withoutJournal(database.types),
      `update ${outgoingCopy} set moved_at = stopped_at where stopped_at = ${at}`,
    );
    check();
    return at;
  });
  return { movedAt, stoppedMs: Math.round(performance.now() - begun) };
}

/** The new place is open: what the source responds with, and says to a server that starts, leads there. */
export async function noteOpened(database: CopyDatabase, tenant?: TenantId): Promise<void> {
  const at = await nowOf(database);
  await writing(
    database,
    async () => {
      if (tenant !== undefined) {
        const text = `update ${outgoingCopy} set opened_at = ?1 where tenant = ?2`;
        await database.rows(text, [at, tenant]);
        return;
      }
      await database.rows(`update ${outgoingCopy} set opened_at = ?1 where tenant is null`, [at]);
      await database.run(
        `update schema_version set oldest_server = ${movedServer} where oldest_server = ${movingServer}`,
      );
    },
    { lasts: true },
  );
}

/** By the clock of the database. */
export async function nowOf(database: CopyDatabase): Promise<number> {
  if (database.engine === 'sqlite') return Date.now();
  const [row] = await database.rows(
    'select round(extract(epoch from clock_timestamp()) * 1000)::bigint',
  );
  return Number(row?.[0]);
}
