/** Queries for lists of tokens, newest first: a page after a place, a page at an offset, a count. */
import { type Kysely, type SelectQueryBuilder, sql } from 'kysely';
import type { Instant } from '../lib/clock.ts';
import type { TokenId } from '../lib/ids.ts';
import type { Query } from './store.ts';
import type { Row, Schema } from './tables.ts';
import { predicateOf, type TokenConditions } from './token-conditions.ts';

/** The place of a token in a list. */
export interface TokenPlace {
  readonly at: Instant;
  readonly id: TokenId;
}

/** Tokens of one container and type; an index keeps those in the order of lists. */
export interface Shelf {
  readonly container: string;
  readonly type: string;
}

/** The index that leads to the tokens of a list: that of a search term, of shelves, or any other. */
export type Path = { readonly term: string } | { readonly shelves: readonly Shelf[] } | 'tokens';

export interface PageAfter {
  readonly conditions: TokenConditions;
  readonly path: Path;
  /** From the newest when absent. */
  readonly after: TokenPlace | undefined;
  readonly limit: number;
}

type Tokens = SelectQueryBuilder<Schema, 'tokens', Row<'tokens'>>;

/** Costs what a page costs, wherever it is, as long as the path leads to few tokens but the list's. */
export function pageAfter(page: PageAfter): Query<Row<'tokens'>> {
  const { path } = page;
  if (path === 'tokens') return (db) => ordered(tokens(db, page), 'tokens', page);
  if ('term' in path) return (db) => ordered(byTerm(db, page, path.term), 'found', page);
  return (db) => {
    const [first, ...others] = path.shelves.map((shelf) => {
      const { conditions } = page;
      const onShelf = tokens(db, { ...page, conditions })
        .where(sql<boolean>`tokens.container = ${shelf.container}`)
        .where('tokens.type', '=', shelf.type);
      return db.selectFrom(ordered(onShelf, 'tokens', page).as('shelf')).selectAll();
    });
    if (first === undefined) return tokens(db, page).limit(0);
    const all = others.reduce((union, shelf) => union.unionAll(shelf), first);
    return all.orderBy('created_at', 'desc').orderBy('token_id', 'desc').limit(page.limit);
  };
}

function tokens(db: Kysely<Schema>, { conditions }: PageAfter): Tokens {
  return db.selectFrom('tokens').selectAll('tokens').where(predicateOf(conditions));
}

/** A cross join, because SQLite takes the tables of one in the order in which they stand. */
function byTerm(db: Kysely<Schema>, { conditions }: PageAfter, term: string): Tokens {
  return db
    .selectFrom('search_terms as found')
    .crossJoin('tokens')
    .selectAll('tokens')
    .where('found.tenant_id', '=', conditions.tenant)
    .where('found.term', '=', term)
    .whereRef('tokens.token_id', '=', 'found.token_id')
    .where(predicateOf(conditions, term)) as unknown as Tokens;
}

/** Orders by the columns of the table that leads, so that its index gives the order. */
function ordered(query: Tokens, leading: 'tokens' | 'found', { after, limit }: PageAfter): Tokens {
  const at = sql.ref(`${leading}.created_at`);
  const id = sql.ref(`${leading}.token_id`);
  const below = after && query.where(sql<boolean>`(${at}, ${id}) < (${after.at}, ${after.id})`);
  return (below ?? query).orderBy(sql`${at}`, 'desc').orderBy(sql`${id}`, 'desc').limit(limit);
}

export interface PageAt {
  readonly conditions: TokenConditions;
  readonly path: Path;
  readonly offset: number;
  readonly limit: number;
}

/** Skips in the index and reads only the rows of the page. */
export function pageAt({ conditions, path, offset, limit }: PageAt): Query<Row<'tokens'>> {
  const all = { conditions, path, after: undefined, limit };
  return (db) => {
    const places = placesOf(db, all).offset(offset).as('place');
    return db
      .selectFrom(places)
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

function placesOf(db: Kysely<Schema>, page: PageAfter) {
  const { path } = page;
  const isTerm = path !== 'tokens' && 'term' in path;
  const query = isTerm ? byTerm(db, page, path.term) : tokens(db, page);
  return ordered(query, isTerm ? 'found' : 'tokens', page)
    .clearSelect()
    .select(['tokens.token_id', 'tokens.created_at']);
}

/** How many tokens meet the conditions. */
export function countOf(conditions: TokenConditions, path: Path): Query<{ count: number }> {
  const all = { conditions, path, after: undefined, limit: 0 };
  return (db) => {
    const query =
      path !== 'tokens' && 'term' in path ? byTerm(db, all, path.term) : tokens(db, all);
    return query.clearSelect().select((eb) => eb.fn.countAll<number>().as('count'));
  };
}
