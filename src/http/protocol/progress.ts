/** Clients that make no progress: cut off, whether they read or send too slowly, byte by byte or not at all. */
import type { Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Log } from '../../base/telemetry/log.ts';
import { type CutOff, tooSlowStatus } from './cut-off.ts';

/** A client that reads or sends less than this, and less than a line, in its time makes no progress. */
export const progressBytesMin = 1_024;

const newline = 0x0a;

export interface ProgressOptions {
  /** How long a client may take for its next progress. */
  readonly patienceMs: number;
  /** How often all connections are looked at. */
  readonly checkMs: number;
  readonly log: Log;
  readonly cutOff: CutOff;
}

export interface ClientProgress {
  /**
   * The body as it arrives. Its client is cut off when it takes too long for a line or
   * {@link progressBytesMin} bytes; time in which nothing waits to be sent does not count.
   */
  sentBy(socket: Duplex, body: AsyncIterable<Buffer>): AsyncGenerator<Buffer>;
  /** Ends every connection, whatever its state, also in a TLS handshake. */
  cutAll(): void;
}

/** One timer for all connections of the server, for as long as it listens. */
export function watchProgress(
  server: Server,
  { patienceMs, checkMs, log, cutOff }: ProgressOptions,
): ClientProgress {
  const readers = new Map<Socket, Reader>();
  const senders = new Set<SendingClient>();

  // Under TLS too this is the connection below it, which knows what has really left.
  server.on('connection', (socket: Socket) => {
    readers.set(socket, { left: 0, since: performance.now() });
    socket.once('close', () => readers.delete(socket));
  });
  const timer = setInterval(() => {
    const now = performance.now();
    for (const [socket, reader] of readers) {
      if (readsTooSlowly(socket, reader, now)) cut(socket, 'does not read');
    }
    for (const sender of senders) {
      if (waitedMs(sender, now) >= patienceMs) cut(sender.socket, 'does not send');
    }
  }, checkMs);
  timer.unref();
  server.once('close', () => clearInterval(timer));

  function readsTooSlowly(socket: Socket, reader: Reader, now: number): boolean {
    const { left, waiting } = outgoing(socket);
    if (waiting === 0 || left - reader.left >= progressBytesMin) {
      reader.left = left;
      reader.since = now;
    }
    return now - reader.since >= patienceMs;
  }

  function cut(socket: Duplex, reason: string): void {
    log.debug('connection cut', { reason: `the client ${reason}` });
    cutOff.note(socket, tooSlowStatus);
    socket.destroy();
  }

  return {
    cutAll: () => {
      cutOff.noteAll();
      for (const socket of readers.keys()) cut(socket, 'is not done while the server stops');
    },
    sentBy: async function* (socket, body) {
      const sender: SendingClient = { socket, bytes: 0, waitedMs: 0, askedAt: performance.now() };
      senders.add(sender);
      try {
        for await (const chunk of body) {
          receive(sender, chunk);
          yield chunk;
          sender.askedAt = performance.now();
        }
      } finally {
        senders.delete(sender);
      }
    },
  };
}

/** When a client last made progress in reading, and how many bytes had left by then. */
interface Reader {
  left: number;
  since: number;
}

interface SendingClient {
  readonly socket: Duplex;
  /** Since its last progress: the bytes it sent, and how long the vault waited for it. */
  bytes: number;
  waitedMs: number;
  /** When the vault began to wait for it; `undefined` while the vault works on what it sent. */
  askedAt: number | undefined;
}

function receive(sender: SendingClient, chunk: Buffer): void {
  sender.waitedMs = waitedMs(sender, performance.now());
  sender.askedAt = undefined;
  sender.bytes += chunk.length;
  if (sender.bytes < progressBytesMin && !chunk.includes(newline)) return;
  sender.bytes = 0;
  sender.waitedMs = 0;
}

function waitedMs(sender: SendingClient, now: number): number {
  return sender.waitedMs + (sender.askedAt === undefined ? 0 : now - sender.askedAt);
}

/** As libuv counts. Node's own timeout for idle sockets uses this too; the public properties count writes. */
interface SocketHandle {
  readonly bytesWritten: number;
  readonly writeQueueSize: number;
}

/** Bytes that the operating system has taken, and bytes that wait for it to take them. */
function outgoing(socket: Socket): { readonly left: number; readonly waiting: number } {
  const handle = (socket as Socket & { readonly _handle?: SocketHandle | null })._handle;
  if (!handle) return { left: 0, waiting: 0 };
  const { bytesWritten, writeQueueSize } = handle;
  return { left: bytesWritten - writeQueueSize, waiting: writeQueueSize };
}
