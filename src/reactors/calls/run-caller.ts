/** Who called, when the call is done later: with the rights of that time, not of the request. */

import { authorityOf, mayAct, type StandingAuthority } from '../../access/authority.ts';
import type { Instant } from '../../base/clock.ts';
import { authenticated, type Caller, type Credential } from '../../rules/caller.ts';
import { holds, policyOf } from '../../rules/policy.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Store } from '../../store/store.ts';
import type { RunCaller } from './run-row.ts';

/** What it takes to call reactors, and to ask for results. */
export const invoking = { permission: 'reactor:invoke', alternative: 'token:use' } as const;

const nothing = { kind: 'private', policy: policyOf({ permissions: [], rules: [] }) } as const;

/**
 * `undefined` once the key, the session or the application is gone by which the call was made, or may not call
 * reactors any more: nothing is done for it. Of a call that was stored before keys were, the application and the
 * session alone are looked at.
 * @throws VaultError `integrity` where one of them was altered outside the vault.
 */
export async function callerOfWaiting(
  store: Store,
  tenant: Tenant,
  { run, now }: { readonly run: RunCaller; readonly now: Instant },
): Promise<Caller | undefined> {
  const authority = await authorityOf(store, tenant, { credential: credentialOf(run), now });
  if (!mayAct(authority)) return undefined;
  const { permission, alternative } = invoking;
  const mayCall = [permission, alternative].some((one) => holds(authority.policy, one));
  return mayCall ? callerOf(tenant, run, authority) : undefined;
}

/** The same caller, who may do nothing, for the log. */
export function callerWithout(tenant: Tenant, run: RunCaller): Caller {
  return callerOf(tenant, run, nothing);
}

function credentialOf({ application, key, session }: RunCaller): Credential {
  return { application, key, session: session ?? undefined };
}

function callerOf(
  tenant: Tenant,
  run: RunCaller,
  { kind, policy, authorizer }: Pick<StandingAuthority, 'kind' | 'policy' | 'authorizer'>,
): Caller {
  const { address, traceId, dialect, loop } = run;
  const origin = { address, traceId, dialect, loop };
  const rights = { kind, policy, ...(authorizer && { authorizer }) };
  return authenticated({ ...credentialOf(run), tenant, ...rights, origin });
}
