/**
 * Statements whose rows are lists of values. Objects that SQLite itself makes have a dictionary each, which makes
 * every use of them slow; a list is also made in half the time, and crosses to another thread without its names.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { SqlValue } from '../tables.ts';

type ValueList = readonly SqlValue[];

export interface ListStatement {
  /** The names of the columns. */
  readonly names: readonly string[];
  readonly get: (parameters: ValueList) => ValueList | undefined;
  readonly all: (parameters: ValueList) => readonly ValueList[];
}

export function prepareLists(database: DatabaseSync, sql: string): ListStatement {
  const statement = database.prepare(sql);
  statement.setReturnArrays(true);
  return {
    names: statement.columns().map(({ name }) => name),
    get: (parameters) => statement.get(...parameters) as unknown as ValueList | undefined,
    all: (parameters) => statement.all(...parameters) as unknown as readonly ValueList[],
  };
}
