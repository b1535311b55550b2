/** This side of the writer thread: its start, the ways to it, and its restart should it ever die. */
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import type { Epochs } from '../../lib/epochs.ts';
import { entryPointUrl } from '../../lib/installation/entry-points.ts';
import type { ChainedEntry } from '../../lib/log-chain/entries.ts';
import type { StoreHealth } from '../store.ts';
import { unavailable, uncertain } from '../unavailable.ts';
import { type WireOutcome, type WriterLine, writerLine } from './wire.ts';

export interface WriterOptions {
  readonly dataDir: string;
  readonly streamId: string;
  /** Whether entries come back after each commit, as they were chained. */
  readonly returnsEntries: boolean;
  readonly epochs: SharedArrayBuffer;
  /** What stays free on the disk; see `room.ts`. */
  readonly freeBytesMin: number | undefined;
}

/** What the thread is asked for besides commits. Through the port come groups of another thread. */
export type WriterRequest = 'probe' | 'scrub' | 'close' | { readonly port: MessagePort };

/** `failed` is the only message of a thread that could not open the database. */
export type WriterMessage =
  | 'ready'
  | { readonly failed: string; readonly name: string }
  | { readonly outcome: WireOutcome }
  | { readonly entries: readonly ChainedEntry[] };

export interface Writer {
  /** One outcome for each change, in their order, once the group is durable. */
  commit: WriterLine['commit'];
  /** For another thread, to make a {@link writerLine} of. It is closed when the writer thread ends. */
  port(): Promise<MessagePort>;
  /** Rejects with `unavailable` unless the database can be written. */
  probe(): Promise<StoreHealth>;
  /** Rejects with `unavailable` while another process reads what would have to go. */
  scrub(): Promise<void>;
  close(): Promise<void>;
}

export interface StartOptions {
  readonly dataDir: string;
  readonly newStreamId: () => string;
  readonly epochs: Epochs;
  readonly freeBytesMin?: number | undefined;
  /** Gets the entries of each commit once they are durable, in their order. */
  readonly onCommitted?: ((entries: readonly ChainedEntry[]) => void) | undefined;
}

/**
 * Starts the thread and waits until the database is open and migrated. Rejects with what the thread
 * failed with; should it die and not come up again later, requests fail with `unavailable`.
 */
export async function startWriter(options: StartOptions): Promise<Writer> {
  let thread: Promise<WriterThread> | undefined;
  let closed = false;

  /** A new thread begins a new log stream: what the old one's last group did is not known here. */
  function start(): Promise<WriterThread> {
    const forget = () => {
      if (thread === own) thread = undefined;
    };
    const own = startThread(options, forget);
    own.catch(forget);
    thread = own;
    return own;
  }

  async function running(): Promise<WriterThread> {
    if (closed) throw unavailable('the store is closed');
    try {
      return await (thread ?? start());
    } catch (error) {
      throw unavailable(error instanceof Error ? error.message : 'no writer thread', error);
    }
  }

  async function ask(request: 'probe' | 'scrub'): Promise<StoreHealth> {
    const outcome = await (await running()).send(request);
    if (outcome.unavailable !== undefined) throw unavailable(outcome.unavailable);
    return { isShort: outcome.isShort === true };
  }

  await start();
  return {
    commit: async (group) => (await running()).line.commit(group),
    port: async () => (await running()).port(),
    probe: () => ask('probe'),
    scrub: async () => void (await ask('scrub')),
    close: async () => {
      closed = true;
      const last = await thread?.catch(() => undefined);
      await last?.close();
    },
  };
}

interface WriterThread {
  /** Of this side. */
  readonly line: WriterLine;
  port(): MessagePort;
  send(request: 'probe' | 'scrub'): Promise<WireOutcome>;
  /** Resolves once what was sent is done and the thread has ended. */
  close(): Promise<void>;
}

interface PendingRequest {
  resolve(outcome: WireOutcome): void;
  reject(error: Error): void;
}

function startThread(
  { dataDir, newStreamId, epochs, freeBytesMin, onCommitted }: StartOptions,
  onEnd: () => void,
): Promise<WriterThread> {
  const workerData: WriterOptions = {
    dataDir,
    streamId: newStreamId(),
    returnsEntries: onCommitted !== undefined,
    epochs: epochs.memory,
    freeBytesMin,
  };
  const worker = new Worker(entryPointUrl('store/sqlite/writer'), { name: 'writer', workerData });
  const waiting: PendingRequest[] = [];
  const port = () => {
    const { port1, port2 } = new MessageChannel();
    worker.postMessage({ port: port2 } satisfies WriterRequest, [port2]);
    return port1;
  };
  const line = writerLine(port(), () => undefined);
  const thread: WriterThread = {
    line,
    port,
    send: (request) =>
      new Promise((resolve, reject) => {
        worker.postMessage(request satisfies WriterRequest);
        waiting.push({ resolve, reject });
      }),
    close: () =>
      new Promise((resolve) => {
        worker.once('exit', () => resolve());
        worker.postMessage('close' satisfies WriterRequest);
      }),
  };
  return new Promise((resolve, reject) => {
    worker.on('message', (message: WriterMessage) => {
      if (message === 'ready') resolve(thread);
      else if ('entries' in message) onCommitted?.(message.entries);
      else if ('outcome' in message) waiting.shift()?.resolve(message.outcome);
      else reject(Object.assign(new Error(message.failed), { name: message.name }));
    });
    worker.on('error', reject);
    worker.on('exit', () => {
      onEnd();
      line.end();
      reject(unavailable('the writer thread could not start'));
      for (const pending of waiting) pending.reject(uncertain('the writer thread ended'));
    });
  });
}
