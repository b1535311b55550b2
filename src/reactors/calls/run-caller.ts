/** The caller of an asynchronous call, with the rights at the time of the run, not of the request. */

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
 * `undefined` if the key, the session, or the application behind the call has ended, or may no longer call reactors:
 * such a call no longer runs. Calls stored by releases without key ids are checked against the application and the
 * session only.
 * @throws VaultError `integrity` if one of them was altered outside the vault.
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

/** The same caller without permissions, for the log. */
export function callerWithout(tenant: Tenant, run: RunCaller): Caller {
  return callerOf(tenant, run, nothing);
}

function credentialOf({ application, key, session, signedIn }: RunCaller): Credential {
  return { application, key, session: session ?? undefined, ...(signedIn && { signedIn }) };
}

function callerOf(
  tenant: Tenant,
  run: RunCaller,
  {
    kind,
    policy,
    authorizer,
    spenders,
  }: Pick<StandingAuthority, 'kind' | 'policy' | 'authorizer' | 'spenders'>,
): Caller {
  const { address, traceId, dialect, loop, userAgent, forwarded, person, reason } = run;
  const origin = { address, traceId, dialect, loop, userAgent, forwarded, person, reason };
  const rights = { kind, policy, spenders, ...(authorizer && { authorizer }) };
  return authenticated({ ...credentialOf(run), tenant, ...rights, origin });
}
