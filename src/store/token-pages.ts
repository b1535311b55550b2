/** Queries for lists of tokens, newest first: a page after a place, a page at an offset, a count. */
import { type Kysely, sql } from 'kysely';
import type { Instant } from '../lib/clock.ts';
import type { TenantId, TokenId } from '../lib/ids.ts';
import type { Query } from './store.ts';
import type { Row, Schema } from './tables.ts';
import type { TokenConditions } from './token-conditions.ts';
import { type Path, placesOf, type Rows, type Source, sourcesOf } from './token-sources.ts';

/** The place of a token in a list. */
export interface TokenPlace {
  readonly at: Instant;
  readonly id: TokenId;
}

export interface TokenList {
  readonly conditions: TokenConditions;
  readonly path: Path;
}

export interface PageAfter extends TokenList {
  /** From the newest when absent. */
  readonly after: TokenPlace | undefined;
  readonly limit: number;
}

/** Costs what a page costs, wherever it is, as long as the path leads to few tokens but the list's. */
export function pageAfter({ conditions, path, ...page }: PageAfter): Query<Row<'tokens'>> {
  return (db) => {
    const parts = sourcesOf(db, conditions, path).map((source) => firstOf(source, page));
    return merged(db, parts, conditions.tenant).limit(page.limit);
  };
}

export interface PageAt extends TokenList {
  readonly offset: number;
  readonly limit: number;
}

/** Skips in an index where it can, and reads only the rows of the page. */
export function pageAt({ conditions, path, offset, limit }: PageAt): Query<Row<'tokens'>> {
  const page = { after: undefined, limit: offset + limit };
  return (db) => {
    const parts = placesOf(db, conditions, path).map(({ rows, leading }) => {
      const places = rows
        .clearSelect()
        .select([
          sql.ref<TokenId>(`${leading}.token_id`).as('token_id'),
          sql.ref<Instant>(`${leading}.created_at`).as('created_at'),
        ]);
      return firstOf({ rows: places as unknown as Rows, leading }, page);
    });
    return db
      .selectFrom(merged(db, parts, conditions.tenant).offset(offset).limit(limit).as('place'))
      .innerJoin('tokens', (join) =>
        join
          .onRef('tokens.token_id', '=', 'place.token_id')
          .on('tokens.tenant_id', '=', conditions.tenant),
      )
      .selectAll('tokens')
      .orderBy('place.created_at', 'desc')
      .orderBy('place.token_id', 'desc');
  };
}

/** How many tokens meet the conditions: the sum of the rows. */
export function countsOf({ conditions, path }: TokenList): Query<{ count: number }> {
  return (db) => {
    const [first, ...others] = placesOf(db, conditions, path).map(({ rows }) =>
      rows.clearSelect().select((eb) => eb.fn.countAll<number>().as('count')),
    );
    if (first === undefined) {
      return noTokens(db, conditions.tenant).select(sql<number>`0`.as('count'));
    }
    return others.reduce((all, one) => all.unionAll(one), first);
  };
}

/** Ordered by the columns of the table that leads, so that its index gives the order. */
function firstOf(
  { rows, leading }: Source,
  { after, limit }: Pick<PageAfter, 'after' | 'limit'>,
): Rows {
  const at = sql.ref(`${leading}.created_at`);
  const id = sql.ref(`${leading}.token_id`);
  const below = after && rows.where(sql<boolean>`(${at}, ${id}) < (${after.at}, ${after.id})`);
  return (below ?? rows).orderBy(sql`${at}`, 'desc').orderBy(sql`${id}`, 'desc').limit(limit);
}

/** What ordered parts give together, in their common order. */
function merged(db: Kysely<Schema>, parts: readonly Rows[], tenant: TenantId): Rows {
  const [first, ...others] = parts;
  if (first === undefined) return noTokens(db, tenant).selectAll();
  if (others.length === 0) return first;
  const part = (rows: Rows) => db.selectFrom(rows.as('part')).selectAll();
  return others
    .reduce((all, one) => all.unionAll(part(one)), part(first))
    .orderBy('created_at', 'desc')
    .orderBy('token_id', 'desc') as unknown as Rows;
}

/** What there is on no shelf, whatever limit it is given later. */
function noTokens(db: Kysely<Schema>, tenant: TenantId) {
  return db.selectFrom('tokens').where('tenant_id', '=', tenant).where(sql<boolean>`1 = 0`);
}
