/** Queries for lists of tokens, newest first: a page after a place or at an offset, and a count. */
import { type Kysely, sql } from 'kysely';
import type { TenantId } from '../../base/ids.ts';
import type { Query } from '../store.ts';
import type { ListedRow, Unproven } from '../stored-row.ts';
import { type DatabaseSchema, shapes } from '../tables.ts';
import { storedId, storedTenant } from './stored.ts';
import type { TokenConditions } from './token-conditions.ts';
import {
  type IndexPath,
  type RowSource,
  sharedPlaces,
  sourcesOf,
  type TokenPlaces,
  type TokenPosition,
} from './token-sources.ts';

export interface TokenList {
  readonly conditions: TokenConditions;
  readonly path: IndexPath;
}

export interface TokenPage extends TokenList {
  /** From the newest when absent. */
  readonly after?: TokenPosition | undefined;
  /** How many to skip; 0 when absent. */
  readonly offset?: number;
  readonly limit: number;
}

/**
 * A page gives no data of a token that has more bytes, so that a page of any hundred tokens fits into
 * memory many times over. A card has about 500 of them.
 */
export const listedBytesMax = 10_240;

/** A token of a page; it is not whole where the token has more than {@link listedBytesMax}. */
export type ListedToken = ListedRow<'tokens'>;

/** Of all in the row that has no small limit of its own. Neither engine reads a value for its length. */
const rowBytes = sql<number>`octet_length(tokens.data) + coalesce(octet_length(tokens.mask), 0)
  + coalesce(octet_length(tokens.metadata), 0) + coalesce(octet_length(tokens.search_indexes), 0)`;

/** As one piece of SQL, because columns one by one take as long to compile as the rest of the query. */
const listedColumns = sql`${sql.raw(
  shapes.tokens.columns
    .filter((column) => column !== 'data')
    .map((column) => `tokens.${column}`)
    .join(', '),
)}, case when ${rowBytes} <= ${sql.lit(listedBytesMax)} then tokens.data end`.as<'data'>('data');

/**
 * Finds the places in an index and reads the rows of the page alone. After a place it costs what a
 * page costs, wherever it is, as long as the path leads to few tokens but the list's.
 */
export function pageOf(page: TokenPage): Query<ListedToken> {
  return (db) => withRows(db, page).select(listedColumns).$castTo<ListedToken>();
}

/** The same with all data, for callers who request few tokens. */
export function wholeTokensOf(page: TokenPage): Query<Unproven<'tokens'>> {
  return (db) => withRows(db, page).selectAll('tokens').$castTo<Unproven<'tokens'>>();
}

export interface SizedPlace extends TokenPosition {
  /** Of all in the row that has no small limit of its own. */
  readonly bytes: number;
}

/** The places of the page, and how large the tokens are, which are not read for it. */
export function sizesOf(page: TokenPage): Query<SizedPlace> {
  return (db) => withRows(db, page).select(['place.at', 'place.id', rowBytes.as('bytes')]);
}

function withRows(db: Kysely<DatabaseSchema>, { conditions, path, ...page }: TokenPage) {
  const { after, offset = 0, limit } = page;
  const parts = sourcesOf(db, conditions, path).map((source) =>
    firstOf(source, { after, limit: offset + limit }),
  );
  return db
    .selectFrom(merged(db, parts, conditions.tenant).offset(offset).limit(limit).as('place'))
    .innerJoin('tokens', (join) =>
      join
        .onRef('tokens.token_id', '=', 'place.id')
        .on('tokens.tenant_id', '=', storedTenant(conditions.tenant)),
    )
    .orderBy('place.at', 'desc')
    .orderBy('place.id', 'desc');
}

/** How many tokens meet the conditions: the sum of the rows. */
export function countsOf({ conditions, path }: TokenList): Query<{ count: number }> {
  return (db) => {
    const [first, ...others] = countedPlaces(db, conditions, path).map((places) =>
      places.clearSelect().select((eb) => eb.fn.countAll<number>().as('count')),
    );
    if (first === undefined) {
      return noTokens(db, conditions.tenant).select(sql<number>`0`.as('count'));
    }
    return others.reduce((all, one) => all.unionAll(one), first);
  };
}

function countedPlaces(
  db: Kysely<DatabaseSchema>,
  conditions: TokenConditions,
  path: IndexPath,
): readonly TokenPlaces[] {
  return path !== 'tokens' && 'term' in path && path.allCommon
    ? [sharedPlaces(db, conditions, path.term)]
    : sourcesOf(db, conditions, path).map(({ places }) => places);
}

/** Ordered by the columns of the table that leads, so that its index gives the order. */
function firstOf(
  { places, leading, few = false }: RowSource,
  { after, limit }: Pick<TokenPage, 'after' | 'limit'>,
): TokenPlaces {
  const at = sql.ref(`${leading}.created_at`);
  const id = sql.ref(`${leading}.token_id`);
  const below =
    after && places.where(sql<boolean>`(${at}, ${id}) < (${after.at}, ${storedId(after.id)})`);
  const first = few ? sql`${at} + 0` : sql`${at}`;
  return (below ?? places).orderBy(first, 'desc').orderBy(sql`${id}`, 'desc').limit(limit);
}

/** What ordered parts give together, in their common order. */
function merged(
  db: Kysely<DatabaseSchema>,
  parts: readonly TokenPlaces[],
  tenant: TenantId,
): TokenPlaces {
  const [first, ...others] = parts;
  if (first === undefined) {
    return noTokens(db, tenant).select(['tokens.created_at as at', 'tokens.token_id as id']);
  }
  if (others.length === 0) return first;
  const part = (places: TokenPlaces) => db.selectFrom(places.as('part')).selectAll();
  return others
    .reduce((all, one) => all.unionAll(part(one)), part(first))
    .orderBy('at', 'desc')
    .orderBy('id', 'desc') as unknown as TokenPlaces;
}

/** What there is in no group, whatever limit it is given later. */
function noTokens(db: Kysely<DatabaseSchema>, tenant: TenantId) {
  return db
    .selectFrom('tokens')
    .where('tenant_id', '=', storedTenant(tenant))
    .where(sql<boolean>`1 = 0`);
}
