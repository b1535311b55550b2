/** Queries about the keys of the vault itself, of which there are few. */
import type { Query } from '../store.ts';
import type { Row } from '../tables.ts';

export const allVaultKeys: Query<Row<'vault_keys'>> = (db) =>
  db.selectFrom('vault_keys').selectAll().orderBy('name');
