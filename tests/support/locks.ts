/** Storage that makes its writers wait, as when another process is in the middle of a long commit. */
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { databaseFile } from '../../src/store/sqlite/database.ts';
import type { Engine, Place } from './engines.ts';
import type { Lender } from './temporary.ts';

type Release = () => Promise<void>;

/** Until it is released, at the latest after the test, no change can be committed. Reading goes on. */
export async function holdWrites(t: Lender, engine: Engine, place: Place): Promise<Release> {
  if (engine.name === 'postgres') return lockTable(t, place, 'logs in exclusive mode');
  const database = new DatabaseSync(databaseFile(place.dataDir), { timeout: 5000 });
  database.exec('begin immediate');
  const release = async () => {
    if (database.isOpen) database.close();
  };
  t.after(release);
  return release;
}

/** Takes a lock on PostgreSQL, such as `tokens in access exclusive mode`. */
export async function lockTable(t: Lender, place: Place, lock: string): Promise<Release> {
  return hold(t, place, `lock table ${lock}`);
}

/** Takes what a statement locks on PostgreSQL, such as `select 1 from tokens for update`. */
export async function hold(t: Lender, place: Place, statement: string): Promise<Release> {
  const client = new pg.Client({ connectionString: place.databaseUrl });
  await client.connect();
  const release = () => client.end();
  t.after(release);
  await client.query('begin');
  await client.query(statement);
  return release;
}
