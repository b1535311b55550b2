/** An empty PostgreSQL database as the target of a copy. No server serves it before the last step. */
import { createVersionTable, pendingStatements, released } from '../migrations/migrate.ts';
import { distributeNewTables } from '../postgres/distribution.ts';
import { migrationLock } from '../postgres/engine.ts';
import {
  dropVault,
  placeOf,
  restoreLock,
  vaultTables,
  withoutIndexes,
} from '../postgres/restore.ts';
import { RestoreError } from '../restore-error.ts';
import { restoringServer } from '../unfinished-restore.ts';
import { openPostgresCopy, type PostgresCopy, takeLock } from './postgres-copy.ts';
import {
  type CopyTarget,
  createState,
  createTarget,
  dropState,
  readState,
  type TargetOptions,
} from './target.ts';

/**
 * Goes on where an earlier copy of that name ended.
 * @param begin removes what any other copy has left, and begins where there is none of that name.
 * @returns `undefined` where there is no such copy and none is to begin; nothing has changed then.
 * @throws RestoreError when the database is not empty; nothing has changed then.
 */
export async function takeDatabase(
  databaseUrl: string,
  { copy, begin }: TargetOptions,
): Promise<CopyTarget | undefined> {
  const database = await openPostgresCopy(databaseUrl);
  try {
    if (!(await takeLock(database, restoreLock))) {
      throw new RestoreError(
        'Another copy or restore into this database is running. Nothing was changed.',
      );
    }
    const place = await placeOf(database.ask);
    if (place === 'taken') {
      throw new RestoreError(
        'The database is not empty: it has tables with the names of a vault. Name an empty one. Nothing was changed.',
      );
    }
    const known = place === 'unfinished' ? await readState(database) : undefined;
    const isResumed = known?.copy === copy;
    if (!isResumed && !begin) {
      await database.close();
      return undefined;
    }
    const state = isResumed ? known : await prepare(database, copy);
    return createTarget({
      database,
      state,
      isResumed,
      release: () => database.close(),
      serve: async () => {
        const oldest = released.at(-1)?.oldestServer;
        await database.run(
          `analyze ${vaultTables.join(', ')}`,
          `begin; ${dropState}; update schema_version set oldest_server = ${oldest}; commit`,
        );
      },
    });
  } catch (error) {
    await database.close();
    throw error;
  }
}

/**
 * From the first commit on no server starts here, unless the tables cannot be made: then nothing is left. Tables are
 * distributed while they are empty, and Citus distributes an index with its table, so that none is left out there.
 */
async function prepare(database: PostgresCopy, copy: string) {
  const { types, ask } = database;
  await database.run(
    'begin',
    `select pg_advisory_xact_lock(${migrationLock})`,
    dropVault,
    createVersionTable(types),
    `insert into schema_version (version, oldest_server) values (0, ${restoringServer})`,
    'commit',
  );
  try {
    await database.run(
      'begin',
      ...pendingStatements({ version: 0, oldestServer: 0 }, types),
      `update schema_version set oldest_server = ${restoringServer}`,
    );
    const placement = await distributeNewTables(async (text) => ({ rows: await ask(text) }));
    const indexes = placement === 'distributed' ? [] : await withoutIndexes(ask);
    const state = { copy, indexes, tables: {} };
    await createState(database, state);
    await database.run('commit');
    return state;
  } catch (error) {
    await database.run('rollback', dropVault).catch(() => undefined);
    throw error;
  }
}
