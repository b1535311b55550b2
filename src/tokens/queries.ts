/** Queries of stored tokens, always within one tenant. */
import type { Instant } from '../base/clock.ts';
import { VaultError } from '../base/errors.ts';
import { parseTokenId, type TenantId } from '../base/ids.ts';
import type { Change } from '../store/change.ts';
import { claimsOfToken } from '../store/queries/key-rotations.ts';
import {
  equalTokenPlaces,
  searchTermKeys,
  type TokenState,
  tokenStates,
} from '../store/queries/tokens.ts';
import type { Store } from '../store/store.ts';
import type { Unproven } from '../store/stored-row.ts';
import type { Row } from '../store/tables.ts';
import { hasExpired } from './contents/contents.ts';

interface LiveTokenQuery {
  readonly tenant: TenantId;
  readonly id: string;
  readonly now: Instant;
}

/** The current token of that id; `undefined` for a missing, an expired and another tenant's token. */
export async function findLiveToken(
  store: Store,
  { tenant, id, now }: LiveTokenQuery,
): Promise<Unproven<'tokens'> | undefined> {
  const row = await tokenOf(store, tenant, id);
  return row && !hasExpired(row, now) ? row : undefined;
}

/** Without a query if the string cannot be an id. */
function tokenOf(
  store: Store,
  tenant: TenantId,
  id: string,
): Promise<Unproven<'tokens'> | undefined> | undefined {
  const token_id = parseTokenId(id);
  return token_id && store.get('tokens', { tenant_id: tenant, token_id });
}

/** Ids in one query. */
const idsAtOnce = 500;

/** Those of the tokens that are stored, expired ones included, however large they are. */
export async function tokenStatesOf(
  store: Store,
  tenant: TenantId,
  ids: readonly string[],
): Promise<readonly TokenState[]> {
  const parsed = [...new Set(ids)].flatMap((id) => parseTokenId(id) ?? []);
  const queries: Promise<TokenState[]>[] = [];
  for (let at = 0; at < parsed.length; at += idsAtOnce) {
    queries.push(store.select(tokenStates(tenant, parsed.slice(at, at + idsAtOnce))));
  }
  return (await Promise.all(queries)).flat();
}

/**
 * The token of that id as it is now.
 * @throws VaultError `not_found`, alike for one that is missing, expired, or another tenant's.
 */
export async function liveToken(store: Store, query: LiveTokenQuery): Promise<Unproven<'tokens'>> {
  const row = await tokenOf(store, query.tenant, query.id);
  if (row && !hasExpired(row, query.now)) return row;
  throw new VaultError('not_found', { public: 'There is no token with this id.' });
}

/** The place of a token, without its contents. */
export type PlacedToken = Pick<Row<'tokens'>, 'token_id' | 'container' | 'expires_at'>;

/** The places of the tokens with one of the fingerprints, including expired ones; deduplication targets come first. */
export function placesWithFingerprints(
  store: Store,
  tenant: TenantId,
  fingerprints: readonly string[],
): Promise<PlacedToken[]> {
  return store.select(equalTokenPlaces(tenant, fingerprints));
}

export interface Replacement {
  readonly row: Row<'tokens'>;
  readonly updated: Row<'tokens'>;
  /** Those of the updated token. */
  readonly terms: readonly Row<'search_terms'>[];
  /** Whether it may have claimed a value that is no longer its own. */
  readonly isClaimed?: boolean;
}

/** A token that changes, and the search terms that change with it. */
export async function replacementOf(
  store: Store,
  { row, updated, terms, isClaimed = false }: Replacement,
): Promise<Pick<Change, 'remove' | 'replace' | 'insert'>> {
  const { container, type, expires_at } = row;
  const hasTerms = row.search_indexes !== null || row.metadata !== null;
  const keys = hasTerms ? await store.select(searchTermKeys(row)) : [];
  const before = keys.map((key) => ({ ...key, container, type, expires_at }));
  const claims = isClaimed ? await store.select(claimsOfToken(row)) : [];
  return {
    remove: {
      search_terms: without(before, terms),
      ...(claims.length > 0 && { fingerprint_claims: claims }),
    },
    replace: { tokens: [updated] },
    insert: { search_terms: without(terms, before) },
  };
}

function without(
  terms: readonly Row<'search_terms'>[],
  others: readonly Row<'search_terms'>[],
): Row<'search_terms'>[] {
  return terms.filter((term) => others.every((other) => !isSame(term, other)));
}

/** Of two search terms of one token; its container and expiry may have changed between them. */
function isSame(one: Row<'search_terms'>, other: Row<'search_terms'>): boolean {
  const { term, container, type, expires_at } = other;
  return (
    one.term === term &&
    one.container === container &&
    one.type === type &&
    one.expires_at === expires_at
  );
}
