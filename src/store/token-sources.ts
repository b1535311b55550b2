/** Where the tokens of a list come from: the indexes that keep them in the order of lists. */
import { type Kysely, type SelectQueryBuilder, sql } from 'kysely';
import type { Row, Schema } from './tables.ts';
import { isEverything, predicateOf, type TokenConditions } from './token-conditions.ts';

/** Tokens of one container and type; an index keeps those in the order of lists. */
export interface Shelf {
  readonly container: string;
  readonly type: string;
}

/** The index of a search term, that of some shelves, or whichever fits. */
export type Path = { readonly term: string } | { readonly shelves: readonly Shelf[] } | 'tokens';

export type Rows<R = Row<'tokens'>> = SelectQueryBuilder<Schema, 'tokens', R>;

/** Tokens that meet the conditions, and the table whose index gives their order. */
export interface Source {
  readonly rows: Rows;
  readonly leading: 'tokens' | 'found';
}

/** One source, or one for each shelf. Together they hold every token of the list once. */
export function sourcesOf(
  db: Kysely<Schema>,
  conditions: TokenConditions,
  path: Path,
): readonly Source[] {
  if (path === 'tokens') return [{ rows: tokens(db, conditions), leading: 'tokens' }];
  if ('term' in path) return [{ rows: byTerm(db, conditions, path.term), leading: 'found' }];
  return path.shelves.map((shelf) => ({
    rows: tokens(db, conditions)
      .where(sql<boolean>`tokens.container = ${shelf.container}`)
      .where('tokens.type', '=', shelf.type),
    leading: 'tokens',
  }));
}

/** The same for those who need no more of a token than its place. */
export function placesOf(
  db: Kysely<Schema>,
  conditions: TokenConditions,
  path: Path,
): readonly Source[] {
  return path !== 'tokens' && 'term' in path && hasOnlyTerm(conditions)
    ? [{ rows: byTermAlone(db, conditions, path.term), leading: 'found' }]
    : sourcesOf(db, conditions, path);
}

function tokens(db: Kysely<Schema>, conditions: TokenConditions): Rows {
  return db.selectFrom('tokens').selectAll('tokens').where(predicateOf(conditions));
}

/** A cross join, because SQLite takes the tables of one in the order in which they stand. */
function byTerm(db: Kysely<Schema>, conditions: TokenConditions, term: string): Rows {
  return db
    .selectFrom('search_terms as found')
    .crossJoin('tokens')
    .selectAll('tokens')
    .where('found.tenant_id', '=', conditions.tenant)
    .where('found.term', '=', term)
    .whereRef('tokens.token_id', '=', 'found.token_id')
    .where(predicateOf(conditions, term)) as unknown as Rows;
}

function hasOnlyTerm(conditions: TokenConditions): boolean {
  const { scopes, ids, container, type, fingerprint, terms, metadata } = conditions;
  const others = [ids, container, type, fingerprint].some((one) => one !== undefined);
  return scopes.some(isEverything) && !others && terms.length === 1 && metadata.length === 0;
}

/** Without a look at each token: expired ones are few, and an index tells which they are. */
function byTermAlone(db: Kysely<Schema>, { tenant, now }: TokenConditions, term: string): Rows {
  return db
    .selectFrom('search_terms as found')
    .where('found.tenant_id', '=', tenant)
    .where('found.term', '=', term)
    .where('found.token_id', 'not in', (eb) =>
      eb
        .selectFrom('tokens')
        .select('token_id')
        .where('tenant_id', '=', tenant)
        .where('expires_at', '<=', now),
    ) as unknown as Rows;
}
