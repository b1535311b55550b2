/** Performing: a request decides, the store commits what it decided, and only then is the response sent. */
import { setTimeout as timeout } from 'node:timers/promises';
import { VaultError } from '../lib/errors.ts';
import type { Change, Precondition } from '../store/change.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import type { Reply } from './reply.ts';

/** What a request comes to. Its change is durable before anybody learns of it. */
export type Effect = Done | Refused | Outreach;

export interface Done {
  readonly change: Change;
  readonly reply: Reply;
}

export interface Refused {
  readonly change: Change;
  readonly refusal: VaultError;
}

/** A request that calls another host, between two commits. */
export interface Outreach {
  /** Committed first: its entries say that the call is going to be made, also where a crash follows. */
  readonly change: Change;
  /**
   * Makes the call, once and never again for the same idempotency key, and says what came of it. That
   * change alters nothing that others may have altered meanwhile.
   */
  readonly reachOut: () => Promise<Done | Refused>;
}

/**
 * Reads what it needs and decides, without altering anything. Called again, with the precondition
 * that failed, when what it had read was no longer so at the commit.
 */
export type Decide = (conflict: Precondition | undefined) => Promise<Effect>;

/** The place where the response of a request with an idempotency key is stored. */
export interface ReplySlot {
  /**
   * What is stored for the reply; without one, that the request has begun to reach out.
   * @param begun what was stored when it had begun.
   */
  rowOf(reply: Reply | undefined, begun?: Row<'replies'>): Row<'replies'>;
  /**
   * The response that is stored by now; reading it has its entry in the log.
   * @throws VaultError `conflict` where a request has begun and its outcome is not known.
   */
  stored(): Promise<Reply | undefined>;
}

/** Decisions lost to concurrent writers before the request gives up. */
const decisionsMax = 20;

/**
 * Who has lost twice waits before the next attempt, longer each time: on another server requests may
 * follow one another so closely that there is no getting in between them.
 */
const backoffMsMax = 64;

/**
 * @throws VaultError what was decided as a refusal, after its entry is durable; `conflict` after
 * {@link decisionsMax} lost races; `unavailable` from the store. Nothing is done then.
 */
export async function perform(store: Store, decide: Decide, slot?: ReplySlot): Promise<Reply> {
  try {
    return await commitDecision(store, decide, slot);
  } catch (error) {
    // This very request may have been done before, which is why it fails when done again.
    // Where that cannot be found out either, the first failure is the one that says what was done.
    const stored = await slot?.stored().catch(() => undefined);
    if (stored) return stored;
    throw error;
  }
}

async function commitDecision(store: Store, decide: Decide, slot?: ReplySlot): Promise<Reply> {
  let conflict: Precondition | undefined;
  for (let decisions = 0; decisions < decisionsMax; decisions++) {
    const effect = await decide(conflict);
    if ('refusal' in effect) {
      // What is refused by now may have been done before, and is then no attempt to be logged.
      const stored = await slot?.stored();
      if (stored) return stored;
      await store.commit(effect.change);
      throw effect.refusal;
    }
    const reply = 'reply' in effect ? effect.reply : undefined;
    const row = reply?.list ? undefined : slot?.rowOf(reply);
    const outcome = await store.commit(row ? withReply(effect.change, row) : effect.change);
    if (outcome.conflict === undefined) {
      return 'reply' in effect ? effect.reply : reachOut(store, effect, { slot, begun: row });
    }
    conflict = outcome.conflict;
    const stored = await slot?.stored();
    if (stored) return stored;
    if (decisions > 0) await timeout(Math.min(2 ** decisions, backoffMsMax));
  }
  throw new VaultError('conflict', {
    public: 'The resource is being changed by too many requests at once; try again.',
    headers: { 'retry-after': '1' },
  });
}

interface Begun {
  readonly slot: ReplySlot | undefined;
  readonly begun: Row<'replies'> | undefined;
}

/** The call and the second commit. Where that one fails, the key stays taken, so no retry calls again. */
async function reachOut(store: Store, outreach: Outreach, { slot, begun }: Begun): Promise<Reply> {
  const outcome = await outreach.reachOut();
  const { change } = outcome;
  if ('refusal' in outcome) {
    const { remove } = change;
    await store.commit(begun ? { ...change, remove: { ...remove, replies: [begun] } } : change);
    throw outcome.refusal;
  }
  const row = slot?.rowOf(outcome.reply, begun);
  const { conflict } = await store.commit(row ? withReply(change, row) : change);
  if (conflict === undefined) return outcome.reply;
  throw new VaultError('conflict', {
    public: 'The call was made, but the tenant or the key changed before its outcome was stored.',
  });
}

/** Effect and stored reply are one commit, and the reply's key is unique: exactly once without locks. */
function withReply(change: Change, row: Row<'replies'>): Change {
  if (row.version === 1) return { ...change, insert: { ...change.insert, replies: [row] } };
  return { ...change, replace: { ...change.replace, replies: [row] } };
}
