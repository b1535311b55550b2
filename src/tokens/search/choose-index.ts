/** Finding tokens: chooses the index that leads to them, so that the cost depends on the length of the page. */
import { includesPattern, narrower } from '../../rules/policy.ts';
import type { TextPattern } from '../../store/queries/text-patterns.ts';
import {
  alternativesOf,
  hasAnyId,
  isEverything,
  type TokenConditions,
} from '../../store/queries/token-conditions.ts';
import { occurrencesOf, tokenGroupsOf } from '../../store/queries/token-groups.ts';
import {
  countsOf,
  type ListedToken,
  pageOf,
  sizesOf,
  wholeTokensOf,
} from '../../store/queries/token-pages.ts';
import type {
  IndexPath,
  TermPath,
  TokenGroup,
  TokenPosition,
} from '../../store/queries/token-sources.ts';
import type { ScanPayer, Store } from '../../store/store.ts';
import type { Unproven } from '../../store/stored-row.ts';

/** Groups (each: one container, one type) that one query merges; a list with more is read by creation. */
export const tokenGroupsMax = 64;

/** Patterns of containers whose groups are looked up one by one. */
const patternsMax = 16;

/** Terms are compared by how common they are up to here. */
export const occurrencesMax = 1000;

export interface PageRange {
  readonly after?: TokenPosition | undefined;
  /** How many to skip. */
  readonly offset?: number;
  readonly payer: ScanPayer;
  readonly limit: number;
}

/** `limit` tokens that meet the conditions, newest first, from after a place or an offset. */
export async function findTokens(
  store: Store,
  conditions: TokenConditions,
  { after, offset = 0, limit, payer }: PageRange,
): Promise<ListedToken[]> {
  if (limit === 0 || isImpossible(conditions)) return [];
  const path = await pathOf(store, conditions);
  const page = pageOf({ conditions, path, after, offset, limit });
  // Skipped rows are read all the same.
  const isShort = offset === 0 && (await leadsTo(store, conditions, path));
  return isShort ? store.select(page) : store.scan(page, payer);
}

/** The token at a place with its data, if it still meets the conditions. */
export async function findTokenAt(
  store: Store,
  conditions: TokenConditions,
  { at, id }: TokenPosition,
): Promise<Unproven<'tokens'> | undefined> {
  const only = { ...conditions, ids: [id] };
  if (isImpossible(only)) return undefined;
  const page = { conditions: only, path: 'tokens', limit: 1 } as const;
  const [row] = await store.select(wholeTokensOf(page));
  return row?.created_at === at ? row : undefined;
}

export interface TokenBatch {
  readonly rows: readonly Unproven<'tokens'>[];
  /** Where the next batch begins; `undefined` after the last one. */
  readonly next: TokenPosition | undefined;
}

export interface BatchLimits {
  readonly after: TokenPosition | undefined;
  readonly tokensMax: number;
  readonly payer: ScanPayer;
  /** Past so many bytes a batch takes no more tokens. */
  readonly bytesMax: number;
}

/** The next tokens that meet the conditions, no more than fit into memory together. */
export async function findBatch(
  store: Store,
  conditions: TokenConditions,
  { after, tokensMax, bytesMax, payer }: BatchLimits,
): Promise<TokenBatch> {
  if (isImpossible(conditions)) return { rows: [], next: undefined };
  const path = await pathOf(store, conditions);
  const sizes = sizesOf({ conditions, path, after, limit: tokensMax });
  const isShort = await leadsTo(store, conditions, path);
  const places = await (isShort ? store.select(sizes) : store.scan(sizes, payer));
  let bytes = 0;
  const taken = places.filter((place) => {
    const fits = bytes < bytesMax;
    bytes += place.bytes;
    return fits;
  });
  const isLast = taken.length === places.length && places.length < tokensMax;
  const next = isLast ? undefined : taken.at(-1);
  const key = { tenant_id: conditions.tenant };
  const rows = await Promise.all(
    taken.map(({ id: token_id }) => store.get('tokens', { ...key, token_id })),
  );
  return { rows: rows.filter((row) => row !== undefined), next };
}

export interface CountedTokens {
  readonly rows: readonly ListedToken[];
  /** All that meet the conditions. */
  readonly total: number;
}

export type PageAt = Required<Omit<PageRange, 'after'>>;

/** A page at an offset, and how many there are in all. */
export async function findTokensAt(
  store: Store,
  conditions: TokenConditions,
  { offset, limit, payer }: PageAt,
): Promise<CountedTokens> {
  if (isImpossible(conditions)) return { rows: [], total: 0 };
  const path = await pathOf(store, conditions);
  const counts = await store.scan(countsOf({ conditions, path }), payer);
  const total = counts.reduce((sum, { count }) => sum + count, 0);
  if (limit === 0 || offset >= total) return { rows: [], total };
  const page = pageOf({ conditions, path, offset, limit });
  return { rows: await store.scan(page, payer), total };
}

function isImpossible({ scopes, ids }: TokenConditions): boolean {
  return scopes.length === 0 || ids?.length === 0;
}

async function pathOf(store: Store, conditions: TokenConditions): Promise<IndexPath> {
  const { ids, fingerprint, terms, scopes, type, container } = conditions;
  if (ids || fingerprint !== undefined) return 'tokens';
  if (terms.length > 0) return rarestTerm(store, conditions);
  if (scopes.some(isEverything) && type === undefined && container === undefined) return 'tokens';
  const groups = await groupsWithin(store, conditions);
  return groups === undefined ? 'tokens' : { groups };
}

/**
 * Whether nearly every token that the path leads to is in the list, or only few tokens are on it. Then a page takes no
 * longer than its length. Otherwise a list whose rules match nothing would go through all tokens of the tenant.
 */
async function leadsTo(
  store: Store,
  conditions: TokenConditions,
  path: IndexPath,
): Promise<boolean> {
  const { tenant, ids, fingerprint, terms, scopes, type, container } = conditions;
  if (ids) return true;
  if (path !== 'tokens' && 'groups' in path) return scopes.every(hasAnyId);
  const isWhole = scopes.some(isEverything) && type === undefined && container === undefined;
  if (path === 'tokens') return isWhole && fingerprint === undefined;
  if (isWhole && terms.length === 1) return true;
  const counts = await Promise.all(
    alternativesOf(conditions, path.term).map((one) =>
      store.select(occurrencesOf({ tenant, term: one }, occurrencesMax)),
    ),
  );
  return counts.flat().every(({ count }) => count < occurrencesMax);
}

/** A search begins at the term with the fewest tokens and checks the others on each. */
async function rarestTerm(store: Store, conditions: TokenConditions): Promise<TermPath> {
  const { tenant, terms, otherTerms } = conditions;
  const [only = '', ...others] = terms;
  if (others.length === 0) return { term: only, allCommon: false };
  const counted = await Promise.all(
    terms.map(async (term) => {
      const counts = await Promise.all(
        alternativesOf(conditions, term).map((one) =>
          store.select(occurrencesOf({ tenant, term: one }, occurrencesMax)),
        ),
      );
      return { term, count: counts.flat().reduce((sum, found) => sum + found.count, 0) };
    }),
  );
  const { term, count } = counted.reduce((rarest, one) =>
    one.count < rarest.count ? one : rarest,
  );
  return { term, allCommon: count >= occurrencesMax && otherTerms === undefined };
}

/** The groups that can have tokens of the list; `undefined` when they are too many. */
async function groupsWithin(
  store: Store,
  { tenant, scopes, container, type }: TokenConditions,
): Promise<readonly TokenGroup[] | undefined> {
  const patterns = patternsWithin(
    scopes.map((scope) => scope.container),
    container,
  );
  if (patterns.length > patternsMax) return undefined;
  const found = await Promise.all(
    patterns.map((pattern) =>
      store.select(tokenGroupsOf({ tenant, container: pattern, limit: tokenGroupsMax + 1 })),
    ),
  );
  const groups = found.flat().filter((group) => type === undefined || group.type === type);
  return found.some((some) => some.length > tokenGroupsMax) || groups.length > tokenGroupsMax
    ? undefined
    : groups;
}

/** The intersection of the patterns and the list's own container, without patterns inside others. */
function patternsWithin(
  patterns: readonly TextPattern[],
  own: TextPattern | undefined,
): readonly TextPattern[] {
  let widest: readonly TextPattern[] = [];
  for (const pattern of patterns) {
    const shared = own === undefined ? pattern : narrower(pattern, own);
    if (shared === undefined || widest.some((other) => includesPattern(other, shared))) continue;
    widest = [...widest.filter((other) => !includesPattern(shared, other)), shared];
  }
  return widest;
}
