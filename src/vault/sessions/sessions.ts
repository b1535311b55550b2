/** Sessions: short-lived keys that hold what an application granted them, and nothing before. */
import { hashSessionNonce } from '../../crypto/session-nonce.ts';
import { type Clock, day, type Instant, minute } from '../../lib/clock.ts';
import type { TenantId } from '../../lib/ids.ts';
import type { LogEntry } from '../../lib/log-chain/entries.ts';
import { systemEntry } from '../../rules/log-entries.ts';
import { covers, type Policy, policyOf } from '../../rules/policy.ts';
import { requireProven } from '../../rules/proven-row.ts';
import type { Tenant } from '../../rules/tenant.ts';
import { keysWithHashes } from '../../store/queries/applications.ts';
import { sessionWithNonce } from '../../store/queries/sessions.ts';
import { rowsDue } from '../../store/queries/tenant-rows.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { accessOf } from '../applications/row.ts';

export const sessionLifeMs = 3 * minute;
export const sessionLifeMsMax = day;

export interface SessionPolicies {
  /** What the session holds. */
  readonly policy: Policy;
  /** What the application holds that authorized it. */
  readonly authorizer: Policy;
}

const nothing = policyOf({ permissions: [], rules: [] });
const unauthorized: SessionPolicies = { policy: nothing, authorizer: nothing };

/**
 * A session holds what it was granted, for as long as the application that granted it exists and
 * could grant it still.
 * @throws VaultError `integrity` when one of the two was altered outside the vault.
 */
export async function policiesOfSession(
  store: Store,
  tenant: Tenant,
  session: Row<'sessions'>,
): Promise<SessionPolicies> {
  const { tenant_id, authorized_by } = requireProven(tenant, 'sessions', session);
  if (authorized_by === null) return unauthorized;
  const application = await store.get('applications', {
    tenant_id,
    application_id: authorized_by,
  });
  if (!application) return unauthorized;
  requireProven(tenant, 'applications', application);
  const authorizer = policyOf(accessOf(application));
  const policy = policyOf(accessOf(session));
  return covers(authorizer, policy) ? { policy, authorizer } : unauthorized;
}

/** The session that the nonce was given for, whether or not it has expired. */
export async function sessionOfNonce(
  store: Store,
  tenant: TenantId,
  nonce: string,
): Promise<Row<'sessions'> | undefined> {
  const [row] = await store.select(sessionWithNonce(tenant, hashSessionNonce(nonce)));
  return row;
}

export interface Purge {
  readonly tenant: TenantId;
  /** What had expired by then goes. */
  readonly until: Instant;
  /** The most sessions that are removed. */
  readonly rowsMax: number;
}

/**
 * Removes expired sessions and their keys, the oldest first, in one change.
 * @returns how many; 0 also when another server was faster.
 */
export async function purgeSessions(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  { tenant, until, rowsMax }: Purge,
): Promise<number> {
  const now = clock.now();
  const due = { tenant: { id: tenant }, until, rowsMax, skip: 0 };
  const rows = await store.select(rowsDue('sessions', 'expires_at', due));
  const [first, ...others] = rows.map((row) =>
    systemEntry({ tenant, at: now, entity: 'session', id: row.session_id, operation: 'expire' }),
  );
  if (first === undefined) return 0;
  const entries: readonly [LogEntry, ...LogEntry[]] = [first, ...others];
  const hashes = rows.map(({ key_hash }) => key_hash);
  const keys = await store.select(keysWithHashes(tenant, hashes));
  const { conflict } = await store.commit({
    remove: {
      sessions: rows.map(({ tenant_id, session_id, version }) => ({
        tenant_id,
        session_id,
        version,
      })),
      api_keys: keys,
    },
    entries,
  });
  return conflict === undefined ? rows.length : 0;
}
