/** Log entries of a call: before it, which tokens are sent where; after it, the outcome. */
import type { Instant } from '../../base/clock.ts';
import type { JsonObject } from '../../base/json.ts';
import type { Caller } from '../../rules/caller.ts';
import { detailed, entryOf, failureOf } from '../../rules/log-entries.ts';
import type { Shown } from '../../store/log-chain/disclosure.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import { placeOf, type ReferenceTarget } from '../../tokens/tokenization/reference-targets.ts';
import type { CalledProxy } from './called-proxy.ts';
import type { GivenApproval } from './proxy-call.ts';

export interface LoggedProxyCall {
  readonly caller: Caller;
  readonly proxy: Pick<CalledProxy, 'id' | 'name' | 'destinationUrl'>;
  readonly method: string;
  readonly approval?: GivenApproval | undefined;
}

export interface UsedTarget extends Pick<ReferenceTarget, 'entity' | 'id' | 'row'> {
  /** The form in which the destination gets the value. */
  readonly shown: Shown | undefined;
}

/** A host has up to 253 characters, and a message up to 250. */
const hostLengthMax = 120;

/** Records that a token is about to be sent. Of the address it contains only the host. */
export function useEntry(
  { caller, proxy, method, approval }: LoggedProxyCall,
  now: Instant,
  { shown, ...target }: UsedTarget,
): LogEntry {
  const disclosure = shown && ({ shown, through: 'proxy' } as const);
  const fact = { ...placeOf(target), operation: 'use proxy', disclosure } as const;
  const entry = entryOf(caller, now, fact);
  const approved = approval ? `, approval ${approval.id} by ${approval.by}` : '';
  return detailed(entry, `${method} to ${hostOf(proxy)}, proxy ${proxy.id}${approved}`);
}

/** Records that the call is about to use data that a client encrypted. */
export function encryptedEntry(
  { caller, proxy, method }: LoggedProxyCall,
  now: Instant,
  key: string,
): LogEntry {
  const disclosure = { shown: 'revealed', through: 'proxy' } as const;
  const fact = { entity: 'key', id: key, operation: 'use proxy', disclosure } as const;
  return detailed(entryOf(caller, now, fact), `${method} to ${hostOf(proxy)}, proxy ${proxy.id}`);
}

function hostOf({ destinationUrl }: Pick<CalledProxy, 'destinationUrl'>): string {
  const { host } = new URL(destinationUrl);
  return host.length > hostLengthMax ? `${host.slice(0, hostLengthMax)}…` : host;
}

export interface CallOutcome {
  readonly now: Instant;
  readonly milliseconds: number;
}

export function respondedEntry(
  call: LoggedProxyCall,
  { now, milliseconds }: CallOutcome,
  status: number,
): LogEntry {
  const { caller, proxy, method } = call;
  const event = invokedEvent(call, { status, elapsed_ms: milliseconds });
  const fact = { entity: 'proxy', id: proxy.id, operation: 'invoke', event } as const;
  const entry = entryOf(caller, now, fact);
  const what = `${method}, the destination responded with ${status}`;
  return detailed(entry, `${what} after ${milliseconds} ms`);
}

/** The code of the proxy made the response, and nothing was sent. */
export function madeEntry(
  { caller, proxy, method }: LoggedProxyCall,
  { now, milliseconds }: CallOutcome,
  status: number,
): LogEntry {
  const entry = entryOf(caller, now, { entity: 'proxy', id: proxy.id, operation: 'invoke' });
  return detailed(entry, `${method}, its code responded with ${status} after ${milliseconds} ms`);
}

/** @param reason contains nothing of the request or the response. */
export function failedEntry(
  call: LoggedProxyCall,
  { now, milliseconds }: CallOutcome,
  reason: string,
): LogEntry {
  const { caller, proxy, method } = call;
  const attempt = { entity: 'proxy', id: proxy.id, operation: 'invoke' };
  const entry = failureOf(caller, now, attempt);
  const event = invokedEvent(call, { error: reason, elapsed_ms: milliseconds });
  return detailed({ ...entry, event }, `${method}, ${reason}, after ${milliseconds} ms`);
}

/** The event for webhooks contains no body and no header, and of the address only the host. */
function invokedEvent({ proxy, method }: LoggedProxyCall, response: JsonObject): JsonObject {
  const { name } = proxy;
  return {
    proxy: { ...(name !== undefined && { name }), response },
    destination: { request: { method, host: hostOf(proxy) }, response },
  };
}
