/** Opens the store on the engine that the configuration names. The other engine is not even read. */
import { createEpochs } from '../../base/epochs.ts';
import { notifyAfterCommit } from '../notify-after-commit.ts';
import type { AttachOptions, Store, StoreOptions } from '../store.ts';

/** Creates and migrates the database as needed. */
export async function openStore(options: StoreOptions): Promise<Store> {
  const epochs = createEpochs();
  if (options.databaseUrl === undefined) {
    const { openSqlite } = await import('../sqlite/engine.ts');
    return notifyAfterCommit(epochs, (onCommitEnd) =>
      openSqlite({ ...options, epochs, onCommitEnd }),
    );
  }
  const { openPostgres } = await import('../postgres/engine.ts');
  const { databaseUrl } = options;
  return notifyAfterCommit(epochs, (onCommitEnd) =>
    openPostgres(databaseUrl, { ...options, epochs, onCommitEnd }),
  );
}

/**
 * Opens the database of a restore before it has finished, when no server may: the embedded engine's in its staging
 * directory, which is migrated.
 */
export async function openRestored(options: StoreOptions): Promise<Store> {
  if (options.databaseUrl === undefined) return openStore(options);
  const { openRestoredPostgres } = await import('../postgres/engine.ts');
  const { databaseUrl } = options;
  return notifyAfterCommit(createEpochs(), (onCommitEnd) =>
    openRestoredPostgres(databaseUrl, { ...options, onCommitEnd }),
  );
}

/** Opens what the process of this thread has opened already. */
export async function attachStore(options: AttachOptions): Promise<Store> {
  const { databaseUrl, epochs } = options;
  if (databaseUrl === undefined) {
    const { attachSqlite } = await import('../sqlite/engine.ts');
    return notifyAfterCommit(epochs, (onCommitEnd) => attachSqlite({ ...options, onCommitEnd }));
  }
  const { attachPostgres } = await import('../postgres/engine.ts');
  return notifyAfterCommit(epochs, (onCommitEnd) =>
    attachPostgres(databaseUrl, { ...options, onCommitEnd }),
  );
}
