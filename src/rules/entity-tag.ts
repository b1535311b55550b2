/**
 * Conditional requests (RFC 9110, 13): a caller names the state of a resource that it knows, and the request is refused
 * where the resource has another state. A change removes or replaces the row in the version that was read, so no other
 * change can come between the comparison and the commit.
 */
import type { Clock } from '../base/clock.ts';
import { VaultError } from '../base/errors.ts';
import type { LogEntry } from '../store/log-chain/entries.ts';
import { authenticatorOf, type ExplainedName } from '../store/row-states.ts';
import type { AnyRow } from '../store/tables.ts';
import { type AttemptedRoute, attemptOf } from './attempted-route.ts';
import type { Caller } from './caller.ts';
import { failureOf } from './log-entries.ts';
import type { Decide } from './operation.ts';

/** The tags of `If-Match`, in quotes; `*` for any state. */
export type IfMatch = '*' | ReadonlySet<string>;

/** A tag has 116 bits of what authenticates the row, and nothing can be read from it. */
const tagLength = 20;

/**
 * The value of `ETag` for a row of the table: what authenticates the row is another for each state of it. The row need
 * not be proven: it may be removed.
 */
export function tagOf(table: ExplainedName, row: object): string {
  return `"${authenticatorOf(table, row as AnyRow).slice(-tagLength)}"`;
}

export interface ConditionalRequest {
  readonly actor: Caller;
  readonly clock: Clock;
  /** Which one thing it is about has a tag, or none. */
  readonly route: AttemptedRoute & { readonly tagged?: true };
  readonly condition: IfMatch | undefined;
}

/**
 * The decision under the condition. What has no tag matches `*` alone, and nothing is decided about it. A request that
 * is refused anyway has that refusal. Where the tag differs, the log has what was attempted, as for any other refusal:
 * or whoever may not read could find out silently what exists.
 */
export function ifMatching(
  decide: Decide,
  { actor, clock, route, condition }: ConditionalRequest,
): Decide {
  if (condition === undefined || condition === '*') return decide;
  const refusal = new VaultError('precondition_failed', {
    public:
      'The resource has another state than If-Match names; read it again. Weak tags never match.',
  });
  if (route.tagged !== true || route.method === 'POST') {
    const entry = () => failureOf(actor, clock.now(), attemptOf(route));
    return async () => ({ change: { entries: [entry()] }, refusal });
  }
  return async (conflict) => {
    const effect = await decide(conflict);
    if ('refusal' in effect) return effect;
    const before = 'before' in effect ? effect.before?.() : undefined;
    if (before !== undefined && condition.has(before)) return effect;
    // The first is about what was decided; others about what would have gone with it.
    const [first] = effect.change?.entries ?? [];
    const entry = first
      ? failedInstead(actor, first)
      : failureOf(actor, clock.now(), attemptOf(route));
    return { change: { entries: [entry] }, refusal };
  };
}

function failedInstead(
  actor: Caller,
  { entity_type: entity, entity_id: id, operation, container, created_at, disclosure }: LogEntry,
): LogEntry {
  const at = container === null ? {} : { container };
  const failed = failureOf(actor, created_at, { entity, id, operation, ...at });
  // Of an update, expressions of the caller's own were evaluated, and none of them failed.
  return operation === 'update' ? { ...failed, disclosure } : failed;
}
