/** What the log says of a call: that it was made, before the code runs, and what came of it. */
import type { Instant } from '../../lib/clock.ts';
import type { LogEntry } from '../../lib/log-chain/entries.ts';
import type { Caller } from '../../rules/caller.ts';
import { detailed, entryOf } from '../../rules/log-entries.ts';
import type { CalledReactor } from './called-reactor.ts';

/** `sync`, or `async` and the id of the request, by which its result is asked for. */
export type Invocation = 'sync' | `async ${string}`;

export interface LoggedCall {
  readonly caller: Caller;
  readonly reactor: Pick<CalledReactor, 'id'>;
  readonly invocation: Invocation;
}

export function invokedEntry({ caller, reactor, invocation }: LoggedCall, now: Instant): LogEntry {
  const fact = { entity: 'reactor', id: reactor.id, operation: 'invoke' } as const;
  return detailed(entryOf(caller, now, fact), invocation);
}

export interface Ended {
  readonly now: Instant;
  readonly milliseconds: number;
}

export function completedEntry(
  { caller, reactor, invocation }: LoggedCall,
  { now, milliseconds }: Ended,
): LogEntry {
  const fact = { entity: 'reactor', id: reactor.id, operation: 'complete' } as const;
  return detailed(entryOf(caller, now, fact), `${invocation}, after ${milliseconds} ms`);
}

/** @param reason holds nothing of what the code was given or made. */
export function failedEntry(
  { caller, reactor, invocation }: LoggedCall,
  { now, milliseconds }: Ended,
  reason: string,
): LogEntry {
  const fact = { entity: 'reactor', id: reactor.id, operation: 'fail' } as const;
  const entry = entryOf(caller, now, fact);
  return detailed(entry, `${invocation}, after ${milliseconds} ms, ${reason}`);
}
