/** Empty places for the copy of a vault. On Citus, those that tests get otherwise have distributed tables. */
import { execute, isCitus } from './citus-cluster.ts';
import type { Engine, Place } from './engines.ts';
import { sharedPostgres } from './postgres.ts';
import { type Lender, temporaryDirectory } from './temporary.ts';

/** On Citus a database with the extension: a copy distributes its tables. */
export async function emptyPlace(t: Lender, engine: Engine): Promise<Place> {
  const place = await engine.place(t);
  if (place.databaseUrl !== undefined && isCitus()) await dropTables(engine, place);
  return place;
}

/** Of a PostgreSQL database. The extension citus stays. */
export async function dropTables(engine: Engine, place: Place): Promise<void> {
  const tables = await tablesIn(engine, place);
  await engine.run(place, `drop table ${tables.join(', ')}`);
}

export async function tablesIn(engine: Engine, place: Place): Promise<readonly string[]> {
  const text = `select oid::regclass::text as name from pg_class
    where relkind = 'r' and relnamespace = 'public'::regnamespace`;
  return (await engine.run(place, text)).map(({ name }) => String(name));
}

/** A database of one server, on Citus of the one that is the coordinator of a cluster elsewhere. */
export async function plainPlace(t: Lender, postgres: Engine): Promise<Place> {
  if (!isCitus()) return postgres.place(t);
  const { url } = await sharedPostgres();
  const name = `plain_${temporaryDirectory(t).split('-').at(-1)?.toLowerCase()}`;
  await execute(url, `create database ${name} template template0`);
  t.after(() => execute(url, `drop database if exists ${name} with (force)`));
  const databaseUrl = Object.assign(new URL(url), { pathname: name }).href;
  return { databaseUrl, dataDir: temporaryDirectory(t) };
}
