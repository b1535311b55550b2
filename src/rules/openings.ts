/**
 * The vault opens nothing without a grant and a log entry: all code that opens takes one of these openers. The opener
 * of a caller records what was opened until a change covers it, and no response leaves before that. Jobs of the vault
 * itself are listed here.
 */
import assert from 'node:assert/strict';
import type { Instant } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import { type OpeningGrant, openingGrant } from '../keys/envelope.ts';
import { type Disclosure, throughWords } from '../store/log-chain/disclosure.ts';
import type { LogEntry } from '../store/log-chain/entries.ts';
import type { Caller } from './caller.ts';
import { failureOf } from './log-entries.ts';
import { accountOf } from './opened.ts';
import type { Permission } from './permissions.ts';
import { type Grant, holds } from './policy.ts';
import type { TenantKeys } from './tenant.ts';

/** The purposes for which the vault opens values for itself. It shows none of these values to a caller. */
const vaultJobs = {
  'load keyrings': 'the keys of tenants, which open everything else',
  'load proxies': 'the definition of a proxy, which calls follow and do not show',
  'load reactors': 'the code and configuration of a reactor, which calls follow and do not show',
  'load encryption keys':
    'the private keys for which clients encrypt; each use has an entry of its own',
  'match webhooks': 'which events webhooks ask for, when an event is stored',
  'examine proxies':
    'the client keys of proxies, of which doctor names those that are too slow, and their certificates, of which the ' +
    'report of problems names those that end',
  'describe proxies': 'what the event of a changed proxy says of it',
  'deliver events': 'events, and where and with which secret they are sent',
  'sign deliveries': 'the key that signs what is sent to webhooks',
  'rotate keys': 'secrets of the vault itself, which are sealed again under a new key',
  'match approvals':
    'which request a person approved, which is compared with the one that is about to be sent',
  'match results':
    'whose call a stored result is of, which is found out before the result is opened for a caller',
  'run reactor calls': 'asynchronous calls of reactors, as their callers sent them',
  'expire card codes': 'tokens and token intents, which are sealed again without their code',
  'expire responses': 'stored responses, which are sealed again without what has expired',
  'continue sign-ins':
    'what a sign-in began with, which the browser keeps in a cookie until it ends',
  'rotate tenant keys': 'everything of a tenant, which is sealed again under its new keys',
} as const;

export type VaultJob = keyof typeof vaultJobs;

/** The keys that open, and the grant. */
export interface Opener extends TenantKeys {
  readonly grant: OpeningGrant;
}

/** Opens to seal the same value again. */
export interface Resealer extends Opener {
  readonly random: Random;
}

/**
 * The reason for which a caller opens a value: a decision about a token, the permission of its request, or the replay
 * of its own response.
 */
export type OpeningBasis = Grant | Permission | 'own response';

/**
 * The opener of a caller, whose change has to account for each value.
 *
 * @param isTested see `OpenedForCaller`. What a caller may see whole is always tested, unless the caller says no.
 */
export function openerFor(
  caller: Caller,
  basis: OpeningBasis,
  isTested = typeof basis !== 'string' && basis.transform === 'reveal',
): Opener {
  assert(
    typeof basis !== 'string' || basis === 'own response' || holds(caller.policy, basis),
    'the caller holds the permission by which something is opened for it',
  );
  const { id, keyring } = caller.tenant;
  const { openings } = caller;
  return { id, keyring, grant: isTested ? openings.asTest : openings.asGrant };
}

/** Opens for the vault itself. */
export function openerOf(job: VaultJob, { id, keyring }: TenantKeys): Opener {
  return { id, keyring, grant: grantOf(job) };
}

/** The same without a tenant. */
export function grantOf(_job: VaultJob): OpeningGrant {
  return unremembered;
}

const unremembered = openingGrant({ opened: () => undefined });

/** Fails if a caller is about to receive a value that no entry of the change covers. */
export function requireAccounted(caller: Caller, entries: readonly LogEntry[]): void {
  const [first] = caller.openings.take(entries);
  assert(first === undefined, `an opened ${first?.field} has its entry in the change`);
}

/**
 * Log entries for opened values that the caller does not receive, because the request failed or was refused. One that
 * the request has tested counts as revealed: a caller could find it out by requests that fail.
 */
export function abandonedOpenings(
  caller: Caller,
  entries: readonly LogEntry[],
  { at, operation }: { readonly at: Instant; readonly operation: string },
): readonly LogEntry[] {
  const named = new Map<string, LogEntry>();
  for (const { field, id: opened, isTested } of caller.openings.unspoken(entries)) {
    const { entity, byId } = accountOf(field);
    const id = byId ? opened : '*';
    const disclosure = isTested && byId ? testedThrough(operation) : undefined;
    const entry = failureOf(caller, at, { entity, id, operation, disclosure });
    named.set(`${entity} ${id}`, entry);
  }
  return [...named.values()];
}

function testedThrough(operation: string): Disclosure {
  return { shown: 'revealed', through: throughWords.find((one) => one === operation) ?? 'get' };
}
