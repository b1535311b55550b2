/** What is asked of stored tokens, always within one tenant. */
import type { Instant } from '../lib/clock.ts';
import { VaultError } from '../lib/errors.ts';
import { parseTokenId, type TenantId } from '../lib/ids.ts';
import type { Change } from '../store/change.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { hasExpired } from './token-contents.ts';

/** Tokens of one fingerprint that deduplication looks at. */
const equalsMax = 100;

/**
 * The token of that id as it stands.
 * @throws VaultError `not_found`, alike for one that is missing, expired, or another tenant's.
 */
export async function liveToken(
  store: Store,
  { tenant, id, now }: { tenant: TenantId; id: string; now: Instant },
): Promise<Row<'tokens'>> {
  const token_id = parseTokenId(id);
  const row = token_id && (await store.get('tokens', { tenant_id: tenant, token_id }));
  if (!row || hasExpired(row, now)) {
    throw new VaultError('not_found', { public: 'There is no token with this id.' });
  }
  return row;
}

/** Tokens of that fingerprint, expired ones included; first the one that answers for it. */
export function tokensWithFingerprint(
  store: Store,
  tenant: TenantId,
  fingerprint: string,
): Promise<Row<'tokens'>[]> {
  return store.select((db) =>
    db
      .selectFrom('tokens')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where('fingerprint', '=', fingerprint)
      .orderBy('deduplicated', 'desc')
      .orderBy('created_at')
      .limit(equalsMax),
  );
}

/** The search terms under which a token is found. */
export function termsOf(store: Store, row: Row<'tokens'>): Promise<Row<'search_terms'>[]> {
  if (row.search_indexes === null) return Promise.resolve([]);
  return store.select((db) =>
    db
      .selectFrom('search_terms')
      .selectAll()
      .where('tenant_id', '=', row.tenant_id)
      .where('token_id', '=', row.token_id),
  );
}

/** Everything that goes with tokens that go. */
export async function removalOf(
  store: Store,
  rows: readonly Row<'tokens'>[],
): Promise<NonNullable<Change['remove']>> {
  const terms = await Promise.all(rows.map((row) => termsOf(store, row)));
  return {
    search_terms: terms.flat(),
    tokens: rows.map(({ tenant_id, token_id, version }) => ({ tenant_id, token_id, version })),
  };
}
