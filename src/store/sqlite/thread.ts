/** This side of the writer thread: its messages, its start, and its restart should it ever die. */
import { Worker } from 'node:worker_threads';
import type { ChainedEntry } from '../../lib/log-chain/entries.ts';
import type { Prover } from '../../lib/log-chain/proof.ts';
import type { FlatChange, Precondition } from '../change.ts';
import type { SqlValue } from '../tables.ts';
import { unavailable, uncertain } from '../unavailable.ts';

export interface WriterOptions {
  readonly dataDir: string;
  readonly streamId: string;
  /** Whether entries come back with the outcome of their change, as they were chained. */
  readonly returnsEntries: boolean;
}

/** Changes that become one commit, unless it is later than `giveUpAt` by then. */
export interface WireGroup {
  readonly changes: readonly FlatChange[];
  /** Those of all changes, each once: to post a key costs as much as to post a change. */
  readonly provers: readonly Prover[];
  readonly giveUpAt: number;
}

export type WireRequest = WireGroup | 'probe' | 'scrub' | 'close';

export interface WireOutcome {
  readonly conflict?: Precondition;
  /** The engine could not do it; the text is for the operator. */
  readonly unavailable?: string;
  /** The engine never will. */
  readonly unstorable?: string;
  /** Of the whole group, with its first outcome. */
  readonly entries?: readonly ChainedEntry[];
}

/** `failed` is the only message of a thread that could not open the database. */
export type WireReply =
  | 'ready'
  | { readonly failed: string; readonly name: string }
  | readonly WireOutcome[];

export interface Writer {
  /** One outcome for each change, in their order, once the group is durable. */
  commit(group: Omit<WireGroup, 'provers'>): Promise<readonly WireOutcome[]>;
  /** Rejects with `unavailable` unless the database can be written. */
  probe(): Promise<void>;
  /** Rejects with `unavailable` while another process reads what would have to go. */
  scrub(): Promise<void>;
  close(): Promise<void>;
}

export interface StartOptions extends Omit<WriterOptions, 'streamId'> {
  readonly newStreamId: () => string;
}

/**
 * Starts the thread and waits until the database is open and migrated. Rejects with what the thread
 * failed with; should it die and not come up again later, requests fail with `unavailable`.
 */
export async function startWriter({ newStreamId, ...fixed }: StartOptions): Promise<Writer> {
  let thread: Promise<Thread> | undefined;
  let closed = false;

  /** A new thread begins a new log stream: what the old one's last group did is not known here. */
  function start(): Promise<Thread> {
    const forget = () => {
      if (thread === own) thread = undefined;
    };
    const own = startThread({ ...fixed, streamId: newStreamId() }, forget);
    own.catch(forget);
    thread = own;
    return own;
  }

  async function running(): Promise<Thread> {
    if (closed) throw unavailable('the store is closed');
    try {
      return await (thread ?? start());
    } catch (error) {
      throw unavailable(error instanceof Error ? error.message : 'no writer thread', error);
    }
  }

  async function ask(request: 'probe' | 'scrub'): Promise<void> {
    const [outcome] = await (await running()).send(request);
    if (outcome?.unavailable !== undefined) throw unavailable(outcome.unavailable);
  }

  await start();
  return {
    commit: async ({ changes, giveUpAt }) =>
      (await running()).send({
        changes: changes.map(toWire),
        provers: proversOf(changes),
        giveUpAt,
      }),
    probe: () => ask('probe'),
    scrub: () => ask('scrub'),
    close: async () => {
      closed = true;
      const last = await thread?.catch(() => undefined);
      await last?.close();
    },
  };
}

/** The change without memory that it shares: a pool holds plaintexts, and all of it would be sent. */
export function toWire({ operations, entries }: FlatChange): FlatChange {
  return {
    operations: operations.map((operation) => ({
      ...operation,
      values: operation.values.map(detach),
    })),
    entries,
    provers: [],
  };
}

/** Those of all changes, one for each tenant. */
function proversOf(changes: readonly FlatChange[]): Prover[] {
  const provers = new Map<string, Prover>();
  for (const change of changes) {
    for (const prover of change.provers) provers.set(prover.tenant_id, prover);
  }
  return [...provers.values()];
}

/** Posting copies the whole buffer below a view. */
function detach(value: SqlValue): SqlValue {
  if (!(value instanceof Uint8Array) || value.byteLength === value.buffer.byteLength) return value;
  return new Uint8Array(value);
}

interface Thread {
  send(request: WireRequest): Promise<readonly WireOutcome[]>;
  /** Resolves once what was sent is done and the thread has ended. */
  close(): Promise<void>;
}

interface PendingGroup {
  resolve(outcomes: readonly WireOutcome[]): void;
  reject(error: Error): void;
}

const threadFile = new URL(`./writer${import.meta.url.slice(-3)}`, import.meta.url);

function startThread(options: WriterOptions, onEnd: () => void): Promise<Thread> {
  const worker = new Worker(threadFile, { workerData: options });
  const waiting: PendingGroup[] = [];
  const thread: Thread = {
    send: (request) =>
      new Promise((resolve, reject) => {
        worker.postMessage(request);
        waiting.push({ resolve, reject });
      }),
    close: () =>
      new Promise((resolve) => {
        worker.once('exit', () => resolve());
        worker.postMessage('close' satisfies WireRequest);
      }),
  };
  return new Promise((resolve, reject) => {
    worker.on('message', (reply: WireReply) => {
      if (reply === 'ready') resolve(thread);
      else if ('failed' in reply)
        reject(Object.assign(new Error(reply.failed), { name: reply.name }));
      else waiting.shift()?.resolve(reply);
    });
    worker.on('error', reject);
    worker.on('exit', () => {
      onEnd();
      reject(unavailable('the writer thread could not start'));
      for (const pending of waiting) pending.reject(uncertain('the writer thread ended'));
    });
  });
}
