/** A connection that its client wants to use for something else than requests. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { nodeHttp } from '../../base/node-http.ts';

export interface RequestedUpgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  /** What came behind the request. */
  readonly head: Buffer;
}

export interface BegunUpgrade {
  /** To the request. The connection ends with it, unless it is 101. */
  readonly response: ServerResponse;
  /** What the client sends from now on, once its request is accepted. */
  readonly open: () => Duplex;
}

/** `undefined` where a response to an earlier request is under way, or the client has not waited for the response. */
export function beginUpgrade({
  request,
  socket,
  head,
}: RequestedUpgrade): BegunUpgrade | undefined {
  // Node has left the connection to itself.
  socket.on('error', () => socket.destroy());
  if (head.length > 0) return undefined;
  const response = new nodeHttp.ServerResponse(request);
  response.shouldKeepAlive = false;
  try {
    response.assignSocket(request.socket);
  } catch {
    return undefined;
  }
  response.once('finish', () => request.socket.destroySoon());
  // It is read from now on: otherwise nobody would see that the client has left while the request waits. RFC 6455,
  // section 4.1, has clients wait for the response.
  const leave = () => {
    if (!response.headersSent) socket.destroy();
  };
  socket.on('data', leave).once('end', leave);
  const open = () => socket.off('data', leave).off('end', leave);
  return { response, open };
}
