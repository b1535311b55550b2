/** Queries about tokens by what they hold: their fingerprints, their search terms, their number. */
import assert from 'node:assert/strict';
import type { Instant } from '../../lib/clock.ts';
import type { TenantId } from '../../lib/ids.ts';
import type { Query } from '../store.ts';
import type { Key, Row } from '../tables.ts';
import { storedId, storedTenant } from './stored.ts';
import { notExpired } from './token-conditions.ts';

/** Tokens of one fingerprint that deduplication looks at. */
const equalsMax = 100;

/** Tokens of those fingerprints, expired ones included; of each, first the one that answers for it. */
export function tokensWithFingerprints(
  tenant: TenantId,
  fingerprints: readonly string[],
): Query<Row<'tokens'>> {
  return (db) => {
    const [first, ...others] = fingerprints.map((fingerprint) =>
      db
        .selectFrom(
          db
            .selectFrom('tokens')
            .selectAll()
            .where('tenant_id', '=', storedTenant(tenant))
            .where('fingerprint', '=', fingerprint)
            .orderBy('deduplicated', 'desc')
            .orderBy('created_at')
            .limit(equalsMax)
            .as('equal'),
        )
        .selectAll(),
    );
    assert(first !== undefined, 'there is a fingerprint to look for');
    return others
      .reduce((union, one) => union.unionAll(one), first)
      .orderBy('deduplicated', 'desc')
      .orderBy('created_at');
  };
}

/**
 * The search terms under which a token is found. Only their keys: for more than the index by token
 * holds, SQLite would go through all terms of the tenant.
 */
export function searchTermKeys({ tenant_id, token_id }: Key<'tokens'>): Query<Key<'search_terms'>> {
  return (db) =>
    db
      .selectFrom('search_terms')
      .select(['tenant_id', 'term', 'created_at', 'token_id'])
      .where('tenant_id', '=', storedTenant(tenant_id))
      .where('token_id', '=', storedId(token_id));
}

export interface TypeCount {
  readonly type: string;
  readonly count: number;
  readonly last_created_at: Instant;
  /** Of those, created since the instant that was asked for. */
  readonly active: number;
}

/** Tokens that have not expired, by type. The columns are those of one index, so no token itself is read. */
export function tokenCountsByType(
  tenant: TenantId,
  { now, activeSince }: { readonly now: Instant; readonly activeSince: Instant },
): Query<TypeCount> {
  return (db) =>
    db
      .selectFrom('tokens')
      .where('tenant_id', '=', storedTenant(tenant))
      .where(notExpired('expires_at', now))
      .select('type')
      .select(({ fn }) => [
        fn.countAll<number>().as('count'),
        fn.max('created_at').as('last_created_at'),
        fn.countAll<number>().filterWhere('created_at', '>=', activeSince).as('active'),
      ])
      .groupBy('type')
      .orderBy('type');
}

/** Where tokens of that fingerprint are; first the one that answers for it. */
export function equalTokenPlaces(
  tenant: TenantId,
  fingerprint: string,
): Query<Pick<Row<'tokens'>, 'token_id' | 'container' | 'expires_at'>> {
  return (db) =>
    db
      .selectFrom('tokens')
      .select(['token_id', 'container', 'expires_at'])
      .where('tenant_id', '=', storedTenant(tenant))
      .where('fingerprint', '=', fingerprint)
      .orderBy('deduplicated', 'desc')
      .orderBy('created_at')
      .limit(equalsMax);
}
