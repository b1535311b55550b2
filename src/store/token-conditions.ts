/** Which tokens a list is about, as data and as SQL: what does not meet the conditions stays in the database. */
import { type Expression, expressionBuilder, type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Instant } from '../lib/clock.ts';
import type { TenantId, TokenId } from '../lib/ids.ts';
import type { Schema } from './tables.ts';

/** Texts that equal `text`, or begin with it. */
export interface TextPattern {
  readonly text: string;
  readonly exact: boolean;
}

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
  /** Has all of these pairs of metadata in exactly this case, which search terms do not tell. */
  readonly metadata: readonly MetadataPair[];
}

export interface MetadataPair {
  readonly key: string;
  readonly value: string;
}

type Predicate = Expression<SqlBool>;

/** The conditions on a row of `tokens` that was not found by the search term `found` already. */
export function predicateOf(conditions: TokenConditions, found?: string): Predicate {
  const { tenant, now, scopes, ids, container, type, fingerprint } = conditions;
  const eb = expressionBuilder<Schema, 'tokens'>();
  return eb.and([
    eb('tokens.tenant_id', '=', tenant),
    eb.or([eb('tokens.expires_at', 'is', null), eb('tokens.expires_at', '>', now)]),
    ...(scopes.some(isEverything) ? [] : [eb.or(scopes.map((scope) => inScope(scope, found)))]),
    ...(ids ? [eb('tokens.token_id', 'in', ids)] : []),
    ...(container ? [matches(sql.ref('tokens.container'), container)] : []),
    ...(type === undefined ? [] : [eb('tokens.type', '=', type)]),
    ...(fingerprint === undefined ? [] : [eb('tokens.fingerprint', '=', fingerprint)]),
    ...conditions.terms.filter((term) => term !== found).map(hasTerm),
    ...conditions.metadata.map(hasPair),
  ]);
}

/** True for the scope that leaves no token out. */
export function isEverything({ id, container }: TokenScope): boolean {
  return !id.exact && id.text === '' && isRoot(container);
}

/** True for the pattern that every container matches. */
export function isRoot({ text, exact }: TextPattern): boolean {
  return !exact && (text === '' || text === '/');
}

function inScope({ id, container }: TokenScope, found: string | undefined): Predicate {
  const anyId = !id.exact && id.text === '';
  // A term's own index gives the order; SQLite would rather take one that begins with the id.
  const idColumn = found === undefined ? sql.ref('tokens.token_id') : sql`(tokens.token_id || '')`;
  return expressionBuilder<Schema, 'tokens'>().and([
    ...(anyId ? [] : [matches(idColumn, id)]),
    ...(isRoot(container) ? [] : [matches(sql.ref('tokens.container'), container)]),
  ]);
}

/** A prefix is a range, because text sorts by code point on both engines. */
export function matches(
  column: RawBuilder<unknown>,
  { text, exact }: TextPattern,
): RawBuilder<SqlBool> {
  if (exact) return sql`${column} = ${text}`;
  const end = afterPrefix(text);
  return end === undefined
    ? sql`${column} >= ${text}`
    : sql`(${column} >= ${text} and ${column} < ${end})`;
}

const lastCodePoint = 0x10ffff;
const firstSurrogate = 0xd800;
const afterSurrogates = 0xe000;

/** The first text after all that begin with `prefix`, by code point; `undefined` where none comes after. */
export function afterPrefix(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0) ?? 0);
  while (points.at(-1) === lastCodePoint) points.pop();
  const last = points.pop();
  if (last === undefined) return undefined;
  const next = last + 1 === firstSurrogate ? afterSurrogates : last + 1;
  return String.fromCodePoint(...points, next);
}

function hasTerm(term: string): Predicate {
  return sql<SqlBool>`exists (select 1 from search_terms as other
    where other.tenant_id = tokens.tenant_id and other.token_id = tokens.token_id
    and other.term = ${term})`;
}

/**
 * Stored metadata is the text that JSON.stringify made, so it holds the pair's own JSON. Of the
 * functions that tell case apart, `replace` is the one that both engines have.
 */
function hasPair({ key, value }: MetadataPair): Predicate {
  const pair = JSON.stringify({ [key]: value }).slice(1, -1);
  return sql<SqlBool>`replace(tokens.metadata, ${pair}, '') <> tokens.metadata`;
}
