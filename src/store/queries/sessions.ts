/** Queries about sessions. */
import type { TenantId } from '../../lib/ids.ts';
import type { Query } from '../store.ts';
import type { Row } from '../tables.ts';

/** The session of that nonce, whether or not it has expired. */
export function sessionWithNonce(tenant: TenantId, nonceHash: string): Query<Row<'sessions'>> {
  return (db) =>
    db
      .selectFrom('sessions')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where('nonce_hash', '=', nonceHash);
}
