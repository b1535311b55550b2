/** How many bytes tokens and token intents have, of which none is read. */
import { sql } from 'kysely';
import type { TenantId, TokenId, TokenIntentId } from '../../lib/ids.ts';
import type { Query } from '../store.ts';
import { storedId, storedTenant } from './stored.ts';

/** Neither engine reads a value for its length. */
const bytes = sql<number>`coalesce(sum(octet_length(data)), 0)`.as('bytes');

export interface StoredSize {
  readonly bytes: number;
}

export function bytesOfTokens(tenant: TenantId, ids: readonly TokenId[]): Query<StoredSize> {
  return (db) =>
    db
      .selectFrom('tokens')
      .select(bytes)
      .where('tenant_id', '=', storedTenant(tenant))
      .where('token_id', 'in', ids.map(storedId));
}

export function bytesOfIntents(tenant: TenantId, ids: readonly TokenIntentId[]): Query<StoredSize> {
  return (db) =>
    db
      .selectFrom('token_intents')
      .select(bytes)
      .where('tenant_id', '=', storedTenant(tenant))
      .where('token_intent_id', 'in', ids.map(storedId));
}
