/** Idempotency: the answer of the first request with a key, kept for a day and given again. */
import { invalid, VaultError } from '../lib/errors.ts';
import type { Random } from '../lib/random.ts';
import type { Key } from '../store/tables.ts';
import type { Caller } from './access/caller.ts';
import { entryOf } from './logs/audit.ts';
import type { Reply, ReplySlot } from './perform.ts';
import { replyOf, replyRow } from './stored-reply.ts';
import { replyAsSeenNow } from './tokens/kept.ts';
import type { TokenReading } from './tokens/read.ts';

export const idempotencyKeyLengthMax = 255;

const keyForm = /^[^\p{Cc}\p{Zl}\p{Zp}]+$/u;

/** What an audit entry says of the route is cut off there: paths are as long as ids are. */
const loggedRouteLengthMax = 200;

export interface IdempotentRequest {
  readonly caller: Caller;
  /** Method and path, for example `POST /tokens`. */
  readonly route: string;
  readonly key: string;
  /** The header in which the key came, as the caller wrote it. */
  readonly header: string;
}

/** Runs the request unless its answer is stored already. */
export type Idempotency = (
  request: IdempotentRequest,
  run: (slot: ReplySlot) => Promise<Reply>,
) => Promise<Reply>;

export interface IdempotencyOptions extends TokenReading {
  readonly random: Random;
}

/**
 * One key has one effect per application, method and path. The answer commits together with the
 * effect under a unique key, so neither a crash nor a second server can double it; the set of
 * requests under way only serves the early 409. A failure stores nothing.
 */
export function createIdempotency(options: IdempotencyOptions): Idempotency {
  const underWay = new Set<string>();

  return async (request, run) => {
    checkKey(request);
    const name = JSON.stringify(rowKey(request));
    if (underWay.has(name)) {
      throw new VaultError('conflict', {
        public: 'A request with this idempotency key is still being processed.',
        headers: { 'retry-after': '1' },
      });
    }
    underWay.add(name);
    try {
      const slot = createSlot(options, request);
      return (await slot.stored()) ?? (await run(slot));
    } finally {
      underWay.delete(name);
    }
  };
}

function checkKey({ key, header }: IdempotentRequest): void {
  if (key.length <= idempotencyKeyLengthMax && keyForm.test(key)) return;
  throw invalid(
    header,
    `must have 1 to ${idempotencyKeyLengthMax} characters and no control characters`,
  );
}

function createSlot(options: IdempotencyOptions, request: IdempotentRequest): ReplySlot {
  const { store, clock, random } = options;
  const { caller } = request;
  const { tenant } = caller;
  const key = rowKey(request);
  /** Of the row that a new answer replaces, which is not given any more but not removed yet; else 0. */
  let version = 0;
  return {
    rowOf: (reply) => replyRow({ tenant, key, now: clock.now(), random }, reply, version + 1),
    stored: async () => {
      const row = await store.get('replies', key);
      version = row?.version ?? 0;
      const now = clock.now();
      const kept = row && replyOf(tenant, row, now);
      const reply = kept && (await replyAsSeenNow(options, { caller, now, reply: kept }));
      if (reply === undefined) return undefined;
      // The answer may hold data, and no data leaves without an entry.
      const id = request.route.slice(0, loggedRouteLengthMax);
      const entry = entryOf(caller, now, { entity: 'idempotency_key', id, operation: 'read' });
      await store.commit({ entries: [entry] });
      return reply;
    },
  };
}

/** Sessions of one application are different people, so each has keys of its own. */
function rowKey({ caller, route, key }: IdempotentRequest): Key<'replies'> {
  return {
    tenant_id: caller.tenant.id,
    application_id: caller.session ?? caller.application,
    route,
    idempotency_key: key,
  };
}
