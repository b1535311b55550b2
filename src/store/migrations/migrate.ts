/** Migrations: what each version of the schema adds, applied once and in order. */
import { vault } from './0001-vault.ts';
import type { ColumnTypes } from './column-types.ts';

/** The migration at index n leads to version n + 1. Released ones are never edited. */
const migrations: readonly ((types: ColumnTypes) => string[])[] = [vault];

export const schemaVersion = migrations.length;

/** The store was written by a later release than this one. */
export class DowngradeError extends Error {
  constructor(found: number) {
    super(
      `The database has schema version ${found}; this release knows ${schemaVersion}. ` +
        'Start the release that wrote it, or a later one. Nothing was changed.',
    );
    this.name = 'DowngradeError';
  }
}

/**
 * The statements that lead from version `found` to {@link schemaVersion}, the new version included.
 * The caller runs them in one transaction that no other server can enter at the same time.
 */
export function pendingStatements(found: number, types: ColumnTypes): string[] {
  if (found > schemaVersion) throw new DowngradeError(found);
  const statements = migrations.slice(found).flatMap((migration) => migration(types));
  if (found < schemaVersion) {
    statements.push(
      'delete from schema_version',
      `insert into schema_version (version) values (${schemaVersion})`,
    );
  }
  return statements;
}

export const createVersionTable = (types: ColumnTypes): string =>
  `create table if not exists schema_version (version ${types.integer} not null) ${types.strict}`;
