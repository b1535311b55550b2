/** Creating tokens, one or many in one change, or finding those that already hold the same values. */
import assert from 'node:assert/strict';
import { newEvaluation } from '../../expressions/evaluation.ts';
import type { Instant } from '../../lib/clock.ts';
import { invalid, VaultError } from '../../lib/errors.ts';
import { attemptAt, below, createFindings } from '../../lib/findings.ts';
import type { TokenId } from '../../lib/ids.ts';
import type { LogEntry } from '../../lib/log-chain.ts';
import { createPause } from '../../lib/pauses.ts';
import type { Change } from '../../store/change.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import type { Caller } from '../access/caller.ts';
import { counted, entryOf, failureOf } from '../logs/audit.ts';
import { type Decide, deny, type Refused, type Reply, refuse } from '../perform.ts';
import { liveIntent } from '../token-intents/token-intents.ts';
import { hasExpired } from './contents.ts';
import {
  type CreatedToken,
  type DraftedToken,
  type Drafting,
  draftToken,
  IdTaken,
} from './draft.ts';
import { TokenDrafts } from './drafts.ts';
import { tokensWithFingerprints } from './queries.ts';
import type { OnMaskFailure } from './view.ts';
import { type RequestedToken, type WantedToken, type Wanting, wantToken } from './wanted.ts';

export interface TokenWriting extends Omit<Wanting, 'evaluation'> {
  readonly store: Store;
  readonly onMaskFailure: OnMaskFailure;
}

export interface TokensWanted {
  /** At least one. */
  readonly requests: readonly RequestedToken[];
  /** Told of the tokens in the order of the requests. */
  readonly answer: (created: readonly CreatedToken[], now: Instant) => Reply;
}

/**
 * All of them or none. Where the requests give equal values, the first makes the token to which the
 * others are deduplicated. From the decision `validation_failed`, and `conflict` when an id is taken.
 */
export function createTokens(tools: TokenWriting, caller: Caller, wanted: TokensWanted): Decide {
  const { store, clock } = tools;
  const { requests, answer } = wanted;
  const wanting = { ...tools, evaluation: newEvaluation() };
  let wantedFromData: ReturnType<typeof wantFromData> | undefined;
  return async (conflict) => {
    const now = clock.now();
    const pause = createPause();
    wantedFromData ??= wantFromData(wanting, caller, requests);
    const fromData = await wantedFromData;
    const found = await Promise.all(
      requests.map((one) => fromData.get(one) ?? wantConverted(wanting, caller, one)),
    );
    const refused = found.find((one) => 'refusal' in one);
    if (refused) return refused;
    const all = found.filter((one): one is WantedToken => !('refusal' in one));
    requireDistinctIntents(all);
    const drafting = {
      ...tools,
      caller,
      now,
      evaluation: newEvaluation(),
      ...(await draftsOver(store, caller, all, now)),
      holders: conflict === undefined ? noHolders : await holdersOf(store, caller, all),
    };
    const created: CreatedToken[] = [];
    const entries: LogEntry[] = [];
    for (const one of all) {
      await pause();
      const drafted = draftOrRefuse(drafting, one);
      if ('refusal' in drafted) return drafted;
      created.push(drafted.created);
      entries.push(drafted.entry);
    }
    return {
      change: await changeOf(store, { caller, all, entries, drafts: drafting.drafts, now }),
      reply: answer(created, now),
    };
  };
}

/** All that are no conversions. What is wrong with them is found before anything is looked up. */
async function wantFromData(
  wanting: Wanting,
  caller: Caller,
  requests: readonly RequestedToken[],
): Promise<ReadonlyMap<RequestedToken, WantedToken>> {
  const pause = createPause();
  const wanted = new Map<RequestedToken, WantedToken>();
  const findings = createFindings();
  for (const requested of requests) {
    if (isConversion(requested)) continue;
    await pause();
    const one = findings.attempt(() => wantToken(wanting, caller, requested));
    if (one) wanted.set(requested, one);
  }
  findings.settle();
  return wanted;
}

export const noHolders: ReadonlyMap<TokenId, Row<'tokens'>> = new Map();

export function isConversion({ request }: RequestedToken): boolean {
  return (request.token_intent_id ?? undefined) !== undefined;
}

/**
 * A refusal where there is no such intent, and for expressions over one that the caller may not
 * reveal: whoever tries that is seen in the log. Throws what else is wrong.
 */
export async function wantConverted(
  tools: TokenWriting & Wanting,
  caller: Caller,
  requested: RequestedToken,
): Promise<WantedToken | Refused> {
  const { request, path } = requested;
  const now = tools.clock.now();
  const attempt = { entity: 'token_intent', operation: 'convert' };
  const intent = await liveIntent(tools.store, caller, { id: request.token_intent_id ?? '', now });
  if (!intent) {
    const message = 'must be the id of a token intent that is still there';
    const refusal = below(path, invalid('token_intent_id', message));
    return { change: { entries: [failureOf(caller, now, attempt)] }, refusal };
  }
  try {
    return wantToken(tools, caller, { request, path, intent });
  } catch (error) {
    if (!(error instanceof VaultError) || error.code !== 'forbidden') throw error;
    return deny(caller, now, { ...attempt, id: intent.token_intent_id }, error);
  }
}

/** The token as part of the change, or why there is none: access, or an id that is taken. */
export function draftOrRefuse(drafting: Drafting, wanted: WantedToken): DraftedToken | Refused {
  const { caller, now } = drafting;
  try {
    const drafted = draftToken(drafting, wanted);
    return drafted ?? refuse(caller, now, { entity: 'token', id: '*', permission: 'token:create' });
  } catch (error) {
    if (!(error instanceof IdTaken)) throw error;
    const taken = failureOf(caller, now, { entity: 'token', id: error.id, operation: 'create' });
    return { change: { entries: [taken] }, refusal: error };
  }
}

function requireDistinctIntents(all: readonly WantedToken[]): void {
  const seen = new Set<string>();
  for (const { intent, path } of all) {
    if (intent === undefined) continue;
    attemptAt(path, () => {
      if (seen.has(intent.token_intent_id)) {
        throw invalid('token_intent_id', 'must differ from every other of the request');
      }
    });
    seen.add(intent.token_intent_id);
  }
}

/** The stored tokens to which something may be deduplicated, and those that expired at their place. */
export async function draftsOver(
  store: Store,
  { tenant }: Caller,
  all: readonly WantedToken[],
  now: Instant,
) {
  const drafts = new TokenDrafts();
  const expired = new Map<string, Row<'tokens'>>();
  const fingerprints = new Set<string>();
  for (const { deduplicates, fingerprint } of all) {
    if (deduplicates && fingerprint !== null) fingerprints.add(fingerprint);
  }
  for (const row of await tokensWithFingerprints(store, tenant.id, [...fingerprints])) {
    if (!hasExpired(row, now)) drafts.put({ stored: row, row, terms: undefined });
    else if (row.deduplicated === 1 && row.fingerprint !== null) expired.set(row.fingerprint, row);
  }
  return { drafts, expired };
}

/** Looked for only once an id was found to be taken: nearly every id is new. */
export async function holdersOf(
  store: Store,
  { tenant }: Caller,
  all: readonly WantedToken[],
): Promise<ReadonlyMap<TokenId, Row<'tokens'>>> {
  const rows = await Promise.all(
    all.map(({ ids }) =>
      store.get('tokens', { tenant_id: tenant.id, token_id: ids.next(false).value }),
    ),
  );
  return new Map(rows.flatMap((row) => (row ? [[row.token_id, row]] : [])));
}

export interface Drafted {
  readonly caller: Caller;
  readonly now: Instant;
  readonly all: readonly WantedToken[];
  readonly drafts: TokenDrafts;
  /** One for each creation. */
  readonly entries: readonly LogEntry[];
}

export async function changeOf(store: Store, drafted: Drafted): Promise<Change> {
  const { caller, now, all, drafts, entries } = drafted;
  const intents = all.flatMap(({ intent }) => intent ?? []);
  const [first, ...others] = [
    ...counted(entries),
    ...intents.map(({ token_intent_id: id }) =>
      entryOf(caller, now, { entity: 'token_intent', id, operation: 'convert' }),
    ),
    ...drafts.removed.map(({ token_id: id }) =>
      entryOf(caller, now, { entity: 'token', id, operation: 'expire' }),
    ),
  ];
  assert(first !== undefined, 'a change has an entry');
  const { remove, ...change } = await drafts.change(store);
  return {
    ...change,
    remove: { ...remove, ...(intents.length > 0 && { token_intents: intents }) },
    entries: [first, ...others],
  };
}
