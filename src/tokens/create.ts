/** Creating tokens, one or many in one change, or finding those that already hold the same values. */
import assert from 'node:assert/strict';
import { usedTwice } from '../access/client-keys/open-encrypted.ts';
import {
  creationEntry,
  denyEncrypted,
  type EncryptedTools,
  useEncrypted,
} from '../access/client-keys/use-encrypted.ts';
import type { Instant } from '../base/clock.ts';
import { invalid, VaultError } from '../base/errors.ts';
import { createPause } from '../base/pauses.ts';
import { attemptAt, below, createValidationErrors } from '../base/validation-errors.ts';
import { newWriteEvaluation } from '../expressions/evaluation/evaluation.ts';
import type { Caller } from '../rules/caller.ts';
import { tagOf } from '../rules/entity-tag.ts';
import { counted, entryOf, failureOf } from '../rules/log-entries.ts';
import type { Decide, Refused } from '../rules/operation.ts';
import { deny, refuse } from '../rules/refusal.ts';
import type { Reply } from '../rules/reply.ts';
import type { Change } from '../store/change.ts';
import type { LogEntry } from '../store/log-chain/entries.ts';
import type { Store } from '../store/store.ts';
import type { Unproven } from '../store/stored-row.ts';
import type { Row } from '../store/tables.ts';
import { placeOfRequest, type TokenRequest } from './contents/contents.ts';
import { containersOf } from './contents/recognized.ts';
import type { OnMaskFailure } from './contents/view.ts';
import {
  type CreatedToken,
  type Creation,
  createOne,
  IdTaken,
  type TokenOutcome,
} from './create-one.ts';
import { type EqualsReading, storedEquals } from './equal-tokens.ts';
import { liveIntent } from './intents/token-intents.ts';
import type { PendingTokens } from './pending-tokens.ts';
import {
  admitTokens,
  checkToken,
  deduplicatesTokens,
  type PreparedToken,
  prepareToken,
  type RequestedToken,
  refusalOfForeign,
  type TokenPreparation,
  type UncountedToken,
} from './prepare.ts';
import { changedToken } from './reply-expiry.ts';
import { noTakenIds, takenIdsOf } from './taken-ids.ts';

export interface TokenWriting
  extends Omit<TokenPreparation, 'evaluation'>,
    EncryptedTools,
    EqualsReading {
  readonly onMaskFailure: OnMaskFailure;
}

export interface TokensToCreate {
  /** At least one. */
  readonly requests: readonly RequestedToken[];
  /** Called with the tokens in the order of the requests. */
  readonly replyFor: (created: readonly CreatedToken[], now: Instant) => Reply;
}

/** From the decision `validation_failed`, and `conflict` when the id is taken. */
export function createToken(tools: TokenWriting, caller: Caller, request: TokenRequest): Decide {
  return createTokens(tools, caller, {
    requests: [{ request, path: '' }],
    replyFor: ([created], now) => {
      assert(created !== undefined, 'one request makes one token');
      const { row, grant, viewAt } = created;
      return {
        status: 201,
        location: `/tokens/${encodeURIComponent(row.token_id)}`,
        // Whoever may not see an existing token does not follow its states.
        ...(grant && { etag: tagOf('tokens', row) }),
        body: viewAt(now),
        ...changedToken(created),
      };
    },
  });
}

/**
 * Where every create of one value changes the token that the first one made, they wait for one
 * another; otherwise each would have to decide again for every other.
 */
export function serialKeyOfCreation(caller: Caller, request: TokenRequest): string | undefined {
  const { id, settings } = caller.tenant;
  if (settings.token_deduplication_behavior !== 'update_existing') return undefined;
  if (!deduplicatesTokens(caller, request.deduplicate_token)) return undefined;
  return `${id} ${request.type} ${JSON.stringify(request.data)}`;
}

/**
 * Creates all tokens or none. If several requests give equal values, the first makes the token to which the
 * others are deduplicated. From the decision: `validation_failed`, and `conflict` when an id is taken.
 */
export function createTokens(
  tools: TokenWriting,
  caller: Caller,
  { requests, replyFor }: TokensToCreate,
): Decide {
  const { store, clock } = tools;
  const preparation = { ...tools, evaluation: newWriteEvaluation() };
  let preparedFromData: ReturnType<typeof prepareFromData> | undefined;
  return async (conflict) => {
    const now = clock.now();
    const pause = createPause();
    preparedFromData ??= prepareFromData(preparation, caller, requests);
    const fromData = await preparedFromData;
    // Where the change conflicts with another it is decided again, at the same price.
    const { evaluation: prepared } = preparation;
    const evaluation = { ...prepared, budget: prepared.budget.copy() };
    const converting = { ...tools, evaluation };
    const intents = requests.some(isForeignRequest) ? await intentsOf(tools, caller, requests) : [];
    const uncounted: UncountedToken[] = [];
    for (const [index, one] of requests.entries()) {
      await pause();
      const token =
        fromData.get(one) ?? (await prepareForeign(converting, caller, one, intents[index]));
      if ('refusal' in token) return token;
      uncounted.push(token);
    }
    const all = (await admitTokens({ store, now }, caller, uncounted)).map((one) => {
      if (one instanceof VaultError) throw one;
      return one;
    });
    requireDistinctSources(all);
    const creation = {
      ...tools,
      caller,
      now,
      evaluation,
      ...(await storedEquals(tools, caller, all, now)),
      takenIds: conflict === undefined ? noTakenIds : await takenIdsOf(store, caller, { all, now }),
    };
    const created: CreatedToken[] = [];
    const entries: LogEntry[] = [];
    for (const one of all) {
      await pause();
      const outcome = draftOrRefuse(creation, one);
      if ('refusal' in outcome) return outcome;
      await pause();
      // Computes the view here, between pauses: the response needs it later, without a pause between the tokens.
      outcome.created.viewAt(now);
      created.push(outcome.created);
      entries.push(outcome.entry);
    }
    return {
      change: await changeOf(store, { caller, all, entries, pending: creation.pending, now }),
      reply: replyFor(created, now),
    };
  };
}

/** Requests that send their data in the clear. All of them are validated before any look-up. */
async function prepareFromData(
  preparation: TokenPreparation,
  caller: Caller,
  requests: readonly RequestedToken[],
): Promise<ReadonlyMap<RequestedToken, UncountedToken>> {
  const pause = createPause();
  const prepared = new Map<RequestedToken, UncountedToken>();
  const errors = createValidationErrors();
  for (const requested of requests) {
    if (isForeignRequest(requested)) continue;
    await pause();
    const checked = errors.attempt(() => checkToken(preparation, caller, requested));
    if (!checked) continue;
    await pause();
    const one = errors.attempt(() => prepareToken(preparation, caller, checked));
    if (one) prepared.set(requested, one);
  }
  errors.settle();
  return prepared;
}

/** True where the data is in a token intent, or is encrypted: it takes more than the request to know it. */
export function isForeignRequest({ request }: RequestedToken): boolean {
  return isConversion(request) || isEncrypted(request);
}

function isConversion({ token_intent_id }: TokenRequest): boolean {
  return (token_intent_id ?? undefined) !== undefined;
}

function isEncrypted({ encrypted }: TokenRequest): boolean {
  return (encrypted ?? undefined) !== undefined;
}

/** By the place of the request that converts it. */
function intentsOf(
  tools: TokenWriting,
  caller: Caller,
  requests: readonly RequestedToken[],
): Promise<readonly (Unproven<'token_intents'> | undefined)[]> {
  return Promise.all(
    requests.map((one) => (isForeignRequest(one) ? intentOf(tools, caller, one) : undefined)),
  );
}

/** The intent that a request converts, if there is one. */
export async function intentOf(
  { store, clock }: TokenWriting,
  caller: Caller,
  { request }: RequestedToken,
): Promise<Unproven<'token_intents'> | undefined> {
  if (!isConversion(request)) return undefined;
  return liveIntent(store, caller, { id: request.token_intent_id ?? '', now: clock.now() });
}

/** The token of a request that does not bring its data in the clear, or the refusal. */
export function prepareForeign(
  tools: TokenWriting & TokenPreparation,
  caller: Caller,
  requested: RequestedToken,
  intent: Unproven<'token_intents'> | undefined,
): Promise<UncountedToken | Refused> {
  return isConversion(requested.request)
    ? prepareConversion(tools, caller, requested, intent)
    : prepareEncrypted(tools, caller, requested);
}

/**
 * The value is opened only if the caller may create the token, and refused if the rules for its recognized types
 * do not allow it. Like the token of an intent, the token is shown under `token:read`. A refusal names
 * the key. Throws the errors of the rest of the request.
 */
async function prepareEncrypted(
  tools: TokenWriting & TokenPreparation,
  caller: Caller,
  requested: RequestedToken,
): Promise<UncountedToken | Refused> {
  const { request, path } = requested;
  const jwe = request.encrypted ?? '';
  const place = attemptAt(path, () => {
    if (isConversion(request))
      throw invalid('encrypted', 'cannot be combined with token_intent_id');
    if ((request.data ?? undefined) !== undefined) {
      throw invalid('encrypted', 'cannot be combined with data');
    }
    return placeOfRequest(request, tools.clock);
  });
  const homes = containersOf(place.type, []);
  const denied = refusalOfForeign(caller, request, { ...place, homes });
  if (denied) return denyEncrypted(tools, caller, { jwe, refusal: denied });
  const opened = await useEncrypted(tools, caller, {
    jwe,
    path: 'encrypted',
    basis: 'token:create',
  });
  if ('refusal' in opened) return { ...opened, refusal: below(path, opened.refusal) };
  try {
    const pause = createPause();
    const checked = checkToken(tools, caller, requested, { opened });
    await pause();
    return prepareToken(tools, caller, checked);
  } catch (error) {
    if (!(error instanceof VaultError)) throw error;
    // The recognized type of the data decided.
    if (error.code === 'forbidden') return denyEncrypted(tools, caller, { jwe, refusal: error });
    const attempt = { entity: 'key', id: opened.key, operation: 'use' };
    return { change: { entries: [failureOf(caller, tools.clock.now(), attempt)] }, refusal: error };
  }
}

/**
 * A refusal if there is no such intent, and for expressions over one that the caller may not
 * reveal: the log shows a caller who tries that. Throws the other errors of the request.
 */
async function prepareConversion(
  tools: TokenWriting & TokenPreparation,
  caller: Caller,
  requested: RequestedToken,
  intent: Unproven<'token_intents'> | undefined,
): Promise<UncountedToken | Refused> {
  const { path } = requested;
  const now = tools.clock.now();
  const attempt = { entity: 'token_intent', operation: 'convert' };
  if (!intent) {
    const message = 'must be the id of an existing token intent';
    const refusal = below(path, invalid('token_intent_id', message));
    return { change: { entries: [failureOf(caller, now, attempt)] }, refusal };
  }
  try {
    const pause = createPause();
    const checked = checkToken(tools, caller, requested, { intent });
    await pause();
    return prepareToken(tools, caller, checked);
  } catch (error) {
    if (!(error instanceof VaultError) || error.code !== 'forbidden') throw error;
    return deny(caller, now, { ...attempt, id: intent.token_intent_id }, error);
  }
}

/** The token as part of the change, or the reason for a refusal: access, or an id that is taken. */
export function draftOrRefuse(creation: Creation, prepared: PreparedToken): TokenOutcome | Refused {
  const { caller, now } = creation;
  try {
    const outcome = createOne(creation, prepared);
    return outcome ?? refuse(caller, now, { entity: 'token', id: '*', permission: 'token:create' });
  } catch (error) {
    if (!(error instanceof IdTaken)) throw error;
    const taken = failureOf(caller, now, { entity: 'token', id: error.id, operation: 'create' });
    return { change: { entries: [taken] }, refusal: error };
  }
}

function requireDistinctSources(all: readonly PreparedToken[]): void {
  if (all.length < 2) return;
  const seen = new Set<string>();
  for (const one of all) {
    const source = attemptAt(one.path, () => newSourceOf(one, seen));
    if (source !== undefined) seen.add(source);
  }
}

/**
 * A source that becomes one token only: an intent, or a value encrypted with a `jti`; `undefined` for other data.
 * @param seen the sources of earlier tokens of the request.
 * @throws VaultError `validation_failed` if the source is among them.
 */
export function newSourceOf(
  { intent, opened }: Pick<PreparedToken, 'intent' | 'opened'>,
  seen: ReadonlySet<string>,
): string | undefined {
  const use = opened?.use;
  const source = intent?.token_intent_id ?? (use && `${use.client_key_id} ${use.jti_digest}`);
  if (source === undefined || !seen.has(source)) return source;
  throw intent
    ? invalid('token_intent_id', 'must be unique in the request')
    : usedTwice('encrypted');
}

function convertedEntry(
  { caller, now, pending }: CreatedTokens,
  { token_intent_id: id, type }: Row<'token_intents'>,
): LogEntry {
  const token = pending.convertedInto(id);
  const event = {
    token_intent: { type },
    ...(token && { token: { id: token.token_id, type: token.type } }),
  };
  return entryOf(caller, now, { entity: 'token_intent', id, operation: 'convert', event });
}

export interface CreatedTokens {
  readonly caller: Caller;
  readonly now: Instant;
  readonly all: readonly Pick<PreparedToken, 'intent' | 'opened'>[];
  readonly pending: PendingTokens;
  /** One for each creation. */
  readonly entries: readonly LogEntry[];
}

export async function changeOf(store: Store, outcome: CreatedTokens): Promise<Change> {
  const { caller, now, all, pending, entries } = outcome;
  const intents = all.flatMap(({ intent }) => intent ?? []);
  const opened = all.flatMap((one) => one.opened ?? []);
  const [first, ...others] = [
    ...counted(entries),
    ...intents.map((intent) => convertedEntry(outcome, intent)),
    ...opened.map((one) => creationEntry(caller, now, one)),
    ...pending.removed.map(({ token_id: id, container }) =>
      entryOf(caller, now, { entity: 'token', id, container, operation: 'expire' }),
    ),
  ];
  assert(first !== undefined, 'a change has an entry');
  const { remove, insert, ...change } = await pending.change(store);
  const uses = opened.flatMap(({ use }) => use ?? []);
  return {
    ...change,
    insert: { ...insert, ...(uses.length > 0 && { client_key_uses: uses }) },
    remove: { ...remove, ...(intents.length > 0 && { token_intents: intents }) },
    entries: [first, ...others],
  };
}
