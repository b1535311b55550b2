/** Idempotency: the answer of the first request with a key, kept for a day and given again. */
import { openText, sealText } from '../crypto/envelope.ts';
import { type Clock, hour } from '../lib/clock.ts';
import { invalid, VaultError } from '../lib/errors.ts';
import type { Random } from '../lib/random.ts';
import type { Store } from '../store/store.ts';
import type { Key, Row } from '../store/tables.ts';
import type { Caller } from './caller.ts';
import type { Reply, ReplySlot } from './perform.ts';

export const replyRetentionMs = 24 * hour;
export const idempotencyKeyLengthMax = 255;

const keyForm = /^[^\p{Cc}\p{Zl}\p{Zp}]+$/u;

export interface IdempotentRequest {
  readonly caller: Caller;
  /** Method and path, for example `POST /tokens`. */
  readonly route: string;
  readonly key: string;
}

/** Runs the request unless its answer is stored already. */
export type Idempotency = (
  request: IdempotentRequest,
  run: (slot: ReplySlot) => Promise<Reply>,
) => Promise<Reply>;

export interface IdempotencyOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * One key has one effect per application, method and path. The answer commits together with the
 * effect under a unique key, so neither a crash nor a second server can double it; the set of
 * requests under way only serves the early 409. A failure stores nothing.
 */
export function createIdempotency({ store, clock, random }: IdempotencyOptions): Idempotency {
  const underWay = new Set<string>();

  return async (request, run) => {
    const { caller, key } = request;
    if (key.length > idempotencyKeyLengthMax || !keyForm.test(key)) {
      const message = `must have 1 to ${idempotencyKeyLengthMax} characters and no control characters`;
      throw invalid('idempotency-key', message);
    }
    const id = rowKey(request);
    const name = JSON.stringify(id);
    if (underWay.has(name)) {
      throw new VaultError('conflict', {
        public: 'A request with this idempotency key is still being processed.',
        headers: { 'retry-after': '1' },
      });
    }
    underWay.add(name);
    try {
      const found = await store.get('replies', id);
      const stored = found && fresh(found) ? openReply(caller, found) : undefined;
      return stored ?? (await run(slotOf(caller, id, found)));
    } finally {
      underWay.delete(name);
    }
  };

  function fresh(row: Row<'replies'>): boolean {
    return clock.now() < row.created_at + replyRetentionMs;
  }

  /** A stored answer that is too old is replaced rather than waited for until it is purged. */
  function slotOf(caller: Caller, id: Key<'replies'>, old: Row<'replies'> | undefined): ReplySlot {
    return {
      rowOf: (reply) => ({
        ...id,
        version: (old?.version ?? 0) + 1,
        reply: sealText(
          caller.tenant.keyring.sealing('reply'),
          bindingOf(id),
          JSON.stringify(reply),
          random,
        ),
        created_at: clock.now(),
      }),
      stored: async () => {
        const row = await store.get('replies', id);
        return row && fresh(row) ? openReply(caller, row) : undefined;
      },
    };
  }
}

function rowKey({ caller, route, key }: IdempotentRequest): Key<'replies'> {
  return {
    tenant_id: caller.tenant.id,
    application_id: caller.application,
    route,
    idempotency_key: key,
  };
}

function bindingOf(id: Key<'replies'>) {
  return {
    tenant: id.tenant_id,
    id: JSON.stringify([id.application_id, id.route, id.idempotency_key]),
    field: 'reply',
  };
}

function openReply(caller: Caller, row: Row<'replies'>): Reply {
  const text = openText(caller.tenant.keyring.sealing('reply'), bindingOf(row), row.reply);
  return JSON.parse(text.reveal()) as Reply;
}
