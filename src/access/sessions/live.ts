/** The live sessions of a tenant, for administrators: lists them with the applications behind them, and ends one. */
import type { Clock } from '../../base/clock.ts';
import { formatTimestamp } from '../../base/dates.ts';
import { VaultError } from '../../base/errors.ts';
import { parseUuid, type SessionId } from '../../base/ids.ts';
import { type Caller, payerOf } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import { offsetPage, type PageQuery } from '../../rules/offset-page.ts';
import type { Decide } from '../../rules/operation.ts';
import { ifProven } from '../../rules/proven-row.ts';
import { type ListTools, listed } from '../../rules/stored-resource.ts';
import { keysWithHashes } from '../../store/queries/applications.ts';
import { liveSessionCount, liveSessionPage } from '../../store/queries/sessions.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { accessOf } from '../applications/row.ts';

export interface SessionReading {
  readonly store: Store;
  readonly clock: Clock;
}

export interface SessionListing extends SessionReading, ListTools {}

const newestFirst = {
  route: 'GET /sessions',
  table: 'sessions',
  count: liveSessionCount,
  page: liveSessionPage,
} as const;

/**
 * Newest first: sessions that have not expired and whose keys, of their creation and of their authorization, exist.
 * A session that was altered outside the vault is left out, and an entry records that it was altered.
 * @throws VaultError `validation_failed` for an invalid cursor.
 */
export function listSessions(tools: SessionListing, caller: Caller, query: PageQuery): Decide {
  const { store, clock } = tools;
  const { tenant } = caller;
  const filter = { tenant: tenant.id, now: clock.now() };
  const readPage = offsetPage(newestFirst, tenant, { filter, query });
  return async () => {
    const { rows: found, pagination } = await readPage(store, payerOf(caller));
    const rows = { table: 'sessions', found, show: viewSession } as const;
    const { data, entries } = await listed(tools, caller, rows);
    return { change: { entries }, reply: { status: 200, body: { pagination, data } } };
  };
}

/** Without its key and its nonce, and without what they could be recognized by. */
function viewSession(row: Row<'sessions'>): object {
  return {
    id: row.session_id,
    tenant_id: row.tenant_id,
    application_id: row.application_id,
    ...(row.created_by_key !== null && { created_by_key: row.created_by_key }),
    ...(row.authorized_by !== null && { authorized_by: row.authorized_by }),
    ...(row.authorized_by_key !== null && { authorized_by_key: row.authorized_by_key }),
    ...accessOf(row),
    created_at: formatTimestamp(row.created_at),
    ...(row.authorized_at !== null && { authorized_at: formatTimestamp(row.authorized_at) }),
    expires_at: formatTimestamp(row.expires_at),
  };
}

/**
 * From the decision `not_found`, also for a session that has expired. A row that was altered outside the vault is
 * removed alone: it might name the key of another caller as its own, and without it its own key gives no access.
 */
export function deleteSession(
  { store, clock }: SessionReading,
  caller: Caller,
  id: string,
): Decide {
  const { tenant } = caller;
  return async () => {
    const now = clock.now();
    const session_id = parseUuid<SessionId>(id);
    const row = session_id && (await store.get('sessions', { tenant_id: tenant.id, session_id }));
    const own = row && ifProven(tenant, 'sessions', row);
    if (!row || (own && own.expires_at <= now)) {
      throw new VaultError('not_found', { public: 'There is no session with this id.' });
    }
    const { tenant_id, version } = row;
    const api_keys = own ? await store.select(keysWithHashes(tenant.id, [own.key_hash])) : [];
    const fact = { entity: 'session', id: row.session_id, operation: 'delete' } as const;
    return {
      change: {
        remove: { sessions: [{ tenant_id, session_id: row.session_id, version }], api_keys },
        entries: [entryOf(caller, now, fact)],
      },
      reply: { status: 204 },
    };
  };
}
