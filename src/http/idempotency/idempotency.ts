/** Idempotency: the response of the first request with a key, stored for a day and sent again on a retry. */

import { invalid, VaultError } from '../../base/errors.ts';
import { LruCache } from '../../base/lru-cache.ts';
import type { Random } from '../../base/random.ts';
import { idempotencyKeyDigestOf } from '../../keys/digest.ts';
import type { Caller } from '../../rules/caller.ts';
import { alteredEntry, entryOf } from '../../rules/log-entries.ts';
import { openerFor, requireAccounted } from '../../rules/openings.ts';
import type { ReplySlot } from '../../rules/operation.ts';
import type { Reply } from '../../rules/reply.ts';
import type { Key } from '../../store/tables.ts';
import type { TokenReading } from '../../tokens/read.ts';
import { type Replay, type ReplyToReplay, replyAsSeenNow } from './replayed-tokens.ts';
import { replyKeyText, replyOf, replyRow } from './stored-reply.ts';

export const idempotencyKeyLengthMax = 255;

/**
 * All holders of a public key share its idempotency keys, and a stored response may hold a key that is shown once. An
 * attacker cannot guess a UUID or 22 characters of base64, and two visitors do not choose the same one.
 */
export const publicKeyLengthMin = 22;

const keyForm = /^[^\p{Cc}\p{Zl}\p{Zp}]+$/u;

/** An audit entry cuts the route off at this length: paths are as long as the ids in them. */
const loggedRouteLengthMax = 200;

export interface IdempotentRequest {
  readonly caller: Caller;
  /** Method and path, for example `POST /tokens`. */
  readonly route: string;
  readonly key: string;
  /** The name of the header that held the idempotency key, as the caller sent it. */
  readonly header: () => string;
}

/** Runs the request unless its response is stored already. */
export type Idempotency = (
  request: IdempotentRequest,
  run: (slot: ReplySlot) => Promise<Reply>,
) => Promise<Reply>;

export interface IdempotencyOptions extends TokenReading {
  readonly random: Random;
}

/** Of the keys that this server remembers, in characters: some seven thousand keys. */
const seenSizeMax = 2_000_000;

/**
 * One key has one effect per application, method and path. The response commits together with the
 * effect under a unique key, so neither a crash nor a second server can double it; the set of
 * requests under way only serves the early 409. A failure stores nothing.
 *
 * Nearly every key is new, so a stored response is looked for first only where this server has seen the
 * key. One that another server stored, or this one before its start, is found when the commit fails.
 */
export function createIdempotency(options: IdempotencyOptions): Idempotency {
  const underWay = new Set<string>();
  const seen = new LruCache<true>(seenSizeMax);

  return async (request, run) => {
    checkKey(request);
    const rowKey = rowKeyOf(request);
    const name = replyKeyText(rowKey);
    if (underWay.has(name)) {
      throw new VaultError('conflict', {
        public: 'A request with this idempotency key is still being processed.',
        headers: { 'retry-after': '1' },
      });
    }
    const looksFirst = seen.get(name) === true;
    underWay.add(name);
    seen.set(name, true);
    try {
      const slot = createSlot(options, request, rowKey);
      return (looksFirst ? await slot.stored() : undefined) ?? (await run(slot));
    } finally {
      underWay.delete(name);
    }
  };
}

function checkKey({ caller, key, header }: IdempotentRequest): void {
  if (key.length > idempotencyKeyLengthMax || !keyForm.test(key)) {
    throw invalid(
      header(),
      `must have 1 to ${idempotencyKeyLengthMax} characters and no control characters`,
    );
  }
  if (caller.kind === 'public' && key.length < publicKeyLengthMin) {
    throw invalid(
      header(),
      `must be a UUID or have at least ${publicKeyLengthMin} characters with a public API key, ` +
        'because all callers with that key share the stored responses',
    );
  }
}

function createSlot(
  options: IdempotencyOptions,
  { caller, route }: IdempotentRequest,
  key: Key<'replies'>,
): ReplySlot {
  const { store, clock, random } = options;
  const { tenant } = caller;
  /** Of the row that a new response replaces, which is not given any more but not removed yet; else 0. */
  let version = 0;
  return {
    rowOf: (reply, begun) => {
      // A list that is written item by item has no response to store.
      if (reply?.list) return undefined;
      const chargedTo = caller.application;
      const keeping = { tenant, key, chargedTo, now: clock.now(), random };
      return replyRow(keeping, reply, (begun?.version ?? version) + 1);
    },
    stored: async () => {
      const row = await store.get('replies', key);
      version = row?.version ?? 0;
      const now = clock.now();
      const current = row && replyOf(openerFor(caller, 'own response'), row, now);
      if (current === 'begun') throw outcomeUnknown();
      const replay = current && (await replayOf(options, { caller, now, reply: current }));
      if (replay === undefined) {
        // Nothing of it is given, and the request is processed as a new one.
        caller.openings.take([]);
        return undefined;
      }
      // The response may hold data, and no data leaves without entries.
      const id = route.slice(0, loggedRouteLengthMax);
      const entry = entryOf(caller, now, { entity: 'idempotency_key', id, operation: 'read' });
      requireAccounted(caller, [entry, ...replay.reads]);
      await store.commit({ entries: [entry, ...replay.reads] });
      return replay.reply;
    },
  };
}

/** Where a token of it was altered outside the vault, the log names it before the request is refused. */
async function replayOf(
  options: IdempotencyOptions,
  replying: ReplyToReplay,
): Promise<Replay | undefined> {
  const { caller, now } = replying;
  return replyAsSeenNow(options, replying).catch(async (error: unknown) => {
    if (error instanceof VaultError && error.altered) {
      const attempt = { ...error.altered, operation: 'read' };
      await options.store.commit({ entries: [alteredEntry(caller, now, attempt)] });
    }
    throw error;
  });
}

function outcomeUnknown(): VaultError {
  return new VaultError('conflict', {
    public:
      'A request with this idempotency key called another host. It is still being processed, or was ' +
      'interrupted; the log says what was sent.',
    headers: { 'retry-after': '1' },
  });
}

/** Sessions of one application are different people, so each has keys of its own. */
function rowKeyOf({ caller, route, key }: IdempotentRequest): Key<'replies'> {
  const { tenant } = caller;
  const application_id = caller.session ?? caller.application;
  const secret = tenant.keyring.secret('row');
  return {
    tenant_id: tenant.id,
    application_id,
    route,
    key_digest: idempotencyKeyDigestOf(secret, [application_id, route, key]),
  };
}
