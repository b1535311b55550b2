/** Requests of one connection: each begins once the response to the one before is done. */
import type { IncomingMessage, ServerResponse } from 'node:http';

/** So many may wait on a connection. Who sends more without reading is cut off. */
const waitingMax = 64;

interface Turns {
  last: ServerResponse;
  waiting: number;
}

/** Calls `begin`, at once or later; never where the connection has ended by then. */
export type TakeTurn = (
  request: IncomingMessage,
  response: ServerResponse,
  begin: () => void,
) => void;

/**
 * Node hands over all requests that one read of a connection brings, before anything of the first response is
 * written: a thousand in 60 kB. Were they begun then, all their responses would be held for a client that reads none.
 */
export function createTurns(): TakeTurn {
  const connections = new WeakMap<IncomingMessage['socket'], Turns>();
  return ({ socket }, response, begin) => {
    const turns = connections.get(socket);
    if (turns === undefined) {
      connections.set(socket, { last: response, waiting: 0 });
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
        if (!socket.destroyed) begin();
      });
    }
  };
}
