/** Requests of one connection: each begins once the response to the one before is done. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Requests that may wait on one connection. A client that sends more without reading is cut off. */
const waitingMax = 64;

interface Turns {
  last: ServerResponse;
  waiting: number;
}

export interface PipelinedRequests {
  /** Calls `begin`, at once or later; never where the connection has ended by then, or is ending. */
  take(request: IncomingMessage, response: ServerResponse, begin: () => void): void;
  /** Whether all responses of the connection are done. @param socket under TLS the one below it. */
  isIdle(socket: Socket): boolean;
}

/**
 * Node hands over all requests that one read of a connection yields before it writes anything of the first response:
 * a thousand in 60 kB. If all began at once, a client that never reads would make the vault hold every response.
 */
export function createPipelining(): PipelinedRequests {
  const connections = new WeakMap<Socket, Turns>();
  return {
    take: ({ socket }, response, begin) => {
      const connection = connectionOf(socket);
      const turns = connections.get(connection);
      if (turns === undefined) {
        connections.set(connection, { last: response, waiting: 0 });
        begin();
        return;
      }
      const before = turns.last;
      turns.last = response;
      if (before.closed) begin();
      else if (turns.waiting === waitingMax) socket.destroy();
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
    isIdle: (socket) => connections.get(socket)?.last.closed !== false,
  };
}

/** Under TLS the connection below it, which is the one that a server counts. */
function connectionOf(socket: Socket): Socket {
  return (socket as Socket & { readonly _parent?: Socket | null })._parent ?? socket;
}
