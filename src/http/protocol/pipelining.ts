/** Requests of one connection: each begins once the response to the one before is done. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Requests that may wait on one connection. A client that sends more without reading is cut off. */
const waitingMax = 64;

interface Turns {
  requests: number;
  last: ServerResponse;
  waiting: number;
}

export interface PipelinedRequests {
  /** Calls `begin`, at once or later; never where the connection has ended by then, or is ending. */
  take(request: IncomingMessage, response: ServerResponse, begin: () => void): void;
  /** Whether all responses of the connection are done. @param socket under TLS the one below it. */
  isIdle(socket: Socket): boolean;
  /** How many requests of the connection have come. @param socket as above. */
  requestsOf(socket: Socket): number;
}

export interface PipeliningOptions {
  /** Called with each request that was sent before the response to the one before: it may never begin. */
  readonly onAhead?: (request: IncomingMessage) => void;
}

/**
 * Node hands over all requests that one read of a connection yields before it writes anything of the first response:
 * a thousand in 60 kB. If all began at once, a client that never reads would make the vault hold every response.
 */
export function createPipelining({ onAhead = nothing }: PipeliningOptions = {}): PipelinedRequests {
  const connections = new WeakMap<Socket, Turns>();
  const streams = new WeakMap<Socket, { requests: number; open: number }>();

  function countStream(within: Socket, response: ServerResponse): void {
    const counted = streams.get(within) ?? { requests: 0, open: 0 };
    streams.set(within, counted);
    counted.requests += 1;
    counted.open += 1;
    response.once('close', () => {
      counted.open -= 1;
    });
  }

  return {
    take: (request, response, begin) => {
      const { socket } = request;
      const { within } = socket as SocketOfStream;
      if (within) countStream(within, response);
      const connection = connectionOf(socket);
      const turns = connections.get(connection);
      if (turns === undefined) {
        connections.set(connection, { requests: 1, last: response, waiting: 0 });
        begin();
        return;
      }
      const before = turns.last;
      turns.last = response;
      turns.requests += 1;
      if (before.closed) {
        begin();
        return;
      }
      onAhead(request);
      if (turns.waiting === waitingMax) cut(socket);
      else {
        turns.waiting += 1;
        before.once('close', () => {
          turns.waiting -= 1;
          if (socket.destroyed) return;
          // On a connection that is ending, the response has no socket: it would never end, nor release what it holds.
          if (response.socket) begin();
          else socket.destroySoon();
        });
      }
    },
    isIdle: (socket) =>
      connections.get(socket)?.last.closed !== false && !streams.get(socket)?.open,
    requestsOf: (socket) =>
      (connections.get(socket)?.requests ?? 0) + (streams.get(socket)?.requests ?? 0),
  };
}

function nothing(): void {}

/** The connection of one request, which came as a stream of another connection. */
interface SocketOfStream extends Socket {
  readonly within?: Socket | undefined;
}

interface SocketOfParser extends Socket {
  readonly parser?: { onIncoming: unknown } | null;
}

/** What the parser takes for an upgrade, after which it reads nothing as HTTP. */
const noMoreHttp = 2;

/**
 * Destroying the connection does not stop its parser: it would hand over thousands more requests of the same read,
 * each of which costs as much as a small response. Pausing the parser has no effect while it runs.
 */
function cut(socket: SocketOfParser): void {
  if (socket.parser) socket.parser.onIncoming = () => noMoreHttp;
  socket.destroy();
}

/** Under TLS the connection below it, which is the one that a server counts. */
function connectionOf(socket: Socket): Socket {
  return (socket as Socket & { readonly _parent?: Socket | null })._parent ?? socket;
}
