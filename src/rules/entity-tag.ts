/**
 * Conditional requests (RFC 9110, 13): a caller names the state of a resource that it knows, and the request is refused
 * where the resource has another state. A change removes or replaces the row in the version that was read, so no other
 * change can come between the comparison and the commit.
 */
import { VaultError } from '../base/errors.ts';
import { entityTagOf } from '../keys/entity-tag.ts';
import type { ExplainedName } from '../store/row-states.ts';
import type { Row } from '../store/tables.ts';
import { nameOf } from './bound-row.ts';
import type { Decide } from './operation.ts';
import type { TenantKeys } from './tenant.ts';

/** The tags of `If-Match`, in quotes; `*` for any state. */
export type IfMatch = '*' | ReadonlySet<string>;

/** Tables whose rows have a version and the time of their creation, which name a state. */
type TaggedTable = {
  [T in ExplainedName]: Row<T> extends Versioned ? T : never;
}[ExplainedName];

/** The value of `ETag` for a row of the table. The row need not be proven: it may be removed. */
export function tagOf(
  { keyring }: Pick<TenantKeys, 'keyring'>,
  table: TaggedTable,
  row: object,
): string {
  const { entity, id } = nameOf(table, row);
  const { version, created_at, modified_at } = row as Versioned;
  // An id of a caller's choice can be taken again, and then its versions start again.
  const state = [version, created_at, modified_at ?? ''].map(String);
  return entityTagOf(keyring, [entity, id, ...state]);
}

interface Versioned {
  readonly version: number;
  readonly created_at: number;
  readonly modified_at?: number | null;
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
