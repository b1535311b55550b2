/**
 * Nothing is opened without a grant and an entry: whatever opens is given one of these openers. That of
 * a caller remembers what was opened until a change speaks of it, and no response leaves before; a job of the
 * vault is named here.
 */
import assert from 'node:assert/strict';
import type { Instant } from '../base/clock.ts';
import { type OpeningGrant, openingGrant } from '../keys/envelope.ts';
import type { LogEntry } from '../store/log-chain/entries.ts';
import type { Caller } from './caller.ts';
import { failureOf } from './log-entries.ts';
import { accountOf } from './opened.ts';
import type { Permission } from './permissions.ts';
import { type Grant, holds } from './policy.ts';
import type { TenantKeys } from './tenant.ts';

/** What the vault opens for itself: what it opens for, of whom nothing is shown to a caller. */
const vaultJobs = {
  'load keyrings': 'the keys of tenants, which open everything else',
  'load proxies': 'the definition of a proxy, which calls follow and do not show',
  'load reactors': 'the code and configuration of a reactor, which calls follow and do not show',
  'load encryption keys':
    'the private keys for which clients encrypt; each use has an entry of its own',
  'match webhooks': 'which events webhooks ask for, when an event is stored',
  'describe proxies': 'what the event of a changed proxy says of it',
  'deliver events': 'events, and where and with which secret they are sent',
  'sign deliveries': 'the key that signs what is sent to webhooks',
  'run reactor calls': 'asynchronous calls of reactors, as their callers sent them',
  'expire card codes': 'tokens and token intents, which are sealed again without their code',
  'expire responses': 'stored responses, which are sealed again without what has expired',
} as const;

export type VaultJob = keyof typeof vaultJobs;

/** Whose keys open, and by which grant. */
export interface Opener extends TenantKeys {
  readonly grant: OpeningGrant;
}

/**
 * What makes a caller open something: a decision about a token, the permission that its request needs, or
 * that it is given its own response again.
 */
export type OpeningBasis = Grant | Permission | 'own response';

/** Opens for a caller, whose change has to say so. */
export function openerFor(caller: Caller, basis: OpeningBasis): Opener {
  assert(
    typeof basis !== 'string' || basis === 'own response' || holds(caller.policy, basis),
    'the caller holds the permission by which something is opened for it',
  );
  const { id, keyring } = caller.tenant;
  return { id, keyring, grant: caller.openings.asGrant };
}

/** Opens for the vault itself. */
export function openerOf(job: VaultJob, { id, keyring }: TenantKeys): Opener {
  return { id, keyring, grant: grantOf(job) };
}

/** The same where no tenant has a part in it. */
export function grantOf(_job: VaultJob): OpeningGrant {
  return unremembered;
}

const unremembered = openingGrant({ opened: () => undefined });

/** Fails where a caller is about to be given what no entry of the change speaks of. */
export function requireAccounted(caller: Caller, entries: readonly LogEntry[]): void {
  const [first] = caller.openings.take(entries);
  assert(first === undefined, `an opened ${first?.field} has its entry in the change`);
}

/** Entries for what was opened in vain: what fails by then, or is refused, is seen in the log as well. */
export function openedInVain(
  caller: Caller,
  entries: readonly LogEntry[],
  { at, operation }: { readonly at: Instant; readonly operation: string },
): readonly LogEntry[] {
  const named = new Map<string, LogEntry>();
  for (const { field, id: opened } of caller.openings.unspoken(entries)) {
    const { entity, byId } = accountOf(field);
    const id = byId ? opened : '*';
    named.set(`${entity} ${id}`, failureOf(caller, at, { entity, id, operation }));
  }
  return [...named.values()];
}
