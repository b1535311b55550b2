/**
 * Conditional requests (RFC 9110, 13): a caller names the state of a resource that it knows, and the request is refused
 * where the resource has another state. A change removes or replaces the row in the version that was read, so no other
 * change can come between the comparison and the commit.
 */
import { VaultError } from '../base/errors.ts';
import { authenticatorOf, type ExplainedName } from '../store/row-states.ts';
import type { AnyRow } from '../store/tables.ts';
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

/**
 * The decision under the condition. What has no tag matches `*` alone. A request that is refused anyway has that
 * refusal.
 * @throws VaultError from the decision `precondition_failed`.
 */
export function ifMatching(decide: Decide, condition: IfMatch | undefined): Decide {
  if (condition === undefined || condition === '*') return decide;
  return async (conflict) => {
    const effect = await decide(conflict);
    if ('refusal' in effect) return effect;
    const before = 'before' in effect ? effect.before?.() : undefined;
    if (before !== undefined && condition.has(before)) return effect;
    throw new VaultError('precondition_failed', {
      public:
        'The resource has another state than If-Match names; read it again. Weak tags never match.',
    });
  };
}
