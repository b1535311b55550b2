/** Queries whose text is made once for each engine: only their values are new each time. */
import { type CompiledQuery, type Kysely, type RawBuilder, sql } from 'kysely';
import type { Query } from './store.ts';
import type { DatabaseSchema } from './tables.ts';

/** Placeholders of a query's values, by name, or by position for a list. */
export type PlaceOf<V> = <Name extends keyof V>(name: Name) => RawBuilder<V[Name]>;

class Placeholder {
  readonly name: PropertyKey;

  constructor(name: PropertyKey) {
    this.name = name;
  }
}

/**
 * Building and compiling a query takes several times as long as running it in SQLite.
 * @param build is called once for each engine. Values without a placeholder are the same in every query.
 * @param statement the name under which PostgreSQL keeps the plan.
 */
export function prepared<V extends object, R>(
  build: (placeOf: PlaceOf<V>) => Query<R>,
  statement?: string,
): (values: V) => Query<R> {
  const compiledFor = new WeakMap<Kysely<DatabaseSchema>, CompiledQuery<R>>();
  const placeOf: PlaceOf<V> = (name) => sql`${new Placeholder(name)}`;

  function compiled(db: Kysely<DatabaseSchema>): CompiledQuery<R> {
    const known = compiledFor.get(db);
    if (known) return known;
    const made = build(placeOf)(db).compile();
    compiledFor.set(db, made);
    return made;
  }

  return (values) => {
    const valueAt = (parameter: unknown) =>
      parameter instanceof Placeholder ? values[parameter.name as keyof V] : parameter;
    const query = (db: Kysely<DatabaseSchema>) => ({
      compile: () => {
        const { parameters, ...rest } = compiled(db);
        return { ...rest, parameters: parameters.map(valueAt) };
      },
    });
    return statement === undefined ? query : Object.assign(query, { statement });
  };
}
