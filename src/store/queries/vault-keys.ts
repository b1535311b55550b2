/** Queries about the keys of the vault itself. */
import { sql } from 'kysely';
import type { Query } from '../store.ts';
import type { Row } from '../tables.ts';

/** Begins the names of the pairs that sign webhooks, of which there may be one for each tenant. */
const pairPrefix = 'webhooks.v';

export const allVaultKeys: Query<Row<'vault_keys'>> = (db) =>
  db.selectFrom('vault_keys').selectAll().orderBy('name');

export function vaultKeyNamed(name: string): Query<Row<'vault_keys'>> {
  return (db) => db.selectFrom('vault_keys').selectAll().where('name', '=', name);
}

/** All but the pairs that sign webhooks: there are few of them. */
export const rootVaultKeys: Query<Row<'vault_keys'>> = (db) =>
  db
    .selectFrom('vault_keys')
    .selectAll()
    .where('name', 'not like', `${pairPrefix}%`)
    .orderBy('name');

/** Rows that the vault did not write, and that are passed over. */
const strangeMax = 20;

/** The names of the pairs that sign webhooks, the highest numbers first. */
export const newestPairNames: Query<Pick<Row<'vault_keys'>, 'name'>> = (db) =>
  db
    .selectFrom('vault_keys')
    .select('name')
    .where('name', 'like', `${pairPrefix}%`)
    .orderBy(sql`length(name)`, 'desc')
    .orderBy('name', 'desc')
    .limit(strangeMax);
