/** Authority: the rows from which the right to act derives, and what remains of it. It ends with any of them. */
import assert from 'node:assert/strict';
import type { Instant } from '../base/clock.ts';
import type { ApplicationId, KeyId } from '../base/ids.ts';
import { type Caller, type Credential, spenderOf, withRights } from '../rules/caller.ts';
import type { EgressPolicy } from '../rules/egress-policies.ts';
import type { HolderKind } from '../rules/permissions.ts';
import { covers, type Policy, policyOf, showingAtMost } from '../rules/policy.ts';
import { provenRow } from '../rules/proven-row.ts';
import type { Tenant } from '../rules/tenant.ts';
import type { Spender } from '../store/log-chain/entries.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { accessOf, keyIdsOf, originsOf, storedPolicies } from './applications/row.ts';
import { hasRole, makerStands } from './people/maker.ts';

/** What a credential may do now. */
export interface StandingAuthority {
  readonly kind: HolderKind;
  /** Empty for a session that is not authorized, or whose authorization has ended. */
  readonly policy: Policy;
  /** For a session: the policy of the application that authorized it. */
  readonly authorizer?: Policy;
  /** Of the pages that may send the credential, where the application lists any. */
  readonly origins?: readonly string[] | undefined;
  /** Of an application: where its programs may send requests. Sessions send none. */
  readonly egress?: readonly EgressPolicy[] | undefined;
  /** For a session: whose budgets it spends. */
  readonly spenders?: readonly Spender[];
  /** For a session, when it ends by itself. */
  readonly expiresAt: Instant | undefined;
}

/** The row that has ended, and with it every right that derives from it. */
export interface EndedAuthority {
  readonly ended: 'application' | 'key' | 'person' | 'proxy' | 'session';
}

/** False also for a session that may do nothing, because it is not authorized or no longer is. */
export function mayAct(
  authority: StandingAuthority | EndedAuthority,
): authority is StandingAuthority {
  return !('ended' in authority) && authority.policy.size > 0;
}

const nothing = policyOf({ permissions: [], rules: [] });

/**
 * The one place that decides from which rows authority derives: for requests, for calls that wait, and for
 * everything that runs for longer than a moment. A proxy that lends rights to callers without a key, and code that is
 * lent rights, are decided by their holders.
 *
 * - a key derives from its application, which must still name the key;
 * - a person derives from a session that has not ended, from the row of the person, which must still name the
 *   application, and from that application;
 * - a sign-in link, and the session that it begins, derive from the key, or the person, that made it, and from the
 *   application as which they did: see {@link makerStands};
 * - a session derives from its own row, until it expires, and from the key and the application that created it;
 * - the rights of a session derive from the key and the application that authorized it, for as long as that
 *   application could still grant them.
 *
 * An application names its keys in a row that proves itself, so a deleted key that an attacker puts back gives no
 * authority. The caller of this function checks the tenant, which it has already read.
 *
 * @throws VaultError `integrity` when one of the rows was altered outside the vault.
 */
export async function authorityOf(
  store: Pick<Store, 'get'>,
  tenant: Tenant,
  { credential, now }: CredentialNow,
): Promise<StandingAuthority | EndedAuthority> {
  const { session: session_id, anonymous } = credential;
  assert(anonymous === undefined, 'the authority of a caller without a key is that of its proxy');
  if (session_id === undefined) {
    const application = await applicationOf(store, tenant, credential.application);
    if (application === undefined) return { ended: 'application' };
    if (!hasKey(application, credential.key)) return { ended: 'key' };
    if (credential.signedIn && !(await mayActAs(store, tenant, { credential, now }))) {
      return { ended: 'person' };
    }
    const policy = policyOf(accessOf(application));
    const origins = originsOf(application);
    const egress = storedPolicies(application);
    return { kind: application.type, policy, origins, egress, expiresAt: undefined };
  }
  const key = { tenant_id: tenant.id, session_id };
  const session = await provenRow(store, tenant, { table: 'sessions', key });
  if (session === undefined || session.expires_at <= now) return { ended: 'session' };
  const creator = await applicationOf(store, tenant, session.application_id);
  if (creator === undefined) return { ended: 'application' };
  if (!namesKey(creator, session.created_by_key)) return { ended: 'key' };
  const granted = await grantedTo(store, tenant, session);
  const origins = originsOf(creator);
  const spenders = spendersOf(session);
  return { kind: 'session', ...granted, spenders, origins, expiresAt: session.expires_at };
}

export interface CallerLookup {
  readonly store: Pick<Store, 'get'>;
  readonly now: Instant;
  /** What a caller without a key may do. If absent, callers without a key are not admitted. */
  readonly withoutKey?:
    | ((caller: Caller) => Promise<StandingAuthority | EndedAuthority>)
    | undefined;
}

/**
 * The caller with its current rights; `undefined` once its credential has ended, or may do nothing any more.
 * Values opened for it stay accounted to it.
 * @throws VaultError `integrity` when one of the rows was altered outside the vault.
 */
export async function callerNow(
  { store, now, withoutKey }: CallerLookup,
  caller: Caller,
): Promise<Caller | undefined> {
  const authority =
    caller.anonymous !== undefined && withoutKey
      ? await withoutKey(caller)
      : await authorityOf(store, caller.tenant, { credential: caller, now });
  if ('ended' in authority) return undefined;
  // A proxy that requires no key may have no application; its callers then had no rights from the beginning.
  if (authority.policy.size === 0 && caller.policy.size > 0) return undefined;
  return withRights(caller, { ...authority, policy: policyFor(caller, authority.policy) });
}

/** A person sees or sends no value unmasked without a reason, which is in the log next to what was shown. */
export function policyFor(
  { signedIn, origin }: Pick<Caller, 'signedIn' | 'origin'>,
  policy: Policy,
): Policy {
  return signedIn && origin.reason === undefined ? showingAtMost(policy, 'mask') : policy;
}

/**
 * What an application lends to a proxy or to code by being linked to it; `undefined` once it is deleted. Management
 * applications lend nothing.
 * @throws VaultError `integrity` when it was altered outside the vault.
 */
export async function authorityLentBy(
  store: Pick<Store, 'get'>,
  tenant: Tenant,
  application: ApplicationId,
): Promise<StandingAuthority | undefined> {
  const row = await applicationOf(store, tenant, application);
  if (row === undefined || row.type === 'management') return undefined;
  return { kind: row.type, policy: policyOf(accessOf(row)), expiresAt: undefined };
}

interface CredentialNow {
  readonly credential: Credential;
  readonly now: Instant;
}

async function mayActAs(
  store: Pick<Store, 'get'>,
  tenant: Tenant,
  { credential: { application, signedIn }, now }: CredentialNow,
): Promise<boolean> {
  const tenant_id = tenant.id;
  const session = signedIn && {
    table: 'console_sessions' as const,
    key: { tenant_id, secret_hash: signedIn.secretHash },
  };
  const row = session && (await provenRow(store, tenant, session));
  if (!row || row.person_id !== signedIn.id || row.idle_at <= now || row.expires_at <= now) {
    return false;
  }
  const isInRole = await hasRole(store, tenant, { person: row.person_id, application });
  return isInRole && (await makerStands(store, tenant, row));
}

/** The rights granted to the session, for as long as the granting application exists and could still grant them. */
async function grantedTo(
  store: Pick<Store, 'get'>,
  tenant: Tenant,
  session: Row<'sessions'>,
): Promise<{ readonly policy: Policy; readonly authorizer: Policy }> {
  const unauthorized = { policy: nothing, authorizer: nothing };
  if (session.authorized_by === null) return unauthorized;
  const application = await applicationOf(store, tenant, session.authorized_by);
  if (!application || !namesKey(application, session.authorized_by_key)) return unauthorized;
  const authorizer = policyOf(accessOf(application));
  const policy = policyOf(accessOf(session));
  return covers(authorizer, policy) ? { policy, authorizer } : unauthorized;
}

/** The keys by which it was created and authorized: neither reveals more through sessions than by itself. */
function spendersOf(session: Row<'sessions'>): readonly Spender[] {
  const { application_id, created_by_key, authorized_by, authorized_by_key } = session;
  const creator = spenderOf({ application: application_id, key: created_by_key ?? undefined });
  if (authorized_by === null) return [creator];
  return [spenderOf({ application: authorized_by, key: authorized_by_key ?? undefined }), creator];
}

async function applicationOf(
  store: Pick<Store, 'get'>,
  tenant: Tenant,
  application_id: Row<'applications'>['application_id'],
): Promise<Row<'applications'> | undefined> {
  const key = { tenant_id: tenant.id, application_id };
  return provenRow(store, tenant, { table: 'applications', key });
}

/** If no key was sent, or a call of an earlier release does not name it, the application decides alone. */
function hasKey(application: Row<'applications'>, key: KeyId | undefined): boolean {
  return key === undefined || keyIdsOf(application).includes(key);
}

/**
 * A session of an earlier release does not record from which keys it came. Its key may have been
 * deleted because it leaked, so the session has ended.
 */
function namesKey(application: Row<'applications'>, key: KeyId | null): boolean {
  return key !== null && keyIdsOf(application).includes(key);
}
