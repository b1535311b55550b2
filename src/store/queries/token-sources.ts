/** Where the tokens of a list come from: the indexes that keep their places in the order of lists. */
import { type Kysely, type SelectQueryBuilder, type SqlBool, sql } from 'kysely';
import type { Instant } from '../../base/clock.ts';
import type { TokenId } from '../../base/ids.ts';
import type { DatabaseSchema } from '../tables.ts';
import { storedTenant, storedTerm } from './stored.ts';
import {
  alternativesOf,
  type LeadingTable,
  predicateOf,
  rowPredicatesOf,
  type TokenConditions,
} from './token-conditions.ts';

/** The place of a token in a list. */
export interface TokenPosition {
  readonly at: Instant;
  readonly id: TokenId;
}

/** Tokens of one container and type; an index keeps those in the order of lists. */
export interface TokenGroup {
  readonly container: string;
  readonly type: string;
}

/** The index of a search term, that of some groups, or whichever fits. */
export type IndexPath = TermPath | { readonly groups: readonly TokenGroup[] } | 'tokens';

export interface TermPath {
  readonly term: string;
  /** True where the list has other terms, and every one of them leads to very many tokens. */
  readonly allCommon: boolean;
}

export type TokenPlaces<P = TokenPosition> = SelectQueryBuilder<DatabaseSchema, 'tokens', P>;

/** Places of tokens that meet the conditions, and the table whose index gives their order. */
export interface RowSource {
  readonly places: TokenPlaces;
  readonly leading: LeadingTable;
  /** True where they are few and sorted: an index that has their order would be read to its end. */
  readonly few?: boolean;
}

/** One source, or one for each group. Together they hold every token of the list once. */
export function sourcesOf(
  db: Kysely<DatabaseSchema>,
  conditions: TokenConditions,
  path: IndexPath,
): readonly RowSource[] {
  if (path === 'tokens') {
    const few = conditions.ids !== undefined;
    return [{ places: byRow(db, conditions), leading: 'tokens', few }];
  }
  if ('term' in path) {
    // A token has terms under one key, so that no two of these hold it.
    return alternativesOf(conditions, path.term).map((stored) => ({
      places: byTerm(db, conditions, { term: path.term, stored }),
      leading: 'found',
    }));
  }
  return path.groups.map((group) => ({
    places: byRow(db, conditions)
      .where(sql<boolean>`tokens.container = ${group.container}`)
      .where('tokens.type', '=', group.type),
    leading: 'tokens',
  }));
}

function byRow(db: Kysely<DatabaseSchema>, conditions: TokenConditions): TokenPlaces {
  return db
    .selectFrom('tokens')
    .select(['tokens.created_at as at', 'tokens.token_id as id'])
    .where(predicateOf(conditions, 'tokens'))
    .where((eb) => eb.and([...rowPredicatesOf(conditions)]));
}

/**
 * The places that all terms lead to, where each leads to many: going through their indexes side by
 * side takes a fraction of the time of looking up every place of one in the others. Only where one search key lives.
 */
export function sharedPlaces(
  db: Kysely<DatabaseSchema>,
  conditions: TokenConditions,
  term: string,
): TokenPlaces {
  const others = conditions.terms.filter((other) => other !== term);
  const only = { ...conditions, terms: [term] };
  const first = byTerm(db, only, { term, stored: term });
  const shared = others.reduce(
    (all, other) =>
      all.intersect(
        db
          .selectFrom('search_terms')
          .select(['created_at as at', 'token_id as id'])
          .where('tenant_id', '=', storedTenant(conditions.tenant))
          .where('term', '=', storedTerm(other)),
      ),
    first,
  );
  // An order that both indexes have, or SQLite would sort what it takes from each.
  const inOrder = shared.orderBy(sql`1`).orderBy(sql`2`);
  return db.selectFrom(inOrder.as('shared')).selectAll() as unknown as TokenPlaces;
}

interface FoundTerm {
  /** Of the conditions. */
  readonly term: string;
  /** The same, or one that means the same under another key. */
  readonly stored: string;
}

/** Reads the rows of tokens only for conditions that search terms cannot decide. */
function byTerm(
  db: Kysely<DatabaseSchema>,
  conditions: TokenConditions,
  { term, stored }: FoundTerm,
): TokenPlaces {
  const places = db
    .selectFrom('search_terms as found')
    .select(['found.created_at as at', 'found.token_id as id'])
    .where('found.tenant_id', '=', storedTenant(conditions.tenant))
    .where('found.term', '=', storedTerm(stored))
    .where(predicateOf(conditions, 'found', term));
  const predicates = rowPredicatesOf(conditions);
  if (predicates.length === 0) return places as unknown as TokenPlaces;
  return places.where(
    sql<SqlBool>`exists (select 1 from tokens where tokens.tenant_id = found.tenant_id
      and tokens.token_id = found.token_id and ${sql.join(predicates, sql` and `)} limit 1 offset 0)`,
  ) as unknown as TokenPlaces;
}
