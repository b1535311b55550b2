/** A vault that gets one more tenant, while it serves its others. It serves the new one from the last step on. */
import { existsSync, statfsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { TenantId } from '../../base/ids.ts';
import { refusalOf, schemaVersion, selectState, stateOf } from '../migrations/migrate.ts';
import { RestoreError } from '../restore-error.ts';
import { busyTimeoutMs, databaseFile } from '../sqlite/database.ts';
import { lockFile } from '../sqlite/directory-lock.ts';
import { freeBytesFloor } from '../sqlite/free-space.ts';
import { createRoom } from '../sqlite/room.ts';
import { incomingCopy } from '../unfinished-restore.ts';
import { type CopyDatabase, selectTable, writing } from './copy-database.ts';
import { fullDisk } from './full-disk.ts';
import { openPostgresCopy, takeLock } from './postgres-copy.ts';
import { removeTenant, scopeOf, type TenantScope } from './rows.ts';
import type { DatabaseAddress } from './source.ts';
import { openSqliteCopy } from './sqlite-copy.ts';
import {
  type CopyTarget,
  createState,
  createTarget,
  readState,
  removeState,
  renameCopy,
  type TargetOptions,
} from './target.ts';

export interface TenantTargetOptions extends TargetOptions {
  readonly tenant: TenantId;
  /** The bytes that servers of the target leave free; see `room.ts`. */
  readonly freeBytesMin: number | undefined;
}

/**
 * Goes on where an earlier copy of that name ended.
 * @param begin removes what any other copy of the tenant has left, and begins where there is none of that name.
 * @returns `undefined` where there is no such copy and none is to begin; nothing has changed then.
 * @throws RestoreError when there is no vault, or when it has the tenant; nothing has changed then.
 */
export async function takeTenantTarget(
  address: DatabaseAddress,
  { tenant, copy, begin, freeBytesMin }: TenantTargetOptions,
): Promise<CopyTarget | undefined> {
  const { database, release, ...room } = await openTarget(address, freeBytesMin);
  try {
    await requireVault(database);
    const known = await readState(database, tenant);
    const isResumed = known?.copy === copy;
    if (!isResumed && !begin) {
      await release();
      return undefined;
    }
    const state = isResumed ? known : { copy, indexes: [], tables: {} };
    if (!isResumed) {
      if (known) await removeIncoming(database, scopeOf(tenant));
      else await requireNoTenant(database, tenant);
      await writing(database, () => createState(database, state, tenant), { lasts: true });
    }
    return createTarget({
      database,
      state,
      isResumed,
      tenant,
      ...room,
      release,
      serve: () =>
        writing(
          database,
          async () => {
            await removeState(database, tenant);
            await database.rows('update tenants set away_until = null where tenant_id = ?1', [
              tenant,
            ]);
          },
          { lasts: true },
        ),
    });
  } catch (error) {
    await release();
    throw error;
  }
}

/**
 * Removes what an unfinished copy of the tenant has left.
 * @returns `undefined` where there is none, else how many rows it had.
 */
export async function abandonIncoming(
  address: DatabaseAddress,
  tenant: TenantId,
): Promise<number | undefined> {
  const { database, release } = await openTarget(address);
  try {
    const known = await readState(database, tenant);
    return known && (await removeIncoming(database, scopeOf(tenant)));
  } finally {
    await release();
  }
}

async function removeIncoming(database: CopyDatabase, scope: TenantScope): Promise<number> {
  // If this is interrupted, what is left is no copy that could go on.
  await writing(database, () => renameCopy(database, scope.tenant), { lasts: true });
  const removed = await removeTenant(database, scope);
  await writing(database, () => removeState(database, scope.tenant), { lasts: true });
  return removed;
}

const anotherCopy = 'Another copy into this vault is being made. Nothing was changed.';
const noVault =
  'There is no vault in the target, and a tenant moves into one. Start a server there once, and run the same command ' +
  'again. Nothing was changed.';

/** What the rows that are written at a time take on the disk, where each of them changes a page of every index. */
const pageBytesMax = 32 * 2 ** 20;

interface OpenTarget {
  readonly database: CopyDatabase;
  /** PostgreSQL does not say how much is free. */
  readonly requireRoom?: () => void;
  release(): Promise<void>;
}

/** Any number that other software on the same database is unlikely to lock. */
const incomingLock = 7_476_200_122;

async function openTarget(address: DatabaseAddress, given?: number): Promise<OpenTarget> {
  if ('databaseUrl' in address) {
    const database = await openPostgresCopy(address.databaseUrl);
    const release = () => database.close();
    try {
      if (await takeLock(database, incomingLock)) return { database, release };
      throw new RestoreError(anotherCopy);
    } catch (error) {
      await release();
      throw error;
    }
  }
  const file = databaseFile(address.dataDir);
  if (!existsSync(file)) throw new RestoreError(noVault);
  const lock = lockFile(address.dataDir, `${incomingCopy}.lock`);
  if (lock === undefined) throw new RestoreError(anotherCopy);
  const database = openSqliteCopy(file);
  const { bsize, blocks } = statfsSync(address.dataDir);
  const freeBytesMin = freeBytesFloor({ sizeBytes: bsize * blocks }, given);
  const looking = new DatabaseSync(file, { timeout: busyTimeoutMs });
  const room = createRoom(looking, {
    dataDir: address.dataDir,
    freeBytesMin: freeBytesMin + pageBytesMax,
  });
  return {
    database,
    requireRoom: () => {
      if (room.isShort()) throw fullDisk(file, 'nearly full');
    },
    release: async () => {
      looking.close();
      await database.close();
      lock.release();
    },
  };
}

async function requireVault(database: CopyDatabase): Promise<void> {
  const exists = selectTable(database.engine, 'schema_version');
  if ((await database.rows(exists)).length === 0) throw new RestoreError(noVault);
  const [row] = await database.rows(selectState);
  const found = stateOf({ version: row?.[0], oldest_server: row?.[1] });
  const refusal = refusalOf(found);
  if (refusal) throw refusal;
  if (found.version === schemaVersion) return;
  throw new RestoreError(
    'A server of another release wrote the target. Start one of this release there first. Nothing was changed.',
  );
}

/** Rows of another tenant may be in the way, too. */
async function requireNoTenant(database: CopyDatabase, tenant: TenantId): Promise<void> {
  const found = await database.rows('select 1 from tenants where tenant_id = ?1', [tenant]);
  if (found.length === 0) return;
  throw new RestoreError(
    'The target has this tenant, or had it and deleted it. If the tenant moved away from there, remove its rows with ' +
      'strongroom tenant delete first. Nothing was changed.',
  );
}
