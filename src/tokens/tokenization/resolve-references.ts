/** Resolving references to tokens and token intents: all of them, each decided and logged once, or none. */

import type { Instant } from '../../base/clock.ts';
import { invalid, VaultError } from '../../base/errors.ts';
import type { Json } from '../../base/json.ts';
import type { Reference } from '../../expressions/reading.ts';
import type { Caller } from '../../rules/caller.ts';
import { denialOf, entryOf, failureOf } from '../../rules/log-entries.ts';
import type { Effect } from '../../rules/operation.ts';
import type { Permission } from '../../rules/permissions.ts';
import { refuse } from '../../rules/refusal.ts';
import type { Through } from '../../store/log-chain/disclosure.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import type { TokenReading } from '../read.ts';
import { referencedBytesMax, referencedRows, wholeRows } from './reference-rows.ts';
import {
  findTarget,
  placeOf,
  type ReferenceTarget,
  reading,
  type TargetContext,
  type TargetLookup,
} from './reference-targets.ts';

export interface ResolvedReferences {
  readonly valueFor: (reference: Reference) => Json;
  /** One for each token and each token intent. */
  readonly entries: readonly LogEntry[];
  readonly targets: readonly ReferenceTarget[];
}

export interface ReferencesToResolve extends Omit<TargetContext, 'access'> {
  readonly through: Through;
  readonly references: readonly Reference[];
}

/** Where not all can be resolved, the refusal: for ids that are unknown first, then for a permission. */
export async function resolveReferences(
  tools: TokenReading,
  caller: Caller,
  { references, through, now, evaluation }: ReferencesToResolve,
): Promise<ResolvedReferences | Effect> {
  const wanted = { references, now, evaluation, access: reading };
  const targets = await findTargets(tools, caller, wanted);
  if (targets === undefined) return refuseLarge(caller, now);
  const { found, unknown, valueFor } = targets;
  if (unknown.length > 0) return refuseUnknown(caller, now, { unknown, found });
  const lacking = found.find(({ lacks }) => lacks !== undefined);
  if (lacking?.lacks) return refuseAll(caller, now, { found, permission: lacking.lacks });
  return {
    valueFor,
    entries: found.map((target) => entryOf(caller, now, readOf(target, through))),
    targets: found,
  };
}

export interface FoundTargets {
  readonly found: readonly ReferenceTarget[];
  /** Ids of no token and no intent. */
  readonly unknown: readonly string[];
  /** The value as the caller may see it. Call it only if no reference is unknown and no permission is lacking. */
  readonly valueFor: (reference: Reference) => Json;
}

/**
 * `undefined` if all exist, the caller lacks nothing, and together they exceed {@link referencedBytesMax}:
 * a caller without permission does not learn the length of a value.
 */
export async function findTargets(
  { store, onMaskFailure }: TokenReading,
  caller: Caller,
  { references, ...query }: TargetContext & { readonly references: readonly Reference[] },
): Promise<FoundTargets | undefined> {
  const { id: tenant } = caller.tenant;
  const context = { ...query, caller, onMaskFailure };
  const rows = await referencedRows(store, tenant, references);
  const decided = decideTargets({ ...context, rows }, references);
  if (isRefused(decided)) return decided;
  if (isTooLarge(decided)) return undefined;
  const whole = await wholeRows(store, tenant, rows);
  if (whole === rows) return decided;
  // They may have changed, and grown.
  const again = decideTargets({ ...context, rows: whole }, references);
  return isRefused(again) || !isTooLarge(again) ? again : undefined;
}

function isRefused({ unknown, found }: FoundTargets): boolean {
  return unknown.length > 0 || found.some(({ lacks }) => lacks !== undefined);
}

/** A masked value counts as the next power of two, or a caller could measure its length by the refusals. */
function isTooLarge({ found }: FoundTargets): boolean {
  let sum = 0;
  for (const { bytes, grant } of found) {
    sum += grant?.transform === 'reveal' ? bytes : 2 ** Math.ceil(Math.log2(bytes));
  }
  return sum > referencedBytesMax;
}

function decideTargets(lookup: TargetLookup, references: readonly Reference[]): FoundTargets {
  const found: ReferenceTarget[] = [];
  const unknown: string[] = [];
  // The data of a token and the token itself are one target.
  const tokens = new Map<string, ReferenceTarget | undefined>();
  const intents = new Map<string, ReferenceTarget | undefined>();
  for (const reference of references) {
    const known = reference.kind === 'token_intent' ? intents : tokens;
    if (known.has(reference.id)) continue;
    const target = findTarget(lookup, reference);
    known.set(reference.id, target);
    if (target) found.push(target);
    else unknown.push(reference.id);
  }
  return {
    found,
    unknown,
    valueFor: ({ kind, id }) => {
      const target = (kind === 'token_intent' ? intents : tokens).get(id);
      return (kind === 'data' ? target?.data() : target?.whole()) ?? null;
    },
  };
}

/** How many tokens and token intents the references lead to. */
export function targetCount(references: readonly Reference[]): number {
  const intents = references.filter(({ kind }) => kind === 'token_intent');
  const tokens = references.filter(({ kind }) => kind !== 'token_intent');
  return countIds(tokens) + countIds(intents);
}

function countIds(references: readonly Reference[]): number {
  return new Set(references.map(({ id }) => id)).size;
}

function readOf(target: ReferenceTarget, through: Through) {
  const { entity, shown, row } = target;
  const disclosure = shown && { shown, through };
  const event = { [entity]: { type: row.type } };
  return { ...placeOf(target), operation: 'read', disclosure, event } as const;
}

function refuseLarge(caller: Caller, now: Instant): Effect {
  return {
    change: { entries: [failureOf(caller, now, { entity: 'token', operation: 'read' })] },
    refusal: invalid(
      'body',
      `must refer to tokens with at most ${referencedBytesMax} stored bytes in total`,
    ),
  };
}

/** Ids that a message lists. */
const idsListedMax = 100;

/** For messages to the caller, who sent the ids. */
export function listIds(ids: readonly string[]): string {
  const listed = ids.slice(0, idsListedMax).join(', ');
  return ids.length > idsListedMax ? `${listed} and ${ids.length - idsListedMax} more` : listed;
}

/**
 * The log shows a caller who tries ids that do not exist, but not the ids, which may be values. It names tokens
 * that the caller may not read: the response reveals that they exist.
 */
function refuseUnknown(
  caller: Caller,
  now: Instant,
  {
    unknown,
    found,
  }: { readonly unknown: readonly string[]; readonly found: readonly ReferenceTarget[] },
): Effect {
  const failure = failureOf(caller, now, { entity: 'token', operation: 'read' });
  const others = unknown.slice(1).map(() => failure);
  return {
    change: { entries: [failure, ...others, ...denialsOf(caller, now, found)] },
    refusal: new VaultError('validation_failed', {
      public: `Failed to detokenize some tokens: ${listIds(unknown)}. They were not found.`,
      internal: `${unknown.length} ids to detokenize were not found`,
      errors: { body: ['must refer to tokens that exist'] },
    }),
  };
}

function refuseAll(
  caller: Caller,
  now: Instant,
  {
    found,
    permission,
  }: { readonly found: readonly ReferenceTarget[]; readonly permission: Permission },
): Effect {
  const refused = refuse(caller, now, { entity: 'token', id: '*', permission });
  const [first = refused.change.entries[0], ...others] = denialsOf(caller, now, found);
  return { ...refused, change: { entries: [first, ...others] } };
}

function denialsOf(caller: Caller, now: Instant, found: readonly ReferenceTarget[]): LogEntry[] {
  return found
    .filter(({ lacks }) => lacks !== undefined)
    .map((target) => denialOf(caller, now, { ...placeOf(target), operation: 'read' }));
}
