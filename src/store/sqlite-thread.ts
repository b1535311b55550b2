/** This side of the writer thread: its messages, its start, and its restart should it ever die. */
import { Worker } from 'node:worker_threads';
import type { ChainedEntry, LogEntry } from '../lib/log-chain.ts';
import type { Operation, Precondition } from './change.ts';
import { unavailable, uncertain } from './unavailable.ts';

export interface WriterOptions {
  readonly dataDir: string;
  readonly streamId: string;
  /** Whether entries come back with the outcome of their change, as they were chained. */
  readonly returnsEntries: boolean;
}

/** A change as it crosses to the thread: flat values, no classes. */
export interface WireChange {
  readonly operations: readonly Operation[];
  readonly entries: readonly LogEntry[];
}

export type WireRequest = readonly WireChange[] | 'probe' | 'scrub' | 'close';

export interface WireOutcome {
  readonly conflict?: Precondition;
  /** The engine could not do it; the text is for the operator. */
  readonly unavailable?: string;
  readonly entries?: readonly ChainedEntry[];
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
  /** Rejects with `unavailable` while another process reads what would have to go. */
  scrub(): Promise<void>;
  close(): Promise<void>;
}

interface Waiting {
  resolve(outcomes: readonly WireOutcome[]): void;
  reject(error: Error): void;
}

const threadFile = new URL(`./sqlite-writer${import.meta.url.slice(-3)}`, import.meta.url);

export interface StartOptions extends Omit<WriterOptions, 'streamId'> {
  readonly newStreamId: () => string;
}

/** Starts the thread and waits until the database is open and migrated. */
export async function startWriter({ newStreamId, ...fixed }: StartOptions): Promise<Writer> {
  let thread: Promise<Worker> | undefined;
  const waiting: Waiting[] = [];

  /** A new thread begins a new log stream: what the old one's last group did is not known here. */
  function start(): Promise<Worker> {
    const options: WriterOptions = { ...fixed, streamId: newStreamId() };
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
        reject(unavailable('the writer thread could not start'));
        for (const pending of waiting.splice(0))
          pending.reject(uncertain('the writer thread ended'));
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

  async function ask(request: 'probe' | 'scrub'): Promise<void> {
    const [outcome] = await send(request);
    if (outcome?.unavailable !== undefined) throw unavailable(outcome.unavailable);
  }

  thread = start();
  await thread;
  return {
    commit: send,
    probe: () => ask('probe'),
    scrub: () => ask('scrub'),
    close: async () => {
      const worker = await thread;
      if (!worker) return;
      const ended = new Promise((resolve) => worker.once('exit', resolve));
      worker.postMessage('close' satisfies WireRequest);
      await ended;
    },
  };
}
