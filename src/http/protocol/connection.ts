/** Responses to what never became a request: bytes that are not HTTP, headers without end, slow senders. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { nodeHttp } from '../../lib/node-http.ts';
import type { Log } from '../../lib/telemetry/log.ts';
import { connectionErrorOf, problemMediaType, problemOf } from './problem.ts';

export interface ConnectionStates {
  readonly isStreaming: (socket: Duplex) => boolean;
  /** True where the request that is still arriving has its response. */
  readonly isAnswered: (socket: Duplex) => boolean;
}

/** Notes requests whose response ended before their body did. */
export function createEarlyResponses() {
  const requests = new WeakMap<Duplex, IncomingMessage>();
  return {
    note: (request: IncomingMessage): void => {
      requests.set(request.socket, request);
    },
    isAnswered: (socket: Duplex): boolean => requests.get(socket)?.complete === false,
  };
}

/** Sends the client what was wrong as the last bytes of the connection, if it still reads. */
export function createRefuseConnection(
  log: Log,
  { isStreaming, isAnswered }: ConnectionStates,
): (error: Error & { readonly code?: string }, socket: Duplex) => void {
  return (error, socket) => {
    // A stream takes as long as it takes; it is cut off when nothing moves any more.
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && isStreaming(socket)) return;
    // What is written into a response that has begun would be taken for a part of it.
    const mayRead = error.code !== 'ECONNRESET' && socket.writable;
    // A second response would be taken for that of the client's next request, or of somebody else's.
    if (!mayRead || isStreaming(socket) || isAnswered(socket)) {
      socket.destroy();
      return;
    }
    const failure = connectionErrorOf(error.code ?? '');
    const problem = problemOf(failure);
    log.debug('connection refused', { status: problem.status, code: failure.code });
    const body = JSON.stringify(problem);
    const head = [
      `HTTP/1.1 ${problem.status} ${nodeHttp.STATUS_CODES[problem.status]}`,
      `content-type: ${problemMediaType}`,
      `content-length: ${Buffer.byteLength(body)}`,
      'cache-control: no-store',
      'x-content-type-options: nosniff',
      'connection: close',
    ];
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
  };
}
