/** Which tokens a list is about, as data and as SQL: what does not meet the conditions stays in the database. */
import { type Expression, expressionBuilder, type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Instant } from '../../base/clock.ts';
import type { TenantId, TokenId } from '../../base/ids.ts';
import type { DatabaseSchema, Row } from '../tables.ts';
import { storedId, storedTenant, storedTerm } from './stored.ts';
import { matches, matchesId, type TextPattern } from './text-patterns.ts';

/** The tokens whose id and container both match. */
export interface TokenScope {
  readonly id: TextPattern;
  readonly container: TextPattern;
}

export interface TokenConditions {
  readonly tenant: TenantId;
  /** Tokens that have expired by then are gone. */
  readonly now: Instant;
  /** A token is in at least one of them. */
  readonly scopes: readonly TokenScope[];
  /** Any of these ids. */
  readonly ids?: readonly TokenId[] | undefined;
  readonly container?: TextPattern | undefined;
  readonly type?: string | undefined;
  readonly fingerprint?: string | undefined;
  /** Found under all of these search terms. */
  readonly terms: readonly string[];
  /** By term: those under other keys, each of which means the same. Absent where only one key lives. */
  readonly otherTerms?: ReadonlyMap<string, readonly string[]>;
  /** Has all of these pairs of metadata in exactly this case, which search terms do not know. */
  readonly metadata: readonly MetadataPair[];
}

export interface MetadataPair {
  readonly key: string;
  readonly value: string;
}

type Predicate = Expression<SqlBool>;

/** What leads to a token, and holds those of its columns that lists ask for: its row, or a search term. */
export type LeadingTable = 'tokens' | 'found';

/**
 * Later than any instant. With two conditions joined by `or` PostgreSQL, as long as it has not analysed
 * a table, would read all tokens by their expiry and sort them for each page.
 */
const neverExpires = sql.lit(Number.MAX_SAFE_INTEGER);

/** True for what no reader has lost yet. */
export function notExpired(column: string, now: Instant): RawBuilder<SqlBool> {
  return sql`coalesce(${sql.ref(column)}, ${neverExpires}) > ${now}`;
}

/** The conditions on what leads to a token, but the search term `known` by which it was found. */
export function predicateOf(
  conditions: TokenConditions,
  leading: LeadingTable,
  known?: string,
): Predicate {
  const { tenant, now, scopes, ids, container, type } = conditions;
  const eb = expressionBuilder<Record<LeadingTable, Row<'search_terms'>>, LeadingTable>();
  const terms = conditions.terms.filter((term) => term !== known);
  return eb.and([
    eb(`${leading}.tenant_id`, '=', storedTenant(tenant)),
    notExpired(`${leading}.expires_at`, now),
    ...(scopes.some(isEverything) ? [] : [eb.or(scopes.map((scope) => inScope(scope, leading)))]),
    ...(ids ? [eb(`${leading}.token_id`, 'in', ids.map(storedId))] : []),
    ...(container ? [matches(sql.ref(`${leading}.container`), container)] : []),
    ...(type === undefined ? [] : [eb(`${leading}.type`, '=', type)]),
    ...terms.map((term) => hasTerm(leading, alternativesOf(conditions, term))),
  ]);
}

/** The terms that mean the same as one of the conditions' terms, itself the first. */
export function alternativesOf(
  { otherTerms }: Pick<TokenConditions, 'otherTerms'>,
  term: string,
): readonly string[] {
  return [term, ...(otherTerms?.get(term) ?? [])];
}

/** The conditions that need the row of a token; none for most lists. */
export function rowPredicatesOf({ fingerprint, metadata }: TokenConditions): readonly Predicate[] {
  const eb = expressionBuilder<DatabaseSchema, 'tokens'>();
  return [
    ...(fingerprint === undefined ? [] : [eb('tokens.fingerprint', '=', fingerprint)]),
    ...metadata.map(hasPair),
  ];
}

/** True for the scope that leaves no token out. */
export function isEverything(scope: TokenScope): boolean {
  return hasAnyId(scope) && isRoot(scope.container);
}

/** True where a scope has every token of its containers. */
export function hasAnyId({ id }: TokenScope): boolean {
  return !id.exact && id.text === '';
}

/** True for the pattern that every container matches. */
function isRoot({ text, exact }: TextPattern): boolean {
  return !exact && (text === '' || text === '/');
}

function inScope({ id, container }: TokenScope, leading: LeadingTable): Predicate {
  const anyId = hasAnyId({ id, container });
  // A term's own index gives the order; SQLite would rather take one that begins with the id.
  const own = sql.ref(`${leading}.token_id`);
  const idColumn = leading === 'tokens' ? own : sql`coalesce(${own}, ${own})`;
  return expressionBuilder<DatabaseSchema, 'tokens'>().and([
    ...(anyId ? [] : [matchesId(idColumn, id)]),
    ...(isRoot(container) ? [] : [matches(sql.ref(`${leading}.container`), container)]),
  ]);
}

/**
 * Looked up for each token, in the order of the list and so next to the one before. SQLite would take
 * another index for an equal id. The offset keeps PostgreSQL from reading all that the term leads to.
 */
function hasTerm(leading: LeadingTable, alternatives: readonly string[]): Predicate {
  const terms = sql.join(alternatives.map(storedTerm));
  const isOne = alternatives.length === 1 ? sql`= ${terms}` : sql`in (${terms})`;
  const column = (name: string) => sql.ref(`${leading}.${name}`);
  return sql<SqlBool>`exists (select 1 from search_terms as other
    where other.tenant_id = ${column('tenant_id')} and other.term ${isOne}
    and other.created_at = ${column('created_at')}
    and other.token_id between ${column('token_id')} and ${column('token_id')}
    limit 1 offset 0)`;
}

/**
 * Stored metadata is the text that JSON.stringify made, so it holds the pair's own JSON. Of the
 * case-sensitive functions, `replace` is the one that both engines have.
 */
function hasPair({ key, value }: MetadataPair): Predicate {
  const pair = JSON.stringify({ [key]: value }).slice(1, -1);
  return sql<SqlBool>`replace(tokens.metadata, ${pair}, '') <> tokens.metadata`;
}
