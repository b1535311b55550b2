/** This side of the writer thread: its start, the ways to it, and its restart should it ever die. */
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import type { Epochs } from '../../base/epochs.ts';
import { entryPointUrl } from '../../base/installation/entry-points.ts';
import { createThreadRpc, type ThreadRpc } from '../../base/thread-rpc.ts';
import type { ChainedEntry } from '../log-chain/entries.ts';
import type { StoreHealth } from '../store.ts';
import { unavailable, uncertain } from '../unavailable.ts';
import { type WriterLine, writerLine } from './wire.ts';

export interface WriterOptions {
  readonly dataDir: string;
  readonly streamId: string;
  /** Whether entries come back after each commit, as they were chained. */
  readonly returnsEntries: boolean;
  readonly epochs: SharedArrayBuffer;
  /** The bytes that stay free on the disk; see `room.ts`. */
  readonly freeBytesMin: number | undefined;
}

/** Requests to the thread other than commits. */
export interface WriterCalls {
  /** Fails where the database cannot be written. */
  probe(): StoreHealth;
  /** Fails while another process reads what would have to go. */
  scrub(): void;
  /** Through the port come groups of another thread. */
  addPort(port: MessagePort): void;
  /** Once what was sent before is done, the thread ends. */
  close(): void;
}

/** Messages that the thread sends unasked. */
export interface WriterEvents {
  /** The database is open and migrated, or the thread ends because it is not. */
  opened(failure: OpenFailure | undefined): void;
  /** The entries of a commit, as they were chained. */
  committed(entries: readonly ChainedEntry[]): void;
}

interface OpenFailure {
  readonly message: string;
  readonly name: string;
}

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

  /** @throws VaultError `unavailable` with what the engine says. */
  async function ask<N extends 'probe' | 'scrub'>(name: N): Promise<ReturnType<WriterCalls[N]>> {
    const { rpc } = await running();
    try {
      return await rpc.call(name, undefined);
    } catch (error) {
      throw unavailable(error instanceof Error ? error.message : `${name} failed`, error);
    }
  }

  await start();
  return {
    commit: async (group) => (await running()).line.commit(group),
    port: async () => (await running()).port(),
    probe: () => ask('probe'),
    scrub: () => ask('scrub'),
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
  readonly rpc: ThreadRpc<WriterCalls>;
  port(): MessagePort;
  /** Resolves once what was sent is done and the thread has ended. */
  close(): Promise<void>;
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
  return new Promise((resolve, reject) => {
    const rpc = createThreadRpc<WriterCalls, WriterEvents>(worker, {
      opened: (failure) => {
        if (failure === undefined) resolve(thread);
        else reject(Object.assign(new Error(failure.message), { name: failure.name }));
      },
      committed: (entries) => onCommitted?.(entries),
    });
    const port = () => {
      const { port1, port2 } = new MessageChannel();
      rpc.notify('addPort', port2);
      return port1;
    };
    const line = writerLine(port(), () => undefined);
    const thread: WriterThread = {
      line,
      rpc,
      port,
      close: () =>
        new Promise((ended) => {
          worker.once('exit', () => ended());
          rpc.notify('close', undefined);
        }),
    };
    worker.on('error', reject);
    worker.on('exit', () => {
      onEnd();
      line.end();
      reject(unavailable('the writer thread could not start'));
      rpc.end(uncertain('the writer thread ended'));
    });
  });
}
