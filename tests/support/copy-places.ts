/** Empty places for the copy of a vault. On Citus, those that tests get otherwise have distributed tables. */
import { isCitus } from './citus-cluster.ts';
import type { Engine, Place } from './engines.ts';
import type { Lender } from './temporary.ts';

/** On Citus a database with the extension: a copy distributes its tables. */
export async function emptyPlace(t: Lender, engine: Engine): Promise<Place> {
  const place = await engine.place(t);
  if (place.databaseUrl !== undefined && isCitus()) {
    const text = `select oid::regclass::text as name from pg_class
      where relkind = 'r' and relnamespace = 'public'::regnamespace`;
    const tables = (await engine.run(place, text)).map(({ name }) => name);
    await engine.run(place, `drop table ${tables.join(', ')}`);
  }
  return place;
}
