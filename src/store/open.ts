/** Opens the store on the engine that the configuration names. */
import { openPostgres } from './postgres.ts';
import { openSqlite } from './sqlite.ts';
import type { Store, StoreOptions } from './store.ts';

export function openStore(options: StoreOptions): Promise<Store> {
  return options.databaseUrl === undefined
    ? openSqlite(options)
    : openPostgres(options.databaseUrl, options);
}
