/** Using the tokens that a call references: all of them permitted and logged, or none used. */

import type { Instant } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import type { Json } from '../../base/json.ts';
import type { Evaluation } from '../../expressions/evaluation/evaluation.ts';
import type { Reference } from '../../expressions/reading.ts';
import type { FailuresInScope } from '../../expressions/request-parts/scope.ts';
import type { Caller } from '../../rules/caller.ts';
import { type AttemptedOperation, denialOf, detailed, failureOf } from '../../rules/log-entries.ts';
import type { Refused } from '../../rules/operation.ts';
import { decide } from '../../rules/policy.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import type { TokenReading } from '../read.ts';
import { referencedBytesMax } from './reference-rows.ts';
import { placeOf, type ReferenceTarget, type TargetAccess } from './reference-targets.ts';
import { findTargets, listIds, targetCount } from './resolve-references.ts';

export interface UsedReferences {
  readonly valueOf: (reference: Reference) => Json;
  /** For the scope in which the values are. */
  readonly failures: FailuresInScope;
  /** One for each token and each token intent. To be called once the values were written. */
  readonly entries: () => readonly LogEntry[];
  /** The same where nothing is used after all; that of the call where it refers to no token. */
  readonly unused: readonly [LogEntry, ...LogEntry[]];
}

export interface ReferenceUse {
  readonly references: readonly Reference[];
  readonly now: Instant;
  readonly evaluation: Evaluation;
}

/** The purpose for which the tokens are used. */
export interface ReferencePurpose {
  readonly access: TargetAccess;
  /** The name of the required permission in refusals. */
  readonly permission: string;
  readonly max: number;
  readonly quota: string;
  /** @param message about the request as a whole. */
  readonly invalid: (message: string) => VaultError;
  readonly unknown: (ids: readonly string[]) => VaultError;
  readonly entryFor: (target: ReferenceTarget) => LogEntry;
  /** The call. */
  readonly attempt: AttemptedOperation;
}

/**
 * Where not all can be used, the refusal: for ids that are unknown first, then for a permission.
 * @throws VaultError what `invalid` gives for more tokens than the quota.
 */
export async function useReferences(
  tools: TokenReading,
  caller: Caller,
  { references, now, evaluation, ...purpose }: ReferenceUse & ReferencePurpose,
): Promise<UsedReferences | Refused> {
  const { access, permission, max, quota } = purpose;
  if (targetCount(references) > max) {
    throw purpose.invalid(`must refer to at most ${max} tokens (quota ${quota})`);
  }
  const targets = await findTargets(tools, caller, { references, now, evaluation, access });
  const failure = failureOf(caller, now, { entity: 'token', operation: 'use' });
  if (targets === undefined) {
    const size = `must refer to tokens with at most ${referencedBytesMax} stored bytes in total`;
    return { change: { entries: [failure] }, refusal: purpose.invalid(size) };
  }
  const { found, unknown } = targets;
  const lacking = found.filter(({ lacks }) => lacks !== undefined);
  const denials = lacking.map((target) =>
    denialOf(caller, now, { ...placeOf(target), operation: 'use' }),
  );
  if (unknown.length > 0) {
    const others = unknown.slice(1).map(() => failure);
    const change = { entries: [failure, ...others, ...denials] } as const;
    return { change, refusal: purpose.unknown(unknown) };
  }
  const [first, ...others] = denials;
  if (first) {
    return { change: { entries: [first, ...others] }, refusal: forbidden(lacking, permission) };
  }
  const values = new Map<string, Json>();
  let concealed = 0;
  const failed = failureOf(caller, now, purpose.attempt);
  const areConcealed = !found.every((target) => isShownWhole(caller, target));
  const [unused, ...otherUnused] = found.map((target) => ({
    ...failureOf(caller, now, { ...placeOf(target), operation: 'use' }),
    // Whether an expression fails is a fact about the value, unless no failure is shown.
    disclosure: areConcealed ? null : purpose.entryFor(target).disclosure,
  }));
  return {
    failures: {
      areConcealed,
      onConcealed: () => {
        concealed += 1;
      },
    },
    valueOf: (reference) => {
      const name = `${reference.kind}:${reference.id}`;
      const value = values.get(name) ?? targets.valueFor(reference);
      values.set(name, value);
      return value;
    },
    entries: () => {
      const entries = found.map((target) => purpose.entryFor(target));
      if (concealed === 0) return entries;
      return found.length === 0 ? [failed] : entries.map((entry) => detailed(entry, failedWithin));
    },
    unused: [unused ?? failed, ...otherUnused],
  };
}

const failedWithin = 'an expression failed and gave null';

/** Whether the caller may read the whole value. Nobody reads a token intent. */
function isShownWhole({ policy }: Caller, { row }: ReferenceTarget): boolean {
  if (!('token_id' in row)) return false;
  const { token_id: id, container } = row;
  return decide(policy, 'token:read', { id, container })?.transform === 'reveal';
}

/** The ids are those that the caller sent, and of tokens that exist. */
function forbidden(targets: readonly ReferenceTarget[], permission: string): VaultError {
  const ids = listIds(targets.map(({ id }) => id));
  return new VaultError('forbidden', {
    public: `The caller lacks the permission ${permission} for these tokens: ${ids}.`,
    internal: `the caller may not use ${targets.length} tokens`,
  });
}
