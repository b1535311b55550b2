/** Whether a file has the tables, indexes and triggers that the vault made, and nothing else. */
import { DatabaseSync } from 'node:sqlite';
import { released } from '../migrations/migrate.ts';
import { RestoreError } from '../restore-error.ts';
import { migrate, unchangingFile } from './database.ts';

/**
 * An attacker who can write to a backup could add a trigger, which would act on the restored vault, or a column whose
 * name is a part of a statement.
 * @param version the schema version of the file.
 * @throws RestoreError, which names what differs.
 */
export function requireOwnSchema(file: string, version: number): void {
  const copy = new DatabaseSync(unchangingFile(file), { readOnly: true });
  const own = new DatabaseSync(':memory:');
  try {
    migrate(own, released.slice(0, version));
    const [found, expected] = [objectsIn(copy), objectsIn(own)];
    const name = [...found.keys(), ...expected.keys()].find(
      (one) => found.get(one) !== expected.get(one),
    );
    if (name === undefined) return;
    throw new RestoreError(
      `${file} was altered: ${JSON.stringify(name)} is not as a vault of schema version ${version} has it.`,
    );
  } finally {
    copy.close();
    own.close();
  }
}

/** What SQLite keeps for itself, such as statistics, has names that nothing else can have. */
function objectsIn(database: DatabaseSync): ReadonlyMap<string, string> {
  const rows = database
    .prepare(
      "select type, name, tbl_name, sql from sqlite_schema where name not like 'sqlite^_%' escape '^'",
    )
    .all();
  return new Map(
    rows.map(({ type, name, tbl_name, sql }) => [
      `${type} ${name}`,
      JSON.stringify([tbl_name, sql]),
    ]),
  );
}
