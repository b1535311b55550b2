/** Queries about rotations of tenants' keys. */
import { sql } from 'kysely';
import type { TenantId } from '../../base/ids.ts';
import { isSafe } from '../safe-integers.ts';
import type { Query } from '../store.ts';
import { type Key, type Row, shapes } from '../tables.ts';
import { storedId, storedTenant } from './stored.ts';

/** The latest rotation of each purpose, the oldest first, without rows that the vault cannot have written. */
export function rotationsOf(tenant: TenantId): Query<Row<'key_rotations'>> {
  const { columns, kinds } = shapes.key_rotations;
  const numbers = columns.filter((_, place) => kinds[place] === 'integer');
  return (db) =>
    db
      .selectFrom('key_rotations')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where(sql.join<boolean>(numbers.map(isSafe), sql` and `))
      .orderBy('started_at')
      .orderBy('purpose');
}

/** Rotations of all tenants that are under way, for the operator. No request or job reads them. */
export const rotationsUnderWay: Query<Row<'key_rotations'>> = (db) =>
  db
    .selectFrom('key_rotations')
    .selectAll()
    .where('phase', '<>', 'finished')
    .orderBy('started_at')
    .orderBy('tenant_id')
    .limit(rotationsMax);

const rotationsMax = 10_000;

/** Some claims of deduplicated values. */
export function claimsOf(tenant: TenantId, limit: number): Query<Key<'fingerprint_claims'>> {
  return (db) =>
    db
      .selectFrom('fingerprint_claims')
      .select(['tenant_id', 'fingerprint', 'expression'])
      .where('tenant_id', '=', storedTenant(tenant))
      .limit(limit);
}

/** The claims of one token. */
export function claimsOfToken({
  tenant_id,
  token_id,
}: Key<'tokens'>): Query<Key<'fingerprint_claims'>> {
  return (db) =>
    db
      .selectFrom('fingerprint_claims')
      .select(['tenant_id', 'fingerprint', 'expression'])
      .where('tenant_id', '=', storedTenant(tenant_id))
      .where('token_id', '=', storedId(token_id));
}
