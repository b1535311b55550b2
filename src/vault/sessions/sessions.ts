/** Sessions: short-lived keys that hold what an application granted them, and nothing before. */
import { hashSessionNonce } from '../../crypto/session-nonce.ts';
import { day, minute } from '../../lib/clock.ts';
import type { TenantId } from '../../lib/ids.ts';
import { covers, type Policy, policyOf } from '../../rules/policy.ts';
import { requireProven } from '../../rules/proven-row.ts';
import type { Tenant } from '../../rules/tenant.ts';
import { sessionWithNonce } from '../../store/queries/sessions.ts';
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
