/** Log entries of a call: one before the code runs, and one with the outcome. */
import type { Instant } from '../../base/clock.ts';
import type { JsonObject } from '../../base/json.ts';
import type { Caller } from '../../rules/caller.ts';
import { detailed, entryOf } from '../../rules/log-entries.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import type { CalledReactor } from './called-reactor.ts';

/** `sync`, or `async` and the id of the request, with which the caller fetches the result. */
export type Invocation = 'sync' | `async ${string}`;

export interface LoggedReactorCall {
  readonly caller: Caller;
  readonly reactor: Pick<CalledReactor, 'id' | 'name'>;
  readonly invocation: Invocation;
}

export function invokedEntry(call: LoggedReactorCall, now: Instant): LogEntry {
  const { caller, reactor, invocation } = call;
  const event = eventOf(call);
  const fact = { entity: 'reactor', id: reactor.id, operation: 'invoke', event } as const;
  return detailed(entryOf(caller, now, fact), invocation);
}

export interface CallEnd {
  readonly now: Instant;
  readonly milliseconds: number;
}

export function completedEntry(call: LoggedReactorCall, { now, milliseconds }: CallEnd): LogEntry {
  const { caller, reactor, invocation } = call;
  const event = { ...eventOf(call), elapsed_ms: milliseconds };
  const fact = { entity: 'reactor', id: reactor.id, operation: 'complete', event } as const;
  return detailed(entryOf(caller, now, fact), `${invocation}, after ${milliseconds} ms`);
}

/** @param reason contains nothing of the input or output of the code. */
export function failedEntry(
  call: LoggedReactorCall,
  { now, milliseconds }: CallEnd,
  reason: string,
): LogEntry {
  const { caller, reactor, invocation } = call;
  const event = { ...eventOf(call), error: reason, elapsed_ms: milliseconds };
  const fact = { entity: 'reactor', id: reactor.id, operation: 'fail', event } as const;
  const entry = entryOf(caller, now, fact);
  return detailed(entry, `${invocation}, after ${milliseconds} ms, ${reason}`);
}

/** The event for webhooks contains neither the arguments nor the result. */
function eventOf({ reactor: { name }, invocation }: LoggedReactorCall): JsonObject {
  const [invocation_type = '', id] = invocation.split(' ');
  return { reactor: { name }, request: { ...(id !== undefined && { id }), invocation_type } };
}
