/** Performing: a request decides, the store commits what it decided, and only then is the response sent. */
import assert from 'node:assert/strict';
import { setTimeout as timeout } from 'node:timers/promises';
import type { Clock } from '../base/clock.ts';
import { VaultError } from '../base/errors.ts';
import type { OpenedBinding } from '../keys/envelope.ts';
import type { Change, CommitOutcome, Precondition } from '../store/change.ts';
import type { LogEntry } from '../store/log-chain/entries.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { type AttemptedRoute, attemptOf } from './attempted-route.ts';
import type { Caller, Operator } from './caller.ts';
import { openedInVain, requireAccounted } from './openings.ts';
import type { Reply } from './reply.ts';

/** What a request comes to. Its change is durable before anybody learns of it. */
export type Effect<R = Reply> = CompletedOperation<R> | Refused | OutboundOperation<R>;

export interface CompletedOperation<R = Reply> {
  readonly change: Change;
  readonly reply: R;
}

export interface Refused {
  readonly change: Change;
  readonly refusal: VaultError;
  /** After a call that may have had its effect: a retry under the same idempotency key must not make it again. */
  readonly keepsKey?: true;
}

/** A request that calls another host, between two commits. */
export interface OutboundOperation<R = Reply> {
  /**
   * Committed first: its entries say that the call is going to be made, also where a crash follows. Absent
   * where nothing that is stored is used in the call.
   */
  readonly change?: Change;
  /**
   * Makes the call, once and never again for the same idempotency key, and says how to decide what came of
   * it. That is decided again, without another call, where its change meets a conflict.
   */
  readonly reachOut: () => Promise<DecideOutcome<R>>;
}

/** Says what came of a call. */
export type DecideOutcome<R = Reply> = (
  conflict: Precondition | undefined,
) => Promise<CompletedOperation<R> | Refused>;

/**
 * Reads what it needs and decides, without altering anything. Called again, with the precondition
 * that failed, when what it had read was no longer so at the commit.
 */
export type Decide<R = Reply> = (conflict: Precondition | undefined) => Promise<Effect<R>>;

/** The place where the response of a request with an idempotency key is stored. */
export interface ReplySlot<R = Reply> {
  /**
   * What is stored for the reply, if anything is; without a reply, that the request has begun to reach out.
   * @param begun what was stored when it had begun.
   */
  rowOf(reply: R | undefined, begun?: Row<'replies'>): Row<'replies'> | undefined;
  /**
   * The response that is stored by now; reading it has its entry in the log.
   * @throws VaultError `conflict` where a request has begun and its outcome is not known.
   */
  stored(): Promise<R | undefined>;
}

/** Decisions lost to concurrent writers before the request gives up. */
const decisionsMax = 20;

/**
 * Who has lost twice waits before the next attempt, longer each time: on another server requests may
 * follow one another so closely that there is no getting in between them.
 */
const backoffMsMax = 64;

/** Where an operation is performed, and for whom: what is opened for a caller has its entry in the log. */
export type Performing = {
  readonly store: Store;
} & (
  | {
      readonly actor: Caller;
      readonly clock: Clock;
      /** What it attempts, for the entries of what was opened and came to nothing. */
      readonly route: AttemptedRoute;
    }
  /** Absent where a request needs no key. */
  | { readonly actor: Operator | undefined }
);

/** The same where a request may need no key. */
export function performingFor(
  store: Store,
  actor: Caller | undefined,
  attempt: { readonly clock: Clock; readonly route: AttemptedRoute },
): Performing {
  return actor ? { store, actor, ...attempt } : { store, actor };
}

/**
 * Fails, and commits nothing, where the effect opened something that none of its entries speaks of. What was opened
 * by a decision that then fails, or is refused, has its entry as well.
 *
 * @throws VaultError what was decided as a refusal, after its entry is durable; `conflict` after
 * {@link decisionsMax} lost races; `unavailable` from the store. Nothing is done then.
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
 * This very request may have been done before, which is why it fails when done again.
 * Where that cannot be found out either, the first failure is the one that says what was done.
 */
async function storedInstead<R>(
  { actor }: Performing,
  slot: ReplySlot<R>,
  error: unknown,
): Promise<R> {
  // What was opened by then has its entry, or is given to no caller.
  if (actor?.application) actor.openings.take([]);
  // That was met in the response itself, or once there was none.
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
  for (let decisions = 0; decisions < decisionsMax; decisions++) {
    const decision = await decided(performing, () => decide(conflict), slot);
    const { effect, row } = decision;
    if ('refusal' in effect) {
      // What is refused by now may have been done before, and is then no attempt to be logged.
      const stored = await slot?.stored();
      if (stored) return stored;
      await store.commit(effect.change);
      throw effect.refusal;
    }
    const { change } = effect;
    assert(change || !row, 'a call under an idempotency key has a first commit');
    const outcome = change ? await commitAccounted(performing, decision, change) : committed;
    if (outcome.conflict === undefined) {
      return 'reply' in effect ? effect.reply : reachOut(performing, effect, { slot, begun: row });
    }
    conflict = outcome.conflict;
    const stored = await slot?.stored();
    if (stored) return stored;
    await backOff(decisions);
  }
  throw new VaultError('conflict', {
    public: 'The resource is being changed by too many requests at once; try again.',
    headers: { 'retry-after': '1' },
  });
}

interface AccountedDecision<E> {
  readonly effect: E | FailedDecision;
  /** Of the reply, where there is one to be stored. */
  readonly row: Row<'replies'> | undefined;
  /** Of which the entries of the effect speak. */
  readonly opened: readonly OpenedBinding[];
}

/** As {@link Refused}, also for an error that no caller caused. */
interface FailedDecision extends Omit<Refused, 'refusal'> {
  readonly refusal: unknown;
}

/**
 * The only place that decides. All that opens something for the caller is done before the openings are compared with
 * the entries, also what is stored of the reply, and also where the decision fails.
 */
async function decided<R, E extends Effect<R>>(
  performing: Performing,
  decide: () => Promise<E>,
  slot: ReplySlot<R> | undefined,
  begun?: Row<'replies'>,
): Promise<AccountedDecision<E>> {
  const loop = 'route' in performing ? performing.actor.origin.loop : undefined;
  try {
    const effect = withLoop(await decide(), loop);
    if ('refusal' in effect) return refusing(withOpenedInVain(performing, effect));
    const row = slot?.rowOf('reply' in effect ? effect.reply : undefined, begun);
    const { actor } = performing;
    if (!actor?.application) return { effect, row, opened: [] };
    const opened = actor.openings.known;
    requireAccounted(actor, effect.change?.entries ?? []);
    return { effect, row, opened };
  } catch (error) {
    const [first, ...others] = entriesInVain(performing, []);
    if (first === undefined) throw error;
    return refusing({ change: { entries: [first, ...others] }, refusal: error });
  }
}

const refusing = <E>(effect: E) => ({ effect, row: undefined, opened: [] });

/**
 * Where the store has no room for the change, the log has what was opened for it and what of it was refused.
 * @throws VaultError from the store; see {@link isWithoutRoom}.
 */
async function commitAccounted(
  performing: Performing,
  { row, opened }: Omit<AccountedDecision<unknown>, 'effect'>,
  change: Change,
): Promise<CommitOutcome> {
  const { store, actor } = performing;
  try {
    return await store.commit(row ? withReply(change, row) : change);
  } catch (error) {
    if (!isWithoutRoom(error)) throw error;
    const refused = change.entries.filter(({ result }) => result !== 'success');
    if (actor?.application) for (const one of opened) actor.openings.opened(one);
    const [first, ...others] = [...refused, ...entriesInVain(performing, refused)];
    if (first) await store.commit({ entries: [first, ...others] });
    throw error;
  }
}

/** A quota or the disk leaves no room for what was to be stored; entries of the log are written all the same. */
export function isWithoutRoom(error: unknown): boolean {
  return error instanceof VaultError && /^(?:unprocessable|insufficient_storage)$/.test(error.code);
}

/** The refusal, with entries for what it opened and does not speak of. */
function withOpenedInVain<E extends { readonly change?: Change }>(
  performing: Performing,
  refused: E,
): E {
  const { change } = refused;
  if (change === undefined) return refused;
  const vain = entriesInVain(performing, change.entries);
  if (vain.length === 0) return refused;
  return { ...refused, change: { ...change, entries: [...change.entries, ...vain] } };
}

function entriesInVain(performing: Performing, entries: readonly LogEntry[]): readonly LogEntry[] {
  if (!('route' in performing)) return [];
  const { actor, clock, route } = performing;
  const [first] = entries;
  const { created_at: at, operation } = first ?? {
    created_at: clock.now(),
    operation: attemptOf(route).operation,
  };
  const vain = openedInVain(actor, entries, { at, operation });
  actor.openings.take([]);
  return vain;
}

/** What the change's events send says through which vaults the request came. */
function withLoop<E extends { readonly change?: Change }>(effect: E, loop: string | undefined): E {
  const { change } = effect;
  return change === undefined || loop === undefined
    ? effect
    : { ...effect, change: { ...change, loop } };
}

const committed = { conflict: undefined };

async function backOff(decisions: number): Promise<void> {
  if (decisions > 0) await timeout(Math.min(2 ** decisions, backoffMsMax));
}

interface BegunOperation<R> {
  readonly slot: ReplySlot<R> | undefined;
  readonly begun: Row<'replies'> | undefined;
}

/** The call and the second commit. Where that one fails, the key stays taken, so no retry calls again. */
async function reachOut<R>(
  performing: Performing,
  outreach: OutboundOperation<R>,
  { slot, begun }: BegunOperation<R>,
): Promise<R> {
  const { store } = performing;
  const decide = await outreach.reachOut().catch(async (error: unknown) => {
    const [first, ...others] = entriesInVain(performing, []);
    if (first) await store.commit({ entries: [first, ...others] });
    throw error;
  });
  let conflict: Precondition | undefined;
  for (let decisions = 0; decisions < decisionsMax; decisions++) {
    const decision = await decided(performing, () => decide(conflict), slot, begun);
    const { effect: outcome } = decision;
    const { change } = outcome;
    if ('refusal' in outcome) {
      const { remove } = change;
      const freed = outcome.keepsKey ? undefined : begun;
      await store.commit(freed ? { ...change, remove: { ...remove, replies: [freed] } } : change);
      throw outcome.refusal;
    }
    ({ conflict } = await commitAccounted(performing, decision, change));
    if (conflict === undefined) return outcome.reply;
    await backOff(decisions);
  }
  throw new VaultError('conflict', {
    public: 'The call was made, but the tenant or the key changed before its outcome was stored.',
  });
}

/** Effect and stored reply are one commit, and the reply's key is unique: exactly once without locks. */
function withReply(change: Change, row: Row<'replies'>): Change {
  if (row.version === 1) return { ...change, insert: { ...change.insert, replies: [row] } };
  return { ...change, replace: { ...change.replace, replies: [row] } };
}
