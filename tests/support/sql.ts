/** Values written into SQL, for those who write to the database outside the vault. */
import { storedForm } from '../../src/store/stored-form.ts';
import { kindOf, type SqlValue, type Table } from '../../src/store/tables.ts';
import type { Engine } from './engines.ts';

export function literal({ name }: Pick<Engine, 'name'>, value: SqlValue): string {
  if (value === null) return 'null';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return `'${value.replaceAll("'", "''")}'`;
  const hex = Buffer.from(value).toString('hex');
  return name === 'sqlite' ? `x'${hex}'` : `'\\x${hex}'::bytea`;
}

type Values = Readonly<Record<string, SqlValue>>;

/** Each as `column = value`, in the form in which the table holds it. */
export function equations(engine: Pick<Engine, 'name'>, table: Table, values: Values): string[] {
  return Object.entries(values).map(([column, value]) => {
    const stored = storedForm(kindOf(table, column), value);
    return `${column} = ${literal(engine, stored)}`;
  });
}

/** The condition that a row has all of these values. */
export function having(engine: Pick<Engine, 'name'>, table: Table, values: Values): string {
  return equations(engine, table, values).join(' and ');
}

/** The statement that writes a row outside the vault. */
export function insertion(engine: Pick<Engine, 'name'>, table: Table, row: object): string {
  const entries = Object.entries(row as Values);
  const values = entries.map(([column, value]) =>
    literal(engine, storedForm(kindOf(table, column), value)),
  );
  const names = entries.map(([column]) => column);
  return `insert into ${table} (${names.join(', ')}) values (${values.join(', ')})`;
}
