/** The target of a reference: a token or a token intent, with the caller's grant on it. */

import type { Instant } from '../../base/clock.ts';
import type { Json, JsonObject } from '../../base/json.ts';
import type { Evaluation } from '../../expressions/evaluation/evaluation.ts';
import type { Reference } from '../../expressions/reading.ts';
import type { Caller } from '../../rules/caller.ts';
import { openerFor } from '../../rules/openings.ts';
import type { Permission } from '../../rules/permissions.ts';
import {
  type AccessSubject,
  decide,
  decideReactor,
  decideSending,
  decideUse,
  type Grant,
  grantInAll,
  holds,
  type Policy,
} from '../../rules/policy.ts';
import type { Shown } from '../../store/log-chain/disclosure.ts';
import type { SealedTable, SmallRow } from '../../store/queries/small-rows.ts';
import type { Unproven } from '../../store/stored-row.ts';
import { hasExpired } from '../contents/contents.ts';
import { containerIn } from '../contents/read-entry.ts';
import { sealedData } from '../contents/sealed-row.ts';
import { shownAs, shownData, viewToken } from '../contents/view.ts';
import { containersOfIntent, sealedIntent, viewTokenIntent } from '../intents/row.ts';
import { isLive } from '../intents/token-intents.ts';
import type { TokenReading } from '../read.ts';
import type { ReferencedRows } from './reference-rows.ts';

export interface ReferenceTarget {
  readonly entity: 'token' | 'token_intent';
  readonly id: string;
  readonly row: Unproven<'tokens'> | Unproven<'token_intents'>;
  /** The length of the stored value. */
  readonly bytes: number;
  readonly grant: Grant | undefined;
  /** The permission that the caller would need and lacks. */
  readonly lacks: Permission | undefined;
  /** How its data is shown, where it may be at all. */
  readonly shown: Shown | undefined;
  /** The data as the caller may see it, `undefined` where it may not; the whole as an object. */
  readonly data: () => Json | undefined;
  readonly whole: () => Json;
}

/** The target as log entries name it. */
export function placeOf({ entity, id, row }: Pick<ReferenceTarget, 'entity' | 'id' | 'row'>) {
  return { entity, id, container: containerIn(row) } as const;
}

/**
 * `undefined` if there is no such token or intent among the rows, or it has expired. Its data is available
 * only if its row is whole.
 */
export function findTarget(
  lookup: TargetLookup,
  { kind, id }: Reference,
): ReferenceTarget | undefined {
  return kind === 'token_intent' ? intentTarget(lookup, id) : tokenTarget(lookup, id);
}

export interface TargetLookup extends TargetContext, Pick<TokenReading, 'onMaskFailure'> {
  readonly caller: Caller;
  readonly rows: ReferencedRows;
}

export interface TargetContext {
  readonly now: Instant;
  /** For all that is shown of the targets of one request. */
  readonly evaluation: Evaluation;
  readonly access: TargetAccess;
}

/** What targets are looked up for, and what that takes. */
export interface TargetAccess {
  readonly grant: (policy: Policy, subject: AccessSubject) => Grant | undefined;
  /** The permission that a refusal names. */
  readonly permission: Permission;
  /** An additional permission for token intents. */
  readonly intents?: Permission;
}

/** Showing them to the caller. */
export const reading: TargetAccess = {
  grant: (policy, subject) => decide(policy, 'token:read', subject),
  permission: 'token:read',
  intents: 'token-intent:read',
};

/** Sending them to the host of a proxy that was set up. */
export const using: TargetAccess = { grant: decideUse, permission: 'proxy:invoke' };

/** Sending them to a host that the caller names. */
export const sending: TargetAccess = { grant: decideSending, permission: 'proxy:invoke' };

/** Giving them to the code of a reactor. */
export const giving: TargetAccess = { grant: decideReactor, permission: 'reactor:invoke' };

type StoredRow<T extends SealedTable> = Unproven<T> & Pick<SmallRow<T>, 'bytes'>;

function tokenTarget(lookup: TargetLookup, id: string): ReferenceTarget | undefined {
  const { caller, rows, now, evaluation, access, onMaskFailure } = lookup;
  const { policy } = caller;
  const row = rows.tokens.get(id) as StoredRow<'tokens'> | undefined;
  if (!row || hasExpired(row, now)) return undefined;
  const grant = access.grant(policy, { id: row.token_id, container: row.container });
  const sealed = grant && sealedData(openerFor(caller, grant), row, now);
  const sight = sealed && { sealed, grant, evaluation, onMaskFailure };
  return {
    entity: 'token',
    id: row.token_id,
    row,
    bytes: row.bytes,
    grant,
    lacks: grant ? undefined : access.permission,
    shown: sealed && shownAs(grant, sealed),
    data: () => sight && shownData(sight)['data'],
    whole: () => (sight ? (viewToken(sight).body as JsonObject) : null),
  };
}

/**
 * An intent has no container yet. The caller sees it as it would see the token that it becomes by default: under
 * the rules for the containers of its type and of the types recognized in it, with the mask of its type.
 */
function intentTarget(lookup: TargetLookup, id: string): ReferenceTarget | undefined {
  const { caller, rows, now, evaluation, access, onMaskFailure } = lookup;
  const { policy } = caller;
  const row = rows.token_intents.get(id) as StoredRow<'token_intents'> | undefined;
  if (!row || !isLive(row, now)) return undefined;
  const grant = grantInAll(containersOfIntent(row), (place) => access.grant(policy, place));
  const lacks = access.intents && !holds(policy, access.intents) ? access.intents : undefined;
  const opener = grant && openerFor(caller, grant);
  const sealed = opener && sealedIntent(opener, row, now);
  const sight = grant && sealed && { sealed, grant, evaluation, onMaskFailure };
  const shown = () => (sight ? shownData(sight) : {});
  return {
    entity: 'token_intent',
    id: row.token_intent_id,
    row,
    bytes: row.bytes,
    grant,
    lacks: lacks ?? (grant ? undefined : access.permission),
    shown: grant && sealed && shownAs(grant, sealed),
    data: () => shown()['data'],
    whole: () => (opener ? { ...viewTokenIntent(opener, row, now), ...shown() } : null),
  };
}
