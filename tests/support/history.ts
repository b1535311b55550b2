/** A client that writes tokens and remembers what it was promised, so that promises can be held to. */
import { randomUUID } from 'node:crypto';
import type { Below } from './random.ts';
import { type Received, request } from './vault.ts';

/** A write under an idempotency key, so that it may be repeated without a second effect. */
export interface Write {
  readonly method: 'POST' | 'PATCH' | 'DELETE';
  readonly key: string;
  /** What the token holds afterwards; `undefined` when it is gone. */
  readonly value: number | undefined;
}

/** One token of the client's, as far as the client can know it. */
export interface Remembered {
  /** Kept in the token's metadata: the only name it has until its creation is answered. */
  readonly serial: string;
  id: string | undefined;
  /** What the last acknowledged write left there. */
  settled: number | undefined;
  /** The write that was sent and not acknowledged: it happened whole, or not at all. */
  open: Write | undefined;
  /** Acknowledged. */
  updates: number;
  reads: number;
  /** Sent and not answered: their entries may or may not be in the log. */
  readsOpen: number;
  /** Acknowledged writes and their answers, which must not change within a day. */
  readonly answers: { readonly write: Write; readonly text: string }[];
}

export interface HistoryOptions {
  readonly url: () => string;
  readonly key: string;
  readonly below: Below;
}

/** Three parts that belong together: a torn write would show in them. */
export function dataOf(value: number): object {
  return { value, again: value, text: `value ${value}` };
}

export interface History {
  readonly tokens: readonly Remembered[];
  /** Writes and reads with `width` requests at a time for as long as `wanted` says so. */
  work(width: number, wanted: (answered: Received | undefined) => boolean): Promise<void>;
  read(token: Remembered): Promise<Received>;
  /** Sends a write, or sends it again. */
  send(token: Remembered, write: Write): Promise<Received>;
  /** Sends a write and remembers what came of it; `undefined` when no answer came. */
  write(token: Remembered, write: Write): Promise<Received | undefined>;
}

export function createHistory({ url, key, below }: HistoryOptions): History {
  const tokens: Remembered[] = [];
  let values = 0;

  const pathOf = ({ id = '' }: Remembered) => `/tokens/${encodeURIComponent(id)}`;

  const send: History['send'] = (token, { method, key: idempotencyKey, value }) => {
    const headers = { 'svc-idempotency-key': idempotencyKey };
    if (method === 'DELETE') return request(url() + pathOf(token), method, { key });
    const content = {
      data: value === undefined ? null : dataOf(value),
      metadata: { serial: token.serial, value: String(value) },
    };
    return method === 'PATCH'
      ? request(url() + pathOf(token), method, { key, headers, body: content })
      : request(`${url()}/tokens`, method, { key, headers, body: { type: 'token', ...content } });
  };

  const write: History['write'] = async (token, what) => {
    token.open = what;
    const answer = await answered(send(token, what));
    if (answer === undefined) return undefined;
    if (answer.status >= 300) {
      if (saysNothingWasDone(answer)) token.open = undefined;
      return answer;
    }
    if (what.method === 'POST') token.id = answer.body.id;
    if (what.method === 'PATCH') token.updates += 1;
    if (what.method !== 'DELETE') token.answers.push({ write: what, text: answer.text });
    token.settled = what.value;
    token.open = undefined;
    return answer;
  };

  async function step(own: Remembered[]): Promise<Received | undefined> {
    const free = own.filter(({ open, settled }) => open === undefined && settled !== undefined);
    const token = free[below(free.length + 2)];
    const key = randomUUID();
    values += 1;
    if (token === undefined) {
      const fresh = remembered();
      tokens.push(fresh);
      own.push(fresh);
      return write(fresh, { method: 'POST', key, value: values });
    }
    const die = below(8);
    if (die === 0) return write(token, { method: 'DELETE', key, value: undefined });
    if (die > 3) return write(token, { method: 'PATCH', key, value: values });
    return answered(read(token));
  }

  async function read(token: Remembered): Promise<Received> {
    token.readsOpen += 1;
    const answer = await request(url() + pathOf(token), 'GET', { key });
    if (answer.status === 200) token.reads += 1;
    if (answer.status !== 503 || saysNothingWasDone(answer)) token.readsOpen -= 1;
    return answer;
  }

  return {
    tokens,
    send,
    read,
    write,
    work: async (width, wanted) => {
      const worker = async () => {
        const own: Remembered[] = [];
        while (wanted(await step(own)));
      };
      await Promise.all(Array.from({ length: width }, worker));
    },
  };
}

function remembered(): Remembered {
  return {
    serial: randomUUID(),
    id: undefined,
    settled: undefined,
    open: undefined,
    updates: 0,
    reads: 0,
    readsOpen: 0,
    answers: [],
  };
}

const lost: readonly unknown[] = ['ECONNRESET', 'ECONNREFUSED', 'EPIPE'];

/** A server that dies takes the connection with it, before the answer or in the middle of it. */
function answered(answer: Promise<Received>): Promise<Received | undefined> {
  return answer.catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && lost.includes(error.code)) return undefined;
    throw error;
  });
}

/** What the vault says when it knows that the request had no effect; it is held to that. */
function saysNothingWasDone({ body }: Received): boolean {
  return /Nothing was done/.test(body?.detail ?? '');
}
