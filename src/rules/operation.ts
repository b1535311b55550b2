/** Performing: a request decides, the store commits what it decided, and only then is the response sent. */
import assert from 'node:assert/strict';
import { setTimeout as timeout } from 'node:timers/promises';
import type { Clock } from '../base/clock.ts';
import { VaultError } from '../base/errors.ts';
import type { Change, CommitOutcome, Precondition } from '../store/change.ts';
import type { LogEntry } from '../store/log-chain/entries.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { type AttemptedRoute, attemptOf } from './attempted-route.ts';
import type { Caller, Operator } from './caller.ts';
import { alteredEntry, detailed, failureOf } from './log-entries.ts';
import type { OpenedForCaller } from './opened.ts';
import { abandonedOpenings, requireAccounted } from './openings.ts';
import type { Reply } from './reply.ts';

/** The result of a decision. Its change is durable before any reader can see it. */
export type Effect<R = Reply> = CompletedOperation<R> | Refused | OutboundOperation<R>;

export interface CompletedOperation<R = Reply> {
  readonly change: Change;
  readonly reply: R;
  /** The entity tag of what was decided about, as it was read: see `entity-tag.ts`. Absent for what has none. */
  readonly before?: () => string;
}

export interface Refused {
  readonly change: Change;
  readonly refusal: VaultError;
  /** Set after a call that may have had its effect: a retry under the same idempotency key must not repeat it. */
  readonly keepsKey?: true;
}

/** A request that calls another host, between two commits. */
export interface OutboundOperation<R = Reply> {
  /**
   * Committed first: its entries announce the call, also if the process then crashes. Absent if the call uses nothing
   * that is stored.
   */
  readonly change?: Change;
  /**
   * Makes the call once, and never again for the same idempotency key, and returns the decision about its outcome. On
   * a conflict that decision is made again, without another call.
   */
  readonly reachOut: () => Promise<DecideOutcome<R>>;
}

/** Decides about the outcome of a call. */
export type DecideOutcome<R = Reply> = (
  conflict: Precondition | undefined,
) => Promise<CompletedOperation<R> | Refused>;

/**
 * Reads what it needs and decides, without writing anything. After a conflict it is called again with the
 * precondition that failed.
 */
export type Decide<R = Reply> = (conflict: Precondition | undefined) => Promise<Effect<R>>;

/** The place where the response of a request with an idempotency key is stored. */
export interface ReplySlot<R = Reply> {
  /**
   * The row that stores the reply, if any. Without a reply, the row that marks the request as begun.
   * @param begun the row that was stored when the request began.
   */
  rowOf(reply: R | undefined, begun?: Row<'replies'>): Row<'replies'> | undefined;
  /**
   * The response that is stored now. Reading it has its own log entry.
   * @throws VaultError `conflict` if a request has begun and its outcome is not known.
   */
  stored(): Promise<R | undefined>;
}

/** Conflicts with concurrent writers before the request fails. */
const decisionsMax = 20;

/**
 * After the second conflict, each attempt waits longer. On another server, requests may follow one another so closely
 * that there is no gap between them.
 */
const backoffMsMax = 64;

/** The context of an operation. Each value that is opened for a caller has its log entry. */
export type Performing =
  | PerformingForCaller
  /** Absent where a request needs no key. */
  | { readonly store: Store; readonly actor: Operator | undefined };

interface PerformingForCaller {
  readonly store: Store;
  readonly actor: Caller;
  readonly clock: Clock;
  /** The attempted operation, for the entries of requests that fail. */
  readonly route: AttemptedRoute;
  /** Rejects like admission if the key or the proxy of the request has ended. */
  readonly stands?: () => Promise<unknown>;
  /** What entries name as the source of the request, where that is code and not the application itself. */
  readonly source?: string;
}

/**
 * Fails, and commits nothing, if the effect opened a value that none of its entries covers. Values that were opened
 * by a decision that then fails, or is refused, have their entries as well.
 *
 * @throws VaultError a refusal after its entry is durable; `conflict` after {@link decisionsMax} conflicts;
 * `unavailable` from the store. In these cases nothing else is committed.
 */
export function perform<R = Reply>(
  performing: Performing,
  decide: Decide<R>,
  slot?: ReplySlot<R>,
): Promise<R> {
  const committed = commitDecision(performing, decide, slot);
  return slot
    ? committed.catch((error: unknown) => storedInstead(performing, slot, error))
    : committed;
}

/**
 * A request may fail because the same request has succeeded before. If that cannot be determined either, the first
 * failure is reported.
 */
async function storedInstead<R>(
  { actor }: Performing,
  slot: ReplySlot<R>,
  error: unknown,
): Promise<R> {
  // Values that were opened by now have their entries, or no caller receives them.
  if (actor?.application) actor.openings.take([]);
  // The alteration was found in the response itself, or there was no response.
  if (error instanceof VaultError && error.altered) throw error;
  const stored = await slot.stored().catch(() => undefined);
  if (stored) return stored;
  throw error;
}

async function commitDecision<R>(
  performing: Performing,
  decide: Decide<R>,
  slot?: ReplySlot<R>,
): Promise<R> {
  const { store } = performing;
  let conflict: Precondition | undefined;
  let inVain: readonly OpenedForCaller[] = nothingOpened;
  for (let decisions = 0; decisions < decisionsMax; decisions++) {
    const decision = await decided(performing, decide, { conflict, slot, inVain, logs: true });
    const { effect, row } = decision;
    if ('refusal' in effect) {
      // A refused request may have succeeded before. In that case it is not logged as an attempt.
      const stored = await slot?.stored();
      if (stored) return stored;
      await commitRefusal(store, effect.change);
      throw effect.refusal;
    }
    const { change } = effect;
    assert(change || !row, 'a call under an idempotency key has a first commit');
    let outcome = committed;
    try {
      if (change) outcome = await store.commit(row ? withReply(change, row) : change);
    } catch (error) {
      if (change && isRefusedAtCommit(error)) await commitRefused(performing, decision, change);
      throw error;
    }
    if (outcome.conflict === undefined) {
      return 'reply' in effect ? effect.reply : reachOut(performing, effect, { slot, begun: row });
    }
    conflict = outcome.conflict;
    inVain = [...inVain, ...decision.opened];
    const stored = await slot?.stored();
    if (stored) return stored;
    await backOff(decisions);
  }
  await commitAbandoned(performing, inVain);
  throw new VaultError('conflict', {
    public: 'The resource is being changed by too many requests at once; try again.',
    headers: { 'retry-after': '1' },
  });
}

interface AccountedDecision<E> {
  readonly effect: E | FailedDecision;
  /** The row of the reply, if it is stored. */
  readonly row: Row<'replies'> | undefined;
  /** The opened values that the entries of the effect cover. */
  readonly opened: readonly OpenedForCaller[];
}

/** As {@link Refused}, also for an error that no caller caused. */
interface FailedDecision extends Omit<Refused, 'refusal'> {
  readonly refusal: unknown;
}

/**
 * The only place that decides. All values are opened before the openings are compared with the entries, including
 * those for the stored reply, and including those of a failed decision.
 */
async function decided<R, E extends Effect<R>>(
  performing: Performing,
  decide: (conflict: Precondition | undefined) => Promise<E>,
  { conflict, slot, begun, inVain, logs = false }: Deciding<R>,
): Promise<AccountedDecision<E>> {
  try {
    const effect = withOrigin(performing, await decide(conflict));
    if ('refusal' in effect) {
      reopen(performing, inVain);
      return refusing(withAbandonedOpenings(performing, effect));
    }
    const row = slot?.rowOf('reply' in effect ? effect.reply : undefined, begun);
    const { actor } = performing;
    if (!actor?.application) return { effect, row, opened: nothingOpened };
    const opened = actor.openings.known;
    requireAccounted(actor, effect.change?.entries ?? []);
    if (inVain.length === 0) return { effect, row, opened };
    reopen(performing, inVain);
    return { effect: withAbandonedOpenings(performing, effect), row, opened };
  } catch (error) {
    reopen(performing, inVain);
    const failed = logs ? entriesOfFailure(performing, error) : [];
    const [first, ...others] = [...failed, ...entriesOfAbandoned(performing, failed)];
    if (first === undefined) throw error;
    return refusing({ change: { entries: [first, ...others] }, refusal: error });
  }
}

/**
 * Failures are in the log, including `not_found`, so that the log shows callers who try ids that do not exist. The
 * requested id is omitted, because it may be a value in the wrong place. A row that was altered outside the vault is
 * named: it exists, and an operator has to examine it.
 */
function entriesOfFailure(performing: Performing, error: unknown): readonly LogEntry[] {
  if (!('route' in performing) || !(error instanceof VaultError)) return [];
  const { actor, clock, route, source } = performing;
  const attempt = attemptOf(route);
  const { altered, code } = error;
  if (altered) {
    const { operation } = attempt;
    return [fromSource(alteredEntry(actor, clock.now(), { ...altered, operation }), source)];
  }
  return code === 'not_found' ? [fromSource(failureOf(actor, clock.now(), attempt), source)] : [];
}

interface Deciding<R> {
  readonly conflict: Precondition | undefined;
  readonly slot: ReplySlot<R> | undefined;
  /** The row that was stored when the request began. */
  readonly begun?: Row<'replies'> | undefined;
  /** Opened by earlier decisions of the request, whose changes met a conflict and with them their entries. */
  readonly inVain: readonly OpenedForCaller[];
  /** Whether a failure has an entry of its own. After a call, the entries of the first commit speak of the attempt. */
  readonly logs?: boolean;
}

function reopen({ actor }: Performing, opened: readonly OpenedForCaller[]): void {
  if (actor?.application) for (const one of opened) actor.openings.opened(one);
}

/** For a request that fails: entries for what was opened for it, also by decisions that met a conflict. */
async function commitAbandoned(
  performing: Performing,
  inVain: readonly OpenedForCaller[],
): Promise<void> {
  reopen(performing, inVain);
  const [first, ...others] = entriesOfAbandoned(performing, []);
  if (first) await performing.store.commit({ entries: [first, ...others] });
}

const nothingOpened: readonly OpenedForCaller[] = [];

const refusing = <E>(effect: E) => ({ effect, row: undefined, opened: nothingOpened });

/**
 * If the store has no room for the change, see {@link isWithoutRoom}, the log still records what was opened for it and
 * what was refused.
 */
async function commitRefused(
  performing: Performing,
  { opened }: Pick<AccountedDecision<unknown>, 'opened'>,
  change: Change,
): Promise<void> {
  const refused = change.entries.filter(({ result }) => result !== 'success');
  reopen(performing, opened);
  const [first, ...others] = [...refused, ...entriesOfAbandoned(performing, refused)];
  if (first) await performing.store.commit({ entries: concealed([first, ...others]) });
}

/** If what the refusal would tell exceeds a budget, its caller gets that error instead, and the log the attempt. */
async function commitRefusal(store: Store, change: Change): Promise<void> {
  try {
    await store.commit(change);
  } catch (error) {
    if (isRefusedAtCommit(error)) await store.commit({ entries: concealed(change.entries) });
    throw error;
  }
}

/** Of a request whose caller learns nothing. */
function concealed([first, ...others]: Change['entries']): Change['entries'] {
  const conceal = (entry: LogEntry): LogEntry => ({ ...entry, disclosure: null, result: 'failed' });
  return [conceal(first), ...others.map(conceal)];
}

/** A quota or the disk leaves no room for the change. Log entries are written nevertheless. */
export function isWithoutRoom(error: unknown): boolean {
  return error instanceof VaultError && /^(?:unprocessable|insufficient_storage)$/.test(error.code);
}

/** There is no room, or the values that it reveals exceed a budget. */
function isRefusedAtCommit(error: unknown): boolean {
  return (
    isWithoutRoom(error) || (error instanceof VaultError && error.code === 'too_many_requests')
  );
}

/** The refusal, with entries for opened values that it does not cover. */
function withAbandonedOpenings<E extends { readonly change?: Change }>(
  performing: Performing,
  refused: E,
): E {
  const { change } = refused;
  if (change === undefined) return refused;
  const abandoned = entriesOfAbandoned(performing, change.entries);
  if (abandoned.length === 0) return refused;
  return { ...refused, change: { ...change, entries: [...change.entries, ...abandoned] } };
}

function entriesOfAbandoned(
  performing: Performing,
  entries: readonly LogEntry[],
): readonly LogEntry[] {
  if (!('route' in performing)) return [];
  const { actor, clock, route } = performing;
  const [first] = entries;
  const { created_at: at, operation } = first ?? {
    created_at: clock.now(),
    operation: attemptOf(route).operation,
  };
  const abandoned = abandonedOpenings(actor, entries, { at, operation });
  actor.openings.take([]);
  return abandoned;
}

/**
 * Adds where the request comes from: its `CDN-Loop` to the change, whose events send it on, and to the entries the code
 * that made it.
 */
function withOrigin<E extends { readonly change?: Change }>(performing: Performing, effect: E): E {
  const { change } = effect;
  if (change === undefined || !('route' in performing)) return effect;
  const { source, actor } = performing;
  const { loop } = actor.origin;
  if (loop === undefined && source === undefined) return effect;
  const [first, ...others] = change.entries;
  const entries = [fromSource(first, source), ...others.map((one) => fromSource(one, source))];
  return { ...effect, change: { ...change, entries, ...(loop !== undefined && { loop }) } };
}

function fromSource(entry: LogEntry, source: string | undefined): LogEntry {
  return source === undefined ? entry : detailed(entry, source);
}

const committed: CommitOutcome = {};

async function backOff(decisions: number): Promise<void> {
  if (decisions > 0) await timeout(Math.min(2 ** decisions, backoffMsMax));
}

interface BegunOperation<R> {
  readonly slot: ReplySlot<R> | undefined;
  readonly begun: Row<'replies'> | undefined;
}

/**
 * The call and the second commit. If that commit fails, the idempotency key stays taken, so no retry repeats the
 * call.
 */
async function reachOut<R>(
  performing: Performing,
  outreach: OutboundOperation<R>,
  { slot, begun }: BegunOperation<R>,
): Promise<R> {
  const { store } = performing;
  const outcomeOf = await outreach.reachOut().catch(async (error: unknown) => {
    await commitAbandoned(performing, []);
    throw error;
  });
  const decide = whileStanding(performing, outcomeOf);
  let inVain: readonly OpenedForCaller[] = nothingOpened;
  let conflict: Precondition | undefined;
  for (let decisions = 0; decisions < decisionsMax; decisions++) {
    const decision = await decided(performing, decide, { conflict, slot, begun, inVain });
    const { effect: outcome, row } = decision;
    const { change } = outcome;
    if ('refusal' in outcome) {
      const { remove } = change;
      const freed = outcome.keepsKey ? undefined : begun;
      await store
        .commit(freed ? { ...change, remove: { ...remove, replies: [freed] } } : change)
        .catch(throwAfterCall);
      throw outcome.refusal;
    }
    try {
      ({ conflict } = await store.commit(row ? withReply(change, row) : change));
    } catch (error) {
      if (isRefusedAtCommit(error)) await commitRefused(performing, decision, change);
      throwAfterCall(error);
    }
    if (conflict === undefined) return outcome.reply;
    inVain = [...inVain, ...decision.opened];
    await backOff(decisions);
  }
  await commitAbandoned(performing, inVain);
  throw new VaultError('conflict', {
    public: 'The call was made, but the tenant or the key changed before its outcome was stored.',
  });
}

const notDone: ReadonlySet<string> = new Set(['unavailable', 'overloaded', 'insufficient_storage']);

/** Those errors say that nothing was done, and clients repeat such a request. But the call was made. */
function throwAfterCall(error: unknown): never {
  if (!(error instanceof VaultError) || !notDone.has(error.code)) throw error;
  throw new VaultError('conflict', {
    public:
      'The call was made, but the vault could not store its outcome. Do not repeat it unseen.',
    internal: error.message,
    cause: error,
  });
}

/** True for the error of a key or a proxy that has ended, or that no longer permits the operation. */
export function isEnded(error: unknown): error is VaultError {
  return (
    error instanceof VaultError && /^(?:unauthenticated|forbidden|not_found)$/.test(error.code)
  );
}

/**
 * A call of another host, or the code that decides about its outcome, may outlive the key. After the key has ended,
 * no result of the call is stored or given to the caller. The idempotency key stays taken, because the call was made.
 */
function whileStanding<R>(performing: Performing, decide: DecideOutcome<R>): DecideOutcome<R> {
  if (!('stands' in performing)) return decide;
  const { stands, actor, clock, route } = performing;
  return async (conflict) => {
    const outcome = await decide(conflict);
    try {
      await stands?.();
    } catch (error) {
      if (!isEnded(error)) throwAfterCall(error);
      const entry = failureOf(actor, clock.now(), attemptOf(route));
      const basis = error.code === 'not_found' || actor.anonymous ? 'proxy' : 'key';
      const why = `its ${basis} ended while another host was called`;
      return { change: { entries: [detailed(entry, why)] }, refusal: error, keepsKey: true };
    }
    return outcome;
  };
}

/** Effect and stored reply are one commit, and the key of the reply is unique: exactly once without locks. */
function withReply(change: Change, row: Row<'replies'>): Change {
  if (row.version === 1) return { ...change, insert: { ...change.insert, replies: [row] } };
  return { ...change, replace: { ...change.replace, replies: [row] } };
}
