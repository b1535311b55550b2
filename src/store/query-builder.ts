/** Building queries for either engine without a connection: the store runs what they compile to. */
import {
  type Dialect,
  DummyDriver,
  Kysely,
  type LimitNode,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  ValueNode,
} from 'kysely';
import type { DatabaseSchema } from './tables.ts';

/**
 * Limits are part of the statement's text. SQLite plans with the value of a limit that is bound, and so prepares
 * the statement again for each run, which takes several times as long as the run.
 */
class EmbeddedQueryCompiler extends SqliteQueryCompiler {
  protected override visitLimit({ limit }: LimitNode): void {
    if (!ValueNode.is(limit) || !Number.isSafeInteger(limit.value)) {
      throw new TypeError('a limit is an integer');
    }
    this.append(`limit ${limit.value}`);
  }
}

const sqlite: Dialect = {
  createAdapter: () => new SqliteAdapter(),
  createDriver: () => new DummyDriver(),
  createIntrospector: (db) => new SqliteIntrospector(db),
  createQueryCompiler: () => new EmbeddedQueryCompiler(),
};

const postgres: Dialect = {
  createAdapter: () => new PostgresAdapter(),
  createDriver: () => new DummyDriver(),
  createIntrospector: (db) => new PostgresIntrospector(db),
  createQueryCompiler: () => new PostgresQueryCompiler(),
};

export const sqliteBuilder = new Kysely<DatabaseSchema>({ dialect: sqlite });
export const postgresBuilder = new Kysely<DatabaseSchema>({ dialect: postgres });
