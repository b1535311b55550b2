/** Queries about rotations of tenants' keys. */
import type { TenantId } from '../../base/ids.ts';
import type { Query } from '../store.ts';
import type { Key, Row } from '../tables.ts';
import { storedId, storedTenant } from './stored.ts';

/** The latest rotation of each purpose, the oldest first. */
export function rotationsOf(tenant: TenantId): Query<Row<'key_rotations'>> {
  return (db) =>
    db
      .selectFrom('key_rotations')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .orderBy('started_at')
      .orderBy('purpose');
}

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
