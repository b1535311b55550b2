/** Values written into SQL, for those who write outside the vault. */
import type { SqlValue } from '../../src/store/tables.ts';
import type { Engine } from './engines.ts';

export function literal({ name }: Pick<Engine, 'name'>, value: SqlValue): string {
  if (value === null) return 'null';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return `'${value.replaceAll("'", "''")}'`;
  const hex = Buffer.from(value).toString('hex');
  return name === 'sqlite' ? `x'${hex}'` : `'\\x${hex}'::bytea`;
}
