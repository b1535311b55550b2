/** Serves requests of running code in the parent. Every byte of a request comes from an untrusted process. */

import { errorKinds, VaultError } from '../../base/errors.ts';
import { isObject } from '../../base/json.ts';
import { parseHostile } from './hostile-json.ts';
import * as limits from './limits.ts';
import type { GuestReply } from './messages.ts';
import type { BtInput, BtOperation, FetchInput, SandboxCall, ServeRequest } from './sandbox.ts';

type GuestError = NonNullable<GuestReply['error']>;

/** A refusal that the code reads. */
class RequestRefusal extends Error {
  readonly kind: string;

  constructor(message: string, kind = 'Error') {
    super(message);
    this.kind = kind;
  }
}

/** Thrown for messages that our own child never sends: the process must be killed. */
export class ProtocolError extends Error {}

interface GuestRequest {
  readonly id: number;
  readonly operation: string;
  readonly input: unknown;
}

export interface Requests {
  /**
   * The reply, as JSON; it never rejects for what `serve` does.
   *
   * @throws ProtocolError
   */
  reply(payload: Buffer): Promise<string>;
  /** No more replies are needed. */
  end(): void;
}

/** Counts the requests of one call, refuses those over the limits, and passes the rest to `serve`. */
export function requestsOf({ serve, bt }: Pick<SandboxCall, 'serve' | 'bt'>): Requests {
  const counts: Record<string, number> = { fetch: 0, bt: 0, timer: 0 };
  const aborting = new AbortController();
  const timers = new Set<NodeJS.Timeout>();
  let asking = 0;
  let bytes = 0;
  let pending = 0;

  function count(kind: string, most: number): void {
    counts[kind] = (counts[kind] ?? 0) + 1;
    if (counts[kind] > most)
      throw new RequestRefusal(`a call may make at most ${most} ${kind} requests`);
  }

  function perform({ operation, input }: GuestRequest): Promise<unknown> {
    if (operation === 'timer') {
      count('timer', limits.timersMax);
      return elapsed(input);
    }
    if (operation === 'fetch') {
      count('fetch', limits.fetchesMax);
      return serve({ operation, input: fetchInput(input) }, aborting.signal);
    }
    if (!bt || !btOperations.has(operation)) throw new ProtocolError('an unknown operation');
    count('bt', limits.vaultCallsMax);
    return serve({ operation, input: btInput(operation, input) } as ServeRequest, aborting.signal);
  }

  function elapsed(input: unknown): Promise<null> {
    const ms = isObject(input) && typeof input['ms'] === 'number' ? input['ms'] : 0;
    const { promise, resolve } = Promise.withResolvers<null>();
    const timer = setTimeout(
      () => {
        timers.delete(timer);
        resolve(null);
      },
      Math.min(Math.max(ms, 1), limits.timeoutMsMaxAsync),
    );
    timers.add(timer);
    return promise;
  }

  async function reply(payload: Buffer): Promise<string> {
    asking += 1;
    bytes += payload.length;
    pending += 1;
    const isFlood =
      asking > limits.requestsMax ||
      bytes > limits.requestsBytesMax ||
      pending > limits.pendingRequestsMax;
    if (isFlood) throw new ProtocolError('too many requests');
    const request = askedFrom(payload);
    try {
      const value = (await perform(request)) ?? null;
      const text = JSON.stringify({ id: request.id, value } satisfies GuestReply);
      if (Buffer.byteLength(text) <= limits.replyBytesMax) return text;
      throw new RequestRefusal('the response is too large', 'TypeError');
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      return JSON.stringify({ id: request.id, error: shown(error, request) } satisfies GuestReply);
    } finally {
      pending -= 1;
    }
  }

  return {
    reply,
    end: () => {
      aborting.abort();
      for (const timer of timers) clearTimeout(timer);
    },
  };
}

function askedFrom(payload: Buffer): GuestRequest {
  const parsed = parseHostile(payload)?.value;
  const request = isObject(parsed) ? parsed['request'] : undefined;
  if (!isObject(parsed) || !isObject(request)) throw new ProtocolError('not a request');
  const { id } = parsed;
  const { operation, input } = request;
  if (!Number.isSafeInteger(id) || typeof operation !== 'string') {
    throw new ProtocolError('not a request');
  }
  return { id: id as number, operation, input };
}

const btOperations: ReadonlyMap<string, readonly (keyof BtInput)[]> = new Map<
  BtOperation,
  readonly (keyof BtInput)[]
>([
  ['bt.tokens.retrieve', ['id']],
  ['bt.tokens.create', ['body']],
  ['bt.tokens.update', ['id', 'body']],
  ['bt.tokens.delete', ['id']],
  ['bt.tokenize', ['body']],
  ['bt.detokenize', ['body']],
]);

function btInput(operation: string, input: unknown): BtInput {
  const given = isObject(input) ? input : {};
  const names = btOperations.get(operation) ?? [];
  if (names.includes('id') && typeof given['id'] !== 'string') {
    throw new RequestRefusal('the id must be a string', 'TypeError');
  }
  return Object.fromEntries(names.map((name) => [name, given[name]]));
}

const urlLengthMax = 8_192;
const headersMax = 100;

function fetchInput(input: unknown): FetchInput {
  const { url, method, headers, body } = isObject(input) ? input : {};
  const isHeader = (one: unknown) =>
    Array.isArray(one) && one.length === 2 && one.every((part) => typeof part === 'string');
  if (typeof url !== 'string' || url.length > urlLengthMax) {
    throw new RequestRefusal(
      `the address must be a string of at most ${urlLengthMax} characters`,
      'TypeError',
    );
  }
  if (typeof method !== 'string' || !/^[A-Z]{1,20}$/.test(method)) {
    throw new RequestRefusal('the method must be a name in upper case', 'TypeError');
  }
  if (!Array.isArray(headers) || headers.length > headersMax || !headers.every(isHeader)) {
    throw new RequestRefusal(`at most ${headersMax} headers, each a name and a value`, 'TypeError');
  }
  if (body !== undefined && typeof body !== 'string') throw new ProtocolError('not a body');
  const pairs = headers as unknown as FetchInput['headers'];
  return { url, method, headers: pairs, ...(body !== undefined && { body }) };
}

/** Hides errors that are not meant for callers: the code learns only that one occurred. */
function shown(error: unknown, { operation }: GuestRequest): GuestError {
  if (error instanceof RequestRefusal) return { name: error.kind, message: error.message };
  const name = operation === 'fetch' ? 'TypeError' : 'VaultError';
  if (!(error instanceof VaultError)) return { name, message: 'The request failed.' };
  const { errors } = error;
  const { status } = errorKinds[error.code];
  return { name, message: error.public, more: { status, ...(errors && { errors }) } };
}
