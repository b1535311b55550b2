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
import { entryOf, failureOf } from '../logs/audit.ts';
import { type Decide, type Reply, refuse } from '../perform.ts';
import { liveIntent } from '../token-intents/token-intents.ts';
import { hasExpired } from './contents.ts';
import { type CreatedToken, draftToken } from './draft.ts';
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
    const unknown = found.find((one) => one instanceof VaultError);
    if (unknown) return { change: { entries: [unknownIntent(caller, now)] }, refusal: unknown };
    const all = found.filter((one): one is WantedToken => !(one instanceof VaultError));
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
      const drafted = draftToken(drafting, one);
      if (!drafted) {
        return refuse(caller, now, { entity: 'token', id: '*', permission: 'token:create' });
      }
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

/** Gives what is to be answered where there is no such intent; throws what else is wrong. */
export async function wantConverted(
  tools: TokenWriting & Wanting,
  caller: Caller,
  requested: RequestedToken,
): Promise<WantedToken | VaultError> {
  const { request, path } = requested;
  const id = request.token_intent_id ?? '';
  const intent = await liveIntent(tools.store, caller, { id, now: tools.clock.now() });
  if (intent) return wantToken(tools, caller, { request, path, intent });
  const message = 'must be the id of a token intent that is still there';
  return below(path, invalid('token_intent_id', message));
}

/** Whoever tries ids that do not exist is seen in the log, also where that is a wrong attribute. */
export function unknownIntent(caller: Caller, at: Instant): LogEntry {
  return failureOf(caller, at, { entity: 'token_intent', operation: 'convert' });
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
    ...entries,
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
