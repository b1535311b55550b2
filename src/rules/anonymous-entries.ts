/** Log entries for requests that are refused before their caller is known. */
import type { Instant } from '../base/clock.ts';
import type { LogEntry } from '../store/log-chain/entries.ts';
import type { Row } from '../store/tables.ts';
import type { Origin } from './caller.ts';
import { alteredOutside } from './log-entries.ts';

/** A stored key as the log names it: by its session, if it is known to be the key of one. */
export type RefusedKey = Pick<Row<'api_keys'>, 'tenant_id' | 'key_id'> &
  Partial<Pick<Row<'api_keys'>, 'session_id'>>;

export interface FailedAuthentication {
  readonly key: RefusedKey;
  /** The key, or its holder, was altered outside the vault. */
  readonly flaw: 'altered' | undefined;
}

/** A known key was sent and refused: its holder is deleted, or the key has expired. */
export function failedAuthenticationEntry(
  origin: Origin,
  at: Instant,
  { key, flaw }: FailedAuthentication,
): LogEntry {
  const { tenant_id, key_id, session_id = null } = key;
  return anonymousDenial(origin, at, {
    tenant_id,
    entity_type: session_id === null ? 'application_key' : 'session',
    entity_id: session_id ?? key_id,
    operation: 'authenticate',
    message: flaw
      ? `Authentication failed: the key was ${alteredOutside}`
      : 'Authentication failed',
  });
}

/** A call of a proxy that was altered outside the vault. The caller is authenticated only after the proxy is found. */
export function alteredProxyEntry(
  origin: Origin,
  at: Instant,
  { tenant_id, proxy_id }: Pick<Row<'proxies'>, 'tenant_id' | 'proxy_id'>,
): LogEntry {
  const message = `Proxy invoke denied: it was ${alteredOutside}`;
  const about = { entity_type: 'proxy', entity_id: proxy_id, operation: 'invoke', message };
  return anonymousDenial(origin, at, { tenant_id, ...about });
}

type DenialSubject = Pick<
  LogEntry,
  'tenant_id' | 'entity_type' | 'entity_id' | 'operation' | 'message'
>;

function anonymousDenial(
  { address, traceId }: Origin,
  at: Instant,
  about: DenialSubject,
): LogEntry {
  return {
    ...about,
    created_at: at,
    actor_id: null,
    actor_type: 'anonymous',
    result: 'denied',
    disclosure: null,
    origin: address,
    trace_id: traceId,
  };
}
