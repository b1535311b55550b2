/** Opens the store on the engine that the configuration names. The other engine is not even read. */
import { notifyAfterCommit } from '../notify-after-commit.ts';
import type { Store, StoreOptions } from '../store.ts';

export async function openStore(options: StoreOptions): Promise<Store> {
  if (options.databaseUrl === undefined) {
    const { openSqlite } = await import('../sqlite/engine.ts');
    return notifyAfterCommit(await openSqlite(options));
  }
  const { openPostgres } = await import('../postgres/engine.ts');
  return notifyAfterCommit(await openPostgres(options.databaseUrl, options));
}
