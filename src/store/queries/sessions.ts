/** Queries about sessions. */
import { type ExpressionBuilder, sql } from 'kysely';
import type { Instant } from '../../base/clock.ts';
import type { SessionId, TenantId } from '../../base/ids.ts';
import { isSafe, readableColumns } from '../safe-integers.ts';
import type { Query } from '../store.ts';
import type { Unproven } from '../stored-row.ts';
import type { DatabaseSchema } from '../tables.ts';

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

function isLive(eb: Sessions, { tenant, now }: LiveSessions) {
  const namesKey = (application: 'application_id' | 'authorized_by', key: SessionKey) =>
    eb.exists(
      eb
        .selectFrom('applications')
        .select('applications.application_id')
        .where('applications.tenant_id', '=', tenant)
        .whereRef('applications.application_id', '=', `sessions.${application}`)
        // The list is JSON of UUIDs, which hold no wildcard.
        .where(
          'applications.key_ids',
          'like',
          sql<string>`'%"' || ${eb.ref(`sessions.${key}`)} || '"%'`,
        ),
    );
  return eb.and([
    eb('sessions.expires_at', '>', now),
    namesKey('application_id', 'created_by_key'),
    eb.or([
      eb('sessions.authorized_by', 'is', null),
      namesKey('authorized_by', 'authorized_by_key'),
    ]),
  ]);
}

type SessionKey = 'created_by_key' | 'authorized_by_key';
