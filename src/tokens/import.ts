/** Importing tokens: many creations in one change, each decided for itself, as if they came one by one. */

import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import type { Instant } from '../base/clock.ts';
import { VaultError } from '../base/errors.ts';
import { createPause } from '../base/pauses.ts';
import { newWriteEvaluation } from '../expressions/evaluation/evaluation.ts';
import { type Caller, markedAs } from '../rules/caller.ts';
import { alteredEntry, entryOf } from '../rules/log-entries.ts';
import { abandonedOpenings } from '../rules/openings.ts';
import { type Effect, isWithoutRoom, perform, type Refused } from '../rules/operation.ts';
import type { TokenBody } from '../rules/reply.ts';
import type { LogEntry } from '../store/log-chain/entries.ts';
import type { TokenRequest } from './contents/contents.ts';
import { idRepeated } from './contents/token-id.ts';
import {
  changeOf,
  draftOrRefuse,
  intentOf,
  isForeignRequest,
  newSourceOf,
  prepareForeign,
  type TokenWriting,
} from './create.ts';
import { type CreatedToken, IdTaken } from './create-one.ts';
import { createdByRequest } from './created-by-request.ts';
import { storedEquals } from './equal-tokens.ts';
import {
  admitTokens,
  checkToken,
  type PreparedToken,
  prepareToken,
  type RequestedToken,
  type TokenPreparation,
  type UncountedToken,
} from './prepare.ts';
import { holderOf, type RepeatableCreation, repeatCreation } from './same-creation.ts';
import { noTakenIds, takenIdsOf } from './taken-ids.ts';

/** A request to create a token, or its error. */
export type ImportLine = TokenRequest | VaultError;

/** What became of a line. `repeated` is one that was done before. */
export type ImportResult =
  | { readonly token: TokenBody; readonly repeated: boolean }
  | { readonly failure: VaultError };

/** What all parts of an import have in common: plain data, so that another thread can do one of them. */
export interface ImportRun {
  /** Distinguishes in the log the tokens of this run from others under the same trace id, which callers choose. */
  readonly mark: string;
  readonly since: Instant;
  /** Ids are looked for before they are tried once some were found to be taken. */
  idsAreTaken: boolean;
}

/** Some lines of an import. */
export interface ImportPart {
  readonly caller: Caller;
  readonly lines: readonly ImportLine[];
  /** The caller as of now, once the parts before are done; rejects when this one may not be done any more. */
  readonly turn: () => Promise<Caller>;
}

/** A value that is not sent in the clear is prepared again for each decision: its intent may be gone by then. */
type PreparedLine = UncountedToken | RequestedToken | VaultError;

const markBytes = 9;

export function beginImport({ clock, random }: TokenWriting): ImportRun {
  const mark = random(markBytes).toString('base64url');
  return { mark, since: clock.now(), idsAreTaken: false };
}

/** As entries call what its lines attempt. */
const route = { permission: 'token:create', method: 'POST', path: '/tokens/bulk' } as const;

/**
 * What became of the lines, in their order; what succeeded is durable. A line fails by itself. Where the commit
 * fails, or rights have changed, all do that would be part of it. Before its turn a part is decided, unless its
 * lines look at others, but not committed. Rejects with what `turn` rejects with; nothing is done then.
 */
export async function importLines(
  tools: TokenWriting,
  run: ImportRun,
  { caller: unmarked, lines, turn }: ImportPart,
): Promise<readonly ImportResult[]> {
  const caller = markedAs(unmarked, run.mark);
  const prepared = await prepareAll(tools, caller, lines);
  let results: readonly ImportResult[] = [];
  try {
    const { store, clock } = tools;
    await perform({ store, actor: caller, clock, route }, async (conflict) => {
      run.idsAreTaken ||= conflict === 'tokens.key';
      if (prepared.some(looksAtOthers)) await turn();
      const decided = await decideLines(tools, caller, { ...run, prepared });
      requireSameRights(unmarked, await turn());
      results = decided.results;
      return decided.effect;
    });
    return results;
  } catch (error) {
    await turn();
    const failure = failureOf(error);
    // Otherwise no entry would give the reason for the refusal of a single line.
    const isLogged = isWithoutRoom(error);
    return prepared.map((one, at) => {
      if (one instanceof VaultError) return { failure: one };
      const result = isLogged ? results[at] : undefined;
      return result && 'failure' in result ? result : { failure };
    });
  }
}

/** True if more decides about the line than whether its id is free, which the commit finds out. */
function looksAtOthers(line: PreparedLine): boolean {
  return 'request' in line || ('deduplicates' in line && line.deduplicates);
}

async function prepareAll(
  tools: TokenWriting,
  caller: Caller,
  lines: readonly ImportLine[],
): Promise<readonly PreparedLine[]> {
  const pause = createPause();
  const prepared: PreparedLine[] = [];
  for (const line of lines) {
    await pause();
    prepared.push(await prepare({ ...tools, evaluation: newWriteEvaluation() }, caller, line));
  }
  return prepared;
}

/** Every check of the line that does not need stored tokens. */
async function prepare(
  preparation: TokenPreparation,
  caller: Caller,
  request: ImportLine,
): Promise<PreparedLine> {
  if (request instanceof VaultError) return request;
  const requested = { request, path: '' };
  if (isForeignRequest(requested)) return requested;
  const pause = createPause();
  const checked = attempt(() => checkToken(preparation, caller, requested));
  if (checked instanceof VaultError) return checked;
  await pause();
  return attempt(() => prepareToken(preparation, caller, checked));
}

interface Lines {
  readonly prepared: readonly PreparedLine[];
  readonly idsAreTaken: boolean;
  /** When the import began. */
  readonly since: Instant;
}

interface Decided {
  readonly results: readonly ImportResult[];
  readonly effect: Effect;
}

async function decideLines(
  tools: TokenWriting,
  caller: Caller,
  { prepared, ...before }: Lines,
): Promise<Decided> {
  const now = tools.clock.now();
  const all = await admitted(tools, caller, {
    lines: await withConversions(tools, caller, prepared),
    now,
  });
  const creation = await creationOf(tools, caller, { ...before, all, now });
  const done: PreparedToken[] = [];
  const entries: LogEntry[] = [];
  const sources = new Set<string>();
  const pause = createPause();
  const resultOf = async (token: ConvertedLine): Promise<ImportResult> => {
    if (token instanceof VaultError) return { failure: token };
    if ('refusal' in token) {
      entries.push(...token.change.entries);
      return { failure: token.refusal };
    }
    const own = { ...creation, evaluation: newWriteEvaluation() };
    const line = await decideLine(own, token, sources).catch(failureOf);
    if (line instanceof VaultError) {
      const { altered } = line;
      const attempt = altered && { ...altered, operation: 'create' };
      if (attempt) entries.push(alteredEntry(caller, now, attempt));
      return { failure: line };
    }
    entries.push(...line.entries);
    if ('refusal' in line) return { failure: line.refusal };
    if (!line.repeated) done.push(token);
    await pause();
    return { token: line.created.viewAt(now), repeated: line.repeated };
  };
  const results: ImportResult[] = [];
  for (const token of all) {
    await pause();
    results.push(await resultOf(token));
  }
  if (entries.length === 0) {
    const fact = { entity: 'token', id: caller.tenant.id, operation: 'import' } as const;
    entries.push(entryOf(caller, now, fact));
  }
  const { pending } = creation;
  const change = await changeOf(tools.store, { caller, now, all: done, entries, pending });
  // Of lines that failed.
  const abandoned = abandonedOpenings(caller, change.entries, { at: now, operation: 'create' });
  const written = { ...change, entries: [...change.entries, ...abandoned] } as const;
  return { results, effect: { change: written, reply: { status: 200 } } };
}

/** A line whose token intent was looked up, where it converts one. */
type UncountedLine = UncountedToken | Refused | VaultError;

/** The same once its guess was counted. */
type ConvertedLine = PreparedToken | Refused | VaultError;

/** The lines without promises of their own, of which there would be as many as lines. */
async function withConversions(
  tools: TokenWriting,
  caller: Caller,
  prepared: readonly PreparedLine[],
): Promise<readonly UncountedLine[]> {
  const pause = createPause();
  const all: UncountedLine[] = [];
  for (const one of prepared) {
    await pause();
    all.push('request' in one ? await convertedLine(tools, caller, one).catch(failureOf) : one);
  }
  return all;
}

async function convertedLine(
  tools: TokenWriting,
  caller: Caller,
  one: RequestedToken,
): Promise<UncountedToken | Refused> {
  const preparation = { ...tools, evaluation: newWriteEvaluation() };
  return prepareForeign(preparation, caller, one, await intentOf(tools, caller, one));
}

/** The lines as they may be created; see {@link admitTokens}. */
async function admitted(
  { store }: TokenWriting,
  caller: Caller,
  { lines, now }: { readonly lines: readonly UncountedLine[]; readonly now: Instant },
): Promise<readonly ConvertedLine[]> {
  const uncounted = lines.filter((one) => isUncounted(one));
  const tokens = (await admitTokens({ store, now }, caller, uncounted)).values();
  return lines.map((one) => {
    if (!isUncounted(one)) return one;
    const { value: token } = tokens.next();
    assert(token !== undefined, 'each token is admitted or refused');
    return token;
  });
}

function isUncounted(line: UncountedLine): line is UncountedToken {
  return !(line instanceof VaultError) && !('refusal' in line);
}

interface LinesToCreate extends Omit<Lines, 'prepared'> {
  readonly all: readonly ConvertedLine[];
  readonly now: Instant;
}

interface ImportCreation extends RepeatableCreation {
  /** Tokens that earlier lines made, in changes that are done. */
  readonly made: ReadonlySet<string>;
}

async function creationOf(
  tools: TokenWriting,
  caller: Caller,
  { all, now, idsAreTaken, since }: LinesToCreate,
): Promise<Omit<ImportCreation, 'evaluation'>> {
  const tokens = all.filter(
    (one): one is PreparedToken => !(one instanceof VaultError) && !('refusal' in one),
  );
  const own = tokens.filter(({ ids }) => !ids.next(false).drawn);
  const takenIds = idsAreTaken
    ? await takenIdsOf(tools.store, caller, { all: own, now })
    : noTakenIds;
  const held = [...takenIds.values()];
  return {
    ...tools,
    caller,
    now,
    ...(await storedEquals(tools, caller, tokens, now)),
    takenIds,
    made: await createdByRequest(tools.store, caller, { since, tokens: held }),
  };
}

type LineDecision =
  | { readonly entries: readonly LogEntry[]; readonly refusal: VaultError }
  | {
      readonly entries: readonly LogEntry[];
      readonly created: CreatedToken;
      readonly repeated: boolean;
    };

/** @param sources the intents and the like of earlier lines; each makes one token. */
async function decideLine(
  creation: ImportCreation,
  token: PreparedToken,
  sources: Set<string>,
): Promise<LineDecision> {
  const { made } = creation;
  const source = newSourceOf(token, sources);
  const holder = holderOf(creation, token);
  const outcome = draftOrRefuse(creation, token);
  if ('refusal' in outcome) {
    const { refusal, change } = outcome;
    const refused = { entries: change.entries, refusal };
    if (!(refusal instanceof IdTaken) || holder === undefined) return refused;
    if (made.has(holder.token_id)) throw idRepeated();
    const repeated = await repeatCreation(creation, token, holder);
    if (repeated) return { entries: [repeated.entry], created: repeated.created, repeated: true };
    return refused;
  }
  if (source !== undefined) sources.add(source);
  return { entries: [outcome.entry], created: outcome.created, repeated: false };
}

function attempt<T>(run: () => T): T | VaultError {
  try {
    return run();
  } catch (error) {
    return failureOf(error);
  }
}

/** An unexpected failure belongs to no line, and fails the import. */
function failureOf(error: unknown): VaultError {
  if (error instanceof VaultError) return error;
  throw error;
}

/** @throws VaultError `conflict` where the caller may by now do something else than when it was decided. */
function requireSameRights(decided: Caller, now: Caller): void {
  if (isDeepStrictEqual(rightsOf(decided), rightsOf(now))) return;
  throw new VaultError('conflict', {
    public: 'The rights of the caller changed before this was stored. Send it again.',
  });
}

function rightsOf({ policy, authorizer }: Caller): object {
  return { policy, authorizer };
}
