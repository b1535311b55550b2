/** Storage that makes its writers wait, as when another process is in the middle of a long commit. */
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { databaseFile } from '../../src/store/sqlite-database.ts';
import type { Engine, Place } from './engines.ts';

/** Until the returned function is called, no change can be committed. Reading goes on. */
export async function holdWrites(engine: Engine, place: Place): Promise<() => Promise<void>> {
  if (engine.name === 'postgres') return lockTable(place, 'logs', 'exclusive');
  const database = new DatabaseSync(databaseFile(place.dataDir));
  database.exec('begin immediate');
  return async () => database.close();
}

/** Takes a lock on a table of PostgreSQL and gives the function that lets go of it. */
export async function lockTable(
  place: Place,
  table: string,
  mode: 'exclusive' | 'access exclusive',
): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: place.databaseUrl });
  await client.connect();
  await client.query('begin');
  await client.query(`lock table ${table} in ${mode} mode`);
  return () => client.end();
}
