/** Log entries for requests that are refused before their caller is known. */
import type { Instant } from '../base/clock.ts';
import { type LogEntry, noSource } from '../store/log-chain/entries.ts';
import type { Row } from '../store/tables.ts';
import type { Origin } from './caller.ts';
import { alteredOutside } from './log-entries.ts';

/** A stored key as the log names it: by its session, if it is known to be the key of one. */
export type RefusedKey = Pick<Row<'api_keys'>, 'tenant_id' | 'key_id'> &
  Partial<Pick<Row<'api_keys'>, 'session_id'>>;

/** A session of the console as the log names it. */
export type RefusedConsoleSession = Pick<Row<'console_sessions'>, 'tenant_id'> & {
  readonly console_session_id: Row<'console_sessions'>['session_id'];
  /** Whose session it is, unless its row was altered. */
  readonly person_id?: Row<'console_sessions'>['person_id'];
};

/** A person whom the identity provider knows, and whom the operator's mapping no longer lets in. */
export interface RefusedPerson extends Pick<Row<'people'>, 'tenant_id' | 'person_id'> {
  readonly person_name: string;
}

/** What was refused, as far as it is stored. */
export type RefusedCredential = RefusedKey | RefusedConsoleSession | RefusedPerson;

export interface FailedAuthentication {
  readonly key: RefusedCredential;
  /** The key, or its holder, was altered outside the vault. */
  readonly flaw: 'altered' | undefined;
}

/**
 * A known key was sent and refused: its holder is deleted, or the key has expired. Or a session of the console was: it
 * has ended, its request does not come from the console, or its person may not act as the application that it names.
 * Or a person signed in with the identity provider, and has no role.
 */
export function failedAuthenticationEntry(
  origin: Origin,
  at: Instant,
  { key, flaw }: FailedAuthentication,
): LogEntry {
  const { noun, ...about } = subjectOf(key);
  const entry = anonymousDenial(origin, at, {
    tenant_id: key.tenant_id,
    ...about,
    operation: 'authenticate',
    message: flaw
      ? `Authentication failed: the ${noun} was ${alteredOutside}`
      : 'Authentication failed',
  });
  const { person_id, person_name = null } = {
    person_id: undefined,
    person_name: undefined,
    ...key,
  };
  if (!person_id) return entry;
  return { ...entry, source: { ...(entry.source ?? noSource), person_id, person_name } };
}

function subjectOf(key: RefusedCredential) {
  if ('console_session_id' in key) return ofConsole(key);
  return 'key_id' in key ? ofKey(key) : ofPerson(key);
}

function ofPerson({ person_id: entity_id }: RefusedPerson) {
  return { noun: 'person', entity_type: 'person', entity_id, key_id: null };
}

function ofKey({ key_id, session_id = null }: RefusedKey) {
  const entity_type = session_id === null ? 'application_key' : 'session';
  return { noun: 'key', entity_type, entity_id: session_id ?? key_id, key_id };
}

function ofConsole({ console_session_id: entity_id }: RefusedConsoleSession) {
  return { noun: 'session', entity_type: 'console_session', entity_id, key_id: null };
}

/** A call of a proxy that was altered outside the vault. The caller is authenticated only after the proxy is found. */
export function alteredProxyEntry(
  origin: Origin,
  at: Instant,
  { tenant_id, proxy_id }: Pick<Row<'proxies'>, 'tenant_id' | 'proxy_id'>,
): LogEntry {
  const message = `Proxy invoke denied: it was ${alteredOutside}`;
  const about = { entity_type: 'proxy', entity_id: proxy_id, operation: 'invoke', message };
  return anonymousDenial(origin, at, { tenant_id, key_id: null, ...about });
}

type DenialSubject = Pick<
  LogEntry,
  'tenant_id' | 'entity_type' | 'entity_id' | 'operation' | 'message'
> & { readonly key_id: string | null };

function anonymousDenial(
  { address, traceId, userAgent, forwarded }: Origin,
  at: Instant,
  { key_id, ...about }: DenialSubject,
): LogEntry {
  return {
    ...about,
    created_at: at,
    actor_id: null,
    actor_type: 'anonymous',
    result: 'denied',
    disclosure: null,
    container: null,
    origin: address,
    trace_id: traceId,
    source: {
      ...noSource,
      key_id,
      user_agent: userAgent ?? null,
      forwarded: forwarded ?? null,
    },
  };
}
