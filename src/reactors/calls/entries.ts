/** What the log says of a call: that it was made, before the code runs, and what came of it. */
import type { Instant } from '../../base/clock.ts';
import type { JsonObject } from '../../base/json.ts';
import type { Caller } from '../../rules/caller.ts';
import { detailed, entryOf } from '../../rules/log-entries.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import type { CalledReactor } from './called-reactor.ts';

/** `sync`, or `async` and the id of the request, by which its result is asked for. */
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

/** @param reason holds nothing of what the code was given or made. */
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

/** What receivers of events learn of a call: neither its arguments nor its result. */
function eventOf({ reactor: { name }, invocation }: LoggedReactorCall): JsonObject {
  const [invocation_type = '', id] = invocation.split(' ');
  return { reactor: { name }, request: { ...(id !== undefined && { id }), invocation_type } };
}
