/** Performing: a request decides, the store commits what it decided, and only then is it answered. */

import type { Instant } from '../lib/clock.ts';
import { VaultError } from '../lib/errors.ts';
import type { Change, Precondition } from '../store/change.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { denialOf } from './audit.ts';
import type { Caller } from './caller.ts';
import type { Permission } from './permissions.ts';

/** What a caller is told when its request succeeded. */
export interface Reply {
  readonly status: 200 | 201 | 204;
  /** Path of the created resource. */
  readonly location?: string;
  readonly body?: object;
}

/** A change together with what is answered once it is durable: a reply, or a refusal. */
export type Effect =
  | { readonly change: Change; readonly reply: Reply }
  | { readonly change: Change; readonly refusal: VaultError };

/**
 * Reads what it needs and decides, without altering anything. Called again, with the precondition
 * that failed, when what it had read was no longer so at the commit.
 */
export type Decide = (conflict: Precondition | undefined) => Promise<Effect>;

/** The place where the answer of a request with an idempotency key is kept. */
export interface ReplySlot {
  rowOf(reply: Reply): Row<'replies'>;
  /** The answer another server stored first. */
  stored(): Promise<Reply | undefined>;
}

/** Decisions lost to concurrent writers before the request gives up. */
export const decisionsMax = 20;

/**
 * @throws VaultError what was decided as a refusal, after its entry is durable; `conflict` after
 * {@link decisionsMax} lost races; `unavailable` from the store. Nothing is done then.
 */
export async function perform(store: Store, decide: Decide, slot?: ReplySlot): Promise<Reply> {
  let conflict: Precondition | undefined;
  for (let decisions = 0; decisions < decisionsMax; decisions++) {
    const effect = await decide(conflict);
    if ('refusal' in effect) {
      await store.commit(effect.change);
      throw effect.refusal;
    }
    const outcome = await store.commit(
      slot ? withReply(effect.change, slot.rowOf(effect.reply)) : effect.change,
    );
    if (outcome.conflict === undefined) return effect.reply;
    conflict = outcome.conflict;
    const stored = conflict.startsWith('replies.') ? await slot?.stored() : undefined;
    if (stored) return stored;
  }
  throw new VaultError('conflict', {
    public: 'The resource is being changed by too many requests at once; try again.',
    headers: { 'retry-after': '1' },
  });
}

/** Effect and stored reply are one commit, and the reply's key is unique: exactly once without locks. */
function withReply(change: Change, row: Row<'replies'>): Change {
  if (row.version === 1) return { ...change, insert: { ...change.insert, replies: [row] } };
  return { ...change, replace: { ...change.replace, replies: [row] } };
}

export interface Refusal {
  readonly entity: string;
  /** `*` where no entity was named. */
  readonly id: string;
  readonly permission: Permission;
}

/** The effect of a refused request: its entry in the log, and a 403 that says which permission it lacks. */
export function refuse(caller: Caller, at: Instant, { entity, id, permission }: Refusal): Effect {
  const operation = permission.slice(permission.lastIndexOf(':') + 1);
  return {
    change: { entries: [denialOf(caller, at, { entity, id, operation })] },
    refusal: new VaultError('forbidden', {
      public: `The key lacks the permission ${permission} here.`,
    }),
  };
}
