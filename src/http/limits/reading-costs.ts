/**
 * What bytes cost that are no request, or not yet: reading a connection, TLS records, and parsing heads. No request
 * pays for it, and nothing tells which connection caused it, so the connections that sent something share it.
 */
import type { Socket } from 'node:net';

/** How often the time is shared out. */
export const readingCheckMs = 50;
/** Below this, in milliseconds, it is not worth looking at all connections. */
const unpaidMsMin = 2;
/** A connection that has sent something in so many checks without a request is one that drips. */
const dripsMax = 4;

/** As libuv counts. The property of the socket counts other bytes under TLS. */
interface ReadingHandle {
  readonly bytesRead: number;
}

interface ReadingConnection {
  readonly address: string;
  bytes: number;
  requests: number;
  drips: number;
}

export interface ReadingCostsOptions {
  /** Processor time of this thread, in milliseconds, that no request has paid for. */
  readonly unpaidMs: () => number;
  /** Charges an address. False where it has used more than its part. */
  readonly charge: (address: string, ms: number) => boolean;
  /** How many requests have come on the connection, and whether none of them is being handled. */
  readonly requestsOf: (socket: Socket) => number;
  readonly isIdle: (socket: Socket) => boolean;
  /** Ends a connection whose address has used more than its part. */
  readonly end: (socket: Socket) => void;
}

export interface ReadingCosts {
  watch(socket: Socket, address: string): void;
  /** Shares out the time since the last call. */
  check(): void;
}

export function createReadingCosts(options: ReadingCostsOptions): ReadingCosts {
  const { unpaidMs, charge, requestsOf, isIdle, end } = options;
  const connections = new Map<Socket, ReadingConnection>();
  let before = unpaidMs();

  /** Whether the connection has sent something since it was asked the last time. */
  function hasSent(socket: Socket, connection: ReadingConnection): boolean {
    const bytes = bytesReadOf(socket);
    if (bytes === connection.bytes) return false;
    connection.bytes = bytes;
    const requests = requestsOf(socket);
    const drips = requests === connection.requests && isIdle(socket);
    connection.requests = requests;
    connection.drips = drips ? connection.drips + 1 : 0;
    return true;
  }

  return {
    watch: (socket, address) => {
      connections.set(socket, { address, bytes: 0, requests: 0, drips: 0 });
      socket.once('close', () => connections.delete(socket));
    },
    check: () => {
      const now = unpaidMs();
      const unpaid = now - before;
      before = now;
      if (unpaid < unpaidMsMin) return;
      const sending = [...connections].filter((one) => hasSent(...one));
      const ofEach = new Map<string, number>();
      for (const [, { address }] of sending) ofEach.set(address, (ofEach.get(address) ?? 0) + 1);
      const over = new Set<string>();
      for (const [address, count] of ofEach) {
        if (!charge(address, (unpaid * count) / sending.length)) over.add(address);
      }
      for (const [socket, { address, drips }] of sending) {
        if (drips >= dripsMax && over.has(address)) end(socket);
      }
    },
  };
}

function bytesReadOf(socket: Socket): number {
  return (socket as Socket & { readonly _handle?: ReadingHandle | null })._handle?.bytesRead ?? 0;
}
