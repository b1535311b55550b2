/** Queries about tokens by what they hold: their fingerprints, their search terms, their number. */
import assert from 'node:assert/strict';
import { type Kysely, sql } from 'kysely';
import type { Instant } from '../../base/clock.ts';
import type { TenantId, TokenId } from '../../base/ids.ts';
import { type PlaceOf, prepared } from '../prepared.ts';
import type { Query } from '../store.ts';
import { storedForm, tenantNumber } from '../stored-form.ts';
import type { DatabaseSchema, Key, Row, SqlValue } from '../tables.ts';
import { storedId, storedTenant } from './stored.ts';
import { notExpired } from './token-conditions.ts';

/** Tokens of one fingerprint that deduplication looks at, besides those that represent it. */
const equalsMax = 100;

/** As the index of those that represent theirs has it. */
const expressionOf = sql<string>`coalesce(fingerprint_expression, '')`;

/** A fingerprint, and the expressions that tokens may have of which deduplication looks for an equal. */
export interface FingerprintQuery {
  readonly fingerprint: string;
  readonly expression: string;
  /** True where the expression is that of the type: tokens without one of their own have it too. */
  readonly ofType: boolean;
}

/** An equal token as far as it is needed to choose one, without what may be large. */
export interface EqualToken
  extends Pick<
    Row<'tokens'>,
    | 'tenant_id'
    | 'token_id'
    | 'version'
    | 'type'
    | 'container'
    | 'fingerprint'
    | 'fingerprint_expression'
    | 'deduplicated'
    | 'expires_at'
  > {
  /** 1 where it has a mask or search indexes of its own. */
  readonly defined: number;
  /** Of the sealed data. */
  readonly bytes: number;
}

/** Equal tokens, including expired ones. For each fingerprint, the token that represents it comes first. */
export function equalTokens(
  tenant: TenantId,
  wanted: readonly FingerprintQuery[],
): Query<EqualToken> {
  const query = equalsByCount.get(wanted.length) ?? equalsOf(wanted.length);
  equalsByCount.set(wanted.length, query);
  const values = wanted.map(({ fingerprint, expression, ofType }, index) => ({
    [`fingerprint${index}`]: fingerprint,
    [`expression${index}`]: expression,
    [`orExpression${index}`]: ofType ? '' : expression,
  }));
  return query(Object.assign({ tenant: tenantNumber(tenant) }, ...values));
}

interface EqualsValues {
  readonly tenant: number;
  readonly [fingerprint: `fingerprint${number}`]: string;
  readonly [expression: `expression${number}`]: string;
  readonly [orExpression: `orExpression${number}`]: string;
}

/** A text for each number of fingerprints. */
const equalsByCount = new Map<number, (values: EqualsValues) => Query<EqualToken>>();

function equalsOf(count: number) {
  return prepared<EqualsValues, EqualToken>((placeOf) => (db) => {
    const [first, ...others] = Array.from({ length: count }, (_, index) =>
      equalsOfOne(db, placeOf, index),
    ).flat();
    assert(first !== undefined, 'there is a fingerprint to look for');
    return others
      .reduce((union, one) => union.unionAll(one), first)
      .orderBy('deduplicated', 'desc')
      .orderBy('created_at');
  });
}

/**
 * The token that represents the fingerprint has an index of its own. Others are as many as somebody likes to create,
 * also by other expressions, so that some of them are looked at, in the order of the index and without sorting.
 */
function equalsOfOne(db: Kysely<DatabaseSchema>, placeOf: PlaceOf<EqualsValues>, index: number) {
  const either = [placeOf(`expression${index}`), placeOf(`orExpression${index}`)];
  const equal = db
    .selectFrom('tokens')
    .select([
      'tenant_id',
      'token_id',
      'version',
      'type',
      'container',
      'fingerprint',
      'fingerprint_expression',
      'deduplicated',
      'expires_at',
      'created_at',
    ])
    .select([
      sql<number>`case when mask is null and search_indexes is null then 0 else 1 end`.as(
        'defined',
      ),
      sql<number>`octet_length(data)`.as('bytes'),
    ])
    .where('tenant_id', '=', sql<TenantId>`${placeOf('tenant')}`)
    .where('fingerprint', '=', placeOf(`fingerprint${index}`));
  const representing = equal
    .where('deduplicated', '=', sql.lit(1))
    .where(expressionOf, 'in', either);
  const some = equal.where('deduplicated', '=', sql.lit(0)).limit(equalsMax);
  return [
    db.selectFrom(representing.as('equal')).selectAll(),
    db.selectFrom(some.as('equal')).selectAll().where(expressionOf, 'in', either),
  ];
}

/**
 * The search terms under which a token is found. Only their keys: for more than the index by token
 * holds, SQLite would go through all terms of the tenant.
 */
export function searchTermKeys({ tenant_id, token_id }: Key<'tokens'>): Query<Key<'search_terms'>> {
  return termsOf({ tenant: tenantNumber(tenant_id), token: storedForm('id', token_id) });
}

const termsOf = prepared<
  { readonly tenant: number; readonly token: SqlValue },
  Key<'search_terms'>
>(
  (placeOf) => (db) =>
    db
      .selectFrom('search_terms')
      .select(['tenant_id', 'term', 'created_at', 'token_id'])
      .where('tenant_id', '=', sql<TenantId>`${placeOf('tenant')}`)
      .where('token_id', '=', sql<TokenId>`${placeOf('token')}`),
);

/** The same of several tokens. */
export function searchTermsOf(
  tenant: TenantId,
  tokens: readonly TokenId[],
): Query<Key<'search_terms'>> {
  return (db) =>
    db
      .selectFrom('search_terms')
      .select(['tenant_id', 'term', 'created_at', 'token_id'])
      .where('tenant_id', '=', storedTenant(tenant))
      .where('token_id', 'in', tokens.map(storedId));
}

export interface TypeCount {
  readonly type: string;
  readonly count: number;
  readonly last_created_at: Instant;
  /** The number of those that were created since the requested instant. */
  readonly active: number;
}

/** Tokens that have not expired, by type. The columns are those of one index, so no token itself is read. */
export function tokenCountsByType(
  tenant: TenantId,
  { now, activeSince }: { readonly now: Instant; readonly activeSince: Instant },
): Query<TypeCount> {
  return (db) =>
    db
      .selectFrom('tokens')
      .where('tenant_id', '=', storedTenant(tenant))
      .where(notExpired('expires_at', now))
      .select('type')
      .select(({ fn }) => [
        fn.countAll<number>().as('count'),
        fn.max('created_at').as('last_created_at'),
        fn.countAll<number>().filterWhere('created_at', '>=', activeSince).as('active'),
      ])
      .groupBy('type')
      .orderBy('type');
}

const stateColumns = [
  'tenant_id',
  'token_id',
  'version',
  'type',
  'container',
  'expires_at',
  'created_by',
  'created_at',
  'modified_at',
] as const;

/** A token as far as rules decide over it, without what may be large. */
export type TokenState = Pick<Row<'tokens'>, (typeof stateColumns)[number]>;

export function tokenStates(tenant: TenantId, ids: readonly TokenId[]): Query<TokenState> {
  return (db) =>
    db
      .selectFrom('tokens')
      .select(stateColumns)
      .where('tenant_id', '=', storedTenant(tenant))
      .where('token_id', 'in', ids.map(storedId));
}

/**
 * The places of some tokens with one of the fingerprints, of which there are few. Tokens that represent theirs come
 * first. As above, nothing is sorted but what is returned.
 */
export function equalTokenPlaces(
  tenant: TenantId,
  fingerprints: readonly string[],
): Query<Pick<Row<'tokens'>, 'token_id' | 'container' | 'expires_at'>> {
  return (db) => {
    const [first, ...others] = fingerprints.flatMap((fingerprint) => {
      const equal = db
        .selectFrom('tokens')
        .select(['token_id', 'container', 'expires_at', 'deduplicated', 'created_at'])
        .where('tenant_id', '=', storedTenant(tenant))
        .where('fingerprint', '=', fingerprint)
        .limit(equalsMax);
      // In the order of their index, or SQLite takes the one of all.
      const representing = equal.where('deduplicated', '=', sql.lit(1)).orderBy(expressionOf);
      const some = equal.where('deduplicated', '=', sql.lit(0));
      return [representing, some].map((one) => db.selectFrom(one.as('equal')).selectAll());
    });
    assert(first !== undefined, 'there is a fingerprint to look for');
    return others
      .reduce((union, one) => union.unionAll(one), first)
      .orderBy('deduplicated', 'desc')
      .orderBy('created_at')
      .limit(equalsMax);
  };
}
