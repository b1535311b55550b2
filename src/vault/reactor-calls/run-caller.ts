/** Who called, when the call is done later: with the rights of that time, not of the request. */
import type { Instant } from '../../lib/clock.ts';
import { authenticated, type Caller } from '../../rules/caller.ts';
import type { HolderKind } from '../../rules/permissions.ts';
import { type Policy, policyOf } from '../../rules/policy.ts';
import { requireProven } from '../../rules/proven-row.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Store } from '../../store/store.ts';
import { accessOf } from '../applications/row.ts';
import { policiesOfSession } from '../sessions/sessions.ts';
import type { RunCaller } from './run-row.ts';

const nothing = policyOf({ permissions: [], rules: [] });

/** @throws VaultError `integrity` where its application or session was altered outside the vault. */
export async function callerOfWaiting(
  store: Store,
  tenant: Tenant,
  { run, now }: { readonly run: RunCaller; readonly now: Instant },
): Promise<Caller> {
  return callerOf(tenant, run, await holderOf(store, tenant, { run, now }));
}

/** The same caller, who may nothing. */
export function callerWithout(tenant: Tenant, run: RunCaller): Caller {
  return callerOf(tenant, run, { kind: 'private', policy: nothing });
}

function callerOf(
  tenant: Tenant,
  { application, session, address, traceId, dialect }: RunCaller,
  { kind, policy }: HolderRights,
): Caller {
  return authenticated({
    tenant,
    application,
    session: session ?? undefined,
    kind,
    policy,
    origin: { address, traceId, dialect },
  });
}

interface HolderRights {
  readonly kind: HolderKind;
  readonly policy: Policy;
}

/** Nothing where the application or session is gone. */
async function holderOf(
  store: Store,
  tenant: Tenant,
  { run, now }: { readonly run: RunCaller; readonly now: Instant },
): Promise<HolderRights> {
  const tenant_id = tenant.id;
  if (run.session !== null) {
    const row = await store.get('sessions', { tenant_id, session_id: run.session });
    if (!row || row.expires_at <= now) return { kind: 'session', policy: nothing };
    const { policy } = await policiesOfSession(store, tenant, row);
    return { kind: 'session', policy };
  }
  const row = await store.get('applications', { tenant_id, application_id: run.application });
  if (!row) return { kind: 'private', policy: nothing };
  requireProven(tenant, 'applications', row);
  return { kind: row.type, policy: policyOf(accessOf(row)) };
}
