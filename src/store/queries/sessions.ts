/** Queries about sessions. */
import type { ExpressionBuilder } from 'kysely';
import type { Instant } from '../../base/clock.ts';
import type { KeyId, SessionId, TenantId } from '../../base/ids.ts';
import { isSafe, readableColumns } from '../safe-integers.ts';
import type { Query } from '../store.ts';
import type { Unproven } from '../stored-row.ts';
import type { DatabaseSchema, Row } from '../tables.ts';

/** The session of that nonce, whether or not it has expired. */
export function sessionWithNonce(tenant: TenantId, nonceHash: string): Query<Unproven<'sessions'>> {
  return (db) =>
    db
      .selectFrom('sessions')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where('nonce_hash', '=', nonceHash);
}

export interface LiveSessions {
  readonly tenant: TenantId;
  readonly now: Instant;
}

/** Sessions that have not expired, whose creator and authorizer still name the keys that were used. */
export function liveSessionCount(live: LiveSessions): Query<{ readonly count: number }> {
  return (db) =>
    db
      .selectFrom('sessions')
      .where('sessions.tenant_id', '=', live.tenant)
      .where((eb) => isLive(eb, live))
      .select((eb) => eb.fn.countAll<number>().as('count'));
}

/** Newest first, ties by id. */
type SessionPosition = readonly [at: Instant, id: SessionId];

export interface LiveSessionPage extends LiveSessions {
  readonly limit: number;
  /** Continues after this session; otherwise so many are passed over. */
  readonly after: SessionPosition | undefined;
  readonly skip: number;
}

/**
 * A session with an integer that the vault cannot have written keeps no other from being read: it has null there. One
 * with such a time of creation has no place in the order, and is left out.
 */
export function liveSessionPage({
  limit,
  after,
  skip,
  ...live
}: LiveSessionPage): Query<Unproven<'sessions'>> {
  return (db) => {
    const select = db
      .selectFrom('sessions')
      .select(readableColumns('sessions'))
      .where('sessions.tenant_id', '=', live.tenant)
      .where((eb) => isLive(eb, live))
      .where(isSafe('created_at'))
      .orderBy('created_at', 'desc')
      .orderBy('session_id', 'desc')
      .limit(limit);
    const page =
      after === undefined
        ? select.offset(skip)
        : select.where(({ eb, refTuple, tuple }) =>
            eb(refTuple('created_at', 'session_id'), '<', tuple(...after)),
          );
    return page as unknown as ReturnType<Query<Unproven<'sessions'>>>;
  };
}

type Sessions = ExpressionBuilder<DatabaseSchema, 'sessions'>;

/** A key that an application of the tenant does not have any more has no row; those of sessions open none. */
function isLive(eb: Sessions, { tenant, now }: LiveSessions) {
  const keys = eb
    .selectFrom('api_keys')
    .select('api_keys.key_id')
    .where('api_keys.tenant_id', '=', tenant)
    .where('api_keys.session_id', 'is', null);
  return eb.and([
    eb('sessions.expires_at', '>', now),
    eb('sessions.created_by_key', 'in', keys),
    eb.or([eb('sessions.authorized_by', 'is', null), eb('sessions.authorized_by_key', 'in', keys)]),
  ]);
}

/** The tenants that have sessions, also ended ones. */
export const tenantsWithSessions: Query<Pick<Row<'sessions'>, 'tenant_id'>> = (db) =>
  db.selectFrom('sessions').select('tenant_id').distinct().orderBy('tenant_id');

/** Some sessions of a tenant, whether or not they have ended. */
export function someSessions(
  tenant: TenantId,
  limit: number,
): Query<Pick<Row<'sessions'>, 'tenant_id' | 'session_id' | 'version'>> {
  return (db) =>
    db
      .selectFrom('sessions')
      .select(['tenant_id', 'session_id', 'version'])
      .where('tenant_id', '=', tenant)
      .orderBy('session_id')
      .limit(limit);
}

/** The keys of those sessions. */
export function keysOfSessions(
  tenant: TenantId,
  sessions: readonly SessionId[],
): Query<Pick<Row<'api_keys'>, 'key_hash' | 'version' | 'key_id'>> {
  return (db) =>
    db
      .selectFrom('api_keys')
      .select(['key_hash', 'version', 'key_id'])
      .where('tenant_id', '=', tenant)
      .where('session_id', 'in', sessions);
}

/** Sessions that have not expired and that a key opened or authorized. They end with it. */
export function sessionsOfKey({
  tenant,
  key,
  now,
}: LiveSessions & { readonly key: KeyId }): Query<Pick<Row<'sessions'>, 'session_id'>> {
  return (db) =>
    db
      .selectFrom('sessions')
      .select('session_id')
      .where('tenant_id', '=', tenant)
      .where('expires_at', '>', now)
      .where((eb) => eb.or([eb('created_by_key', '=', key), eb('authorized_by_key', '=', key)]))
      .orderBy('session_id');
}
