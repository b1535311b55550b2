/** This side of the writer thread: its messages, its start, and its restart should it ever die. */
import { Worker } from 'node:worker_threads';
import type { LogEntry } from '../lib/log-chain.ts';
import type { Operation, Precondition } from './change.ts';
import { unavailable } from './unavailable.ts';

export interface WriterOptions {
  readonly dataDir: string;
  readonly streamId: string;
}

/** A change as it crosses to the thread: flat values, no classes. */
export interface WireChange {
  readonly operations: readonly Operation[];
  readonly entries: readonly LogEntry[];
}

export type WireRequest = readonly WireChange[] | 'probe' | 'close';

export interface WireOutcome {
  readonly conflict?: Precondition;
  /** The engine could not do it; the text is for the operator. */
  readonly unavailable?: string;
}

/** `failed` is the only message of a thread that could not open the database. */
export type WireReply =
  | 'ready'
  | { readonly failed: string; readonly name: string }
  | readonly WireOutcome[];

export interface Writer {
  /** One outcome for each change, in their order, once the group is durable. */
  commit(group: readonly WireChange[]): Promise<readonly WireOutcome[]>;
  /** Rejects with `unavailable` unless the database can be written. */
  probe(): Promise<void>;
  close(): Promise<void>;
}

interface Waiting {
  resolve(outcomes: readonly WireOutcome[]): void;
  reject(error: Error): void;
}

const threadFile = new URL(`./sqlite-writer${import.meta.url.slice(-3)}`, import.meta.url);

/** Starts the thread and waits until the database is open and migrated. */
export async function startWriter(dataDir: string, newStreamId: () => string): Promise<Writer> {
  let thread: Promise<Worker> | undefined;
  const waiting: Waiting[] = [];

  /** A new thread begins a new log stream: what the old one's last group did is not known here. */
  function start(): Promise<Worker> {
    const options: WriterOptions = { dataDir, streamId: newStreamId() };
    const worker = new Worker(threadFile, { workerData: options });
    return new Promise((resolve, reject) => {
      worker.on('message', (reply: WireReply) => {
        if (reply === 'ready') resolve(worker);
        else if ('failed' in reply)
          reject(Object.assign(new Error(reply.failed), { name: reply.name }));
        else waiting.shift()?.resolve(reply);
      });
      worker.on('error', reject);
      worker.on('exit', () => {
        thread = undefined;
        const error = unavailable('the writer thread ended');
        reject(error);
        for (const pending of waiting.splice(0)) pending.reject(error);
      });
    });
  }

  async function send(request: WireRequest): Promise<readonly WireOutcome[]> {
    thread ??= start();
    const worker = await thread;
    return new Promise((resolve, reject) => {
      waiting.push({ resolve, reject });
      worker.postMessage(request);
    });
  }

  thread = start();
  await thread;
  return {
    commit: send,
    probe: async () => {
      const [outcome] = await send('probe');
      if (outcome?.unavailable !== undefined) throw unavailable(outcome.unavailable);
    },
    close: async () => {
      const worker = await thread;
      if (!worker) return;
      const ended = new Promise((resolve) => worker.once('exit', resolve));
      worker.postMessage('close' satisfies WireRequest);
      await ended;
    },
  };
}
