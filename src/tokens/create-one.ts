/** One creation as part of a change: a new token, or the one that holds the same value already. */

import type { Instant } from '../base/clock.ts';
import { invalid, VaultError } from '../base/errors.ts';
import type { TokenId } from '../base/ids.ts';
import type { Random } from '../base/random.ts';
import { attemptAt } from '../base/validation-errors.ts';
import type { Evaluation } from '../expressions/evaluation/evaluation.ts';
import type { Caller } from '../rules/caller.ts';
import { entryOf } from '../rules/log-entries.ts';
import { openerFor } from '../rules/openings.ts';
import { decide, type Grant, type Policy, reaches } from '../rules/policy.ts';
import type { TokenBody } from '../rules/reply.ts';
import type { Disclosure } from '../store/log-chain/disclosure.ts';
import type { LogEntry } from '../store/log-chain/entries.ts';
import type { Row } from '../store/tables.ts';
import { contentsOfRow, hasExpired, patchContents } from './contents/contents.ts';
import { definedToken, mayTakeData, readGrant } from './contents/disclosure.ts';
import { binOf, readEntry } from './contents/read-entry.ts';
import {
  broughtData,
  deriveRow,
  hasMask,
  openData,
  sealedData,
  sealRow,
} from './contents/sealed-row.ts';
import { searchTerms } from './contents/search-terms.ts';
import { idRepeated } from './contents/token-id.ts';
import { summaryOf } from './contents/token-types.ts';
import {
  type Deduplication,
  type OnMaskFailure,
  shownAs,
  viewDeduplicated,
  viewOverTime,
  viewUnread,
} from './contents/view.ts';
import { equalBytesMax, type StoredEquals, takenOf } from './equal-tokens.ts';
import type { PendingToken } from './pending-tokens.ts';
import type { PreparedToken } from './prepare.ts';
import { equalityWanted, isForeign } from './prepare.ts';
import type { TakenIds } from './taken-ids.ts';

/** What creations of one change share. */
export interface Creation extends StoredEquals {
  readonly caller: Caller;
  readonly now: Instant;
  readonly random: Random;
  /** For all that the change evaluates. */
  readonly evaluation: Evaluation;
  readonly onMaskFailure: OnMaskFailure;
  /** Stored tokens that hold a requested id, as far as they were looked up. */
  readonly takenIds: TakenIds;
}

/** One token as the response shows it. */
export interface CreatedToken {
  readonly row: Row<'tokens'>;
  /** The grant under which its data is shown; `undefined` if none is shown. */
  readonly grant: Grant | undefined;
  /** The caller's view of it at that time. */
  readonly viewAt: (instant: Instant) => TokenBody;
}

export interface TokenOutcome {
  readonly created: CreatedToken;
  readonly entry: LogEntry;
}

/**
 * Adds the effects of the creation to the pending tokens; `undefined` if the caller lacks `token:create` there.
 *
 * @throws VaultError `conflict` when its id is taken, `validation_failed` when the request is invalid.
 */
export function createOne(creation: Creation, prepared: PreparedToken): TokenOutcome | undefined {
  const { path } = prepared;
  const equality = equalityWanted(prepared);
  const equals = equality === undefined ? [] : creation.pending.equals(equality);
  const known = equals.map((one) => ({ one, token: definedToken(one.row) }));
  const existing = takenOf(known, prepared, creation.caller.policy)?.one;
  return attemptAt(path, () => {
    if (equality !== undefined && creation.tooLarge.has(equality)) throw equalsTooLarge();
    return existing
      ? useExisting(creation, prepared, existing)
      : makeNew(creation, prepared, equals);
  });
}

/** One of them by itself is never too large, so smaller requests find all of them. */
function equalsTooLarge(): VaultError {
  const limit = `of at most ${equalBytesMax} bytes together, as they are stored`;
  return invalid('deduplicate_token', `must find existing tokens ${limit}, in one request`);
}

function makeNew(
  creation: Creation,
  prepared: PreparedToken,
  equals: readonly PendingToken[],
): TokenOutcome | undefined {
  const { caller, now, random, evaluation, onMaskFailure, pending } = creation;
  const { contents, fingerprint, ids, intent } = prepared;
  const foreign = isForeign(prepared);
  const { tenant, policy } = caller;
  const { container } = contents;
  // A caller who may not create a token here does not learn whether its id is taken.
  if (!decide(policy, 'token:create', { id: ids.next(false).value, container })) return undefined;
  const id = freeId(creation, ids);
  const subject = { id, container };
  const created = decide(policy, 'token:create', subject);
  if (!created) return undefined;
  const isTarget = becomesTarget(creation, prepared, equals);
  const { data } = contents;
  const row = sealRow(
    { tenant, data, random },
    {
      tenant_id: tenant.id,
      token_id: id,
      version: 1,
      ...deriveRow({ tenant, contents, fingerprint, now }),
      deduplicated: isTarget ? 1 : 0,
      created_by: caller.application,
      created_at: now,
      modified_by: null,
      modified_at: null,
    },
  );
  const terms = searchTerms(tenant, row, { contents, evaluation });
  pending.put({ stored: undefined, row, terms });
  if (isTarget && prepared.claim !== undefined) {
    const expression = row.fingerprint_expression ?? '';
    const { claim } = prepared;
    pending.claim({ tenant_id: tenant.id, token_id: id, fingerprint: claim, expression });
  }
  if (intent) pending.convert(intent, row);
  const extras = prepared.isReticent ? undefined : { deduplicated: false };
  // An earlier request sent the value of an intent, and a client sent an encrypted one.
  const grant = foreign ? readGrant(policy, subject) : created;
  const disclosure = foreign && grant ? createdAs(row, grant) : undefined;
  const viewAt = grant
    ? viewOverTime({ grant, evaluation, onMaskFailure, ...(extras && { extras }) }, (at) =>
        broughtData(row, data, at),
      )
    : () => viewUnread(row, extras);
  return {
    created: { row, grant, viewAt },
    entry: {
      ...entryOf(caller, now, {
        entity: 'token',
        id,
        container: row.container,
        operation: 'create',
        disclosure,
      }),
      bin: binOf(summaryOf(contents.type, data)),
    },
  };
}

/** Whether equal values are deduplicated to the new token from now on. An expired predecessor is removed. */
function becomesTarget(
  { pending, targeted, expired }: Creation,
  prepared: PreparedToken,
  equals: readonly PendingToken[],
): boolean {
  const equality = equalityWanted(prepared);
  if (equality === undefined || targeted.has(equality)) return false;
  if (equals.some(({ row }) => row.deduplicated === 1)) return false;
  for (const row of expired.get(equality) ?? []) pending.remove(row);
  return true;
}

/** An id that no token has, as far as was looked; one that has expired makes way for it. */
function freeId({ pending, takenIds, now }: Creation, ids: PreparedToken['ids']): TokenId {
  const first = ids.next(false).value;
  const holder = takenIds.get(first);
  const taken = holder !== undefined && !hasExpired(holder, now);
  let { value } = ids.next(taken);
  if (taken && value === first) throw new IdTaken(value);
  if (holder && !taken) {
    if (holder.flaw) throw holder.flaw;
    pending.remove({ ...holder, data_version: holder.data_version ?? 0 });
  }
  for (let current = pending.get(value); current; current = pending.get(value)) {
    const other = ids.next(true).value;
    if (other === value) {
      throw current.stored ? new IdTaken(value) : idRepeated();
    }
    value = other;
  }
  return value;
}

/** The id that a creation requests belongs to an existing token. */
export class IdTaken extends VaultError {
  readonly id: TokenId;

  constructor(id: TokenId) {
    super('conflict', { public: 'A token with this id already exists.' });
    this.id = id;
  }
}

/** The existing token, changed first where the tenant has chosen that. */
function useExisting(
  creation: Creation,
  prepared: PreparedToken,
  existing: PendingToken,
): TokenOutcome | undefined {
  const { caller, now, evaluation, onMaskFailure, pending } = creation;
  const { tenant, policy } = caller;
  const subject = { id: existing.row.token_id, container: prepared.contents.container };
  const creating = decide(policy, 'token:create', subject);
  if (!creating) return undefined;
  // What an intent held would be lost if it did not go into the token.
  const requested = prepared.intent
    ? 'update_existing'
    : tenant.settings.token_deduplication_behavior;
  const updates =
    requested === 'update_existing' &&
    mayMerge(policy, existing.row) &&
    (prepared.intent !== undefined || mayTakeData(policy, existing.row, prepared.contents));
  const behavior = updates ? 'update_existing' : 'read_existing';
  const current = updates
    ? mergedToken(creation, { prepared, grant: creating }, existing)
    : existing;
  if (updates) pending.put(current);
  const { row } = current;
  if (prepared.intent) pending.convert(prepared.intent, row);
  const extras: Deduplication = { deduplicated: true, deduplication_behavior: behavior };
  const place = { id: row.token_id, container: row.container };
  const grant = readGrant(policy, place);
  const viewAt = grant
    ? viewOverTime({ grant, evaluation, onMaskFailure, extras }, (at) =>
        sealedData(openerFor(caller, grant), row, at),
      )
    : () => viewDeduplicated(row, { extras, reachable: reaches(policy, place) });
  const disclosure = grant && createdAs(row, grant);
  const fact = { entity: 'token', ...place, operation: 'update', disclosure } as const;
  return {
    created: { row, grant, viewAt },
    entry: updates ? entryOf(caller, now, fact) : readEntry(caller, now, { row, disclosure }),
  };
}

/** What a creation shows that its request did not send. */
function createdAs(row: Row<'tokens'>, grant: Grant): Disclosure {
  return { shown: shownAs(grant, { hasMask: hasMask(row) }), through: 'create' };
}

/** The container that a request names says nothing about the container of the existing token. */
function mayMerge(policy: Policy, { token_id: id, container }: Row<'tokens'>): boolean {
  const permissions = ['token:update', 'token:create'] as const;
  return permissions.some((one) => decide(policy, one, { id, container }));
}

interface Merging {
  readonly prepared: PreparedToken;
  /** The grant under which the caller creates the token. */
  readonly grant: Grant;
}

/** The existing token with the incoming data and metadata merged in; its definition stays. */
function mergedToken(
  { caller, now, random, evaluation }: Creation,
  { prepared, grant }: Merging,
  { stored, row: before }: PendingToken,
): PendingToken {
  const { tenant } = caller;
  const { data, metadata } = prepared.contents;
  const patch = { data, ...(metadata && { metadata }) };
  const opened = openData(openerFor(caller, grant), before, now).data.reveal();
  const merged = patchContents(contentsOfRow(before, opened), patch, { now: () => now });
  // The same value, under the active key: the stored one may be under another.
  const fingerprint = prepared.fingerprint ?? before.fingerprint;
  const row = sealRow(
    { tenant, data: merged.data, random },
    {
      ...before,
      ...deriveRow({ tenant, contents: merged, fingerprint, now }),
      ...(stored && {
        version: stored.version + 1,
        modified_by: caller.application,
        modified_at: now,
      }),
    },
  );
  return { stored, row, terms: searchTerms(tenant, row, { contents: merged, evaluation }) };
}
