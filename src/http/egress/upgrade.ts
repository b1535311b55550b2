/** A connection that its client wants to use for something else than requests. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Duplex, PassThrough } from 'node:stream';
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
  /** What the client sends behind the request. */
  readonly sent: PassThrough;
}

/** `undefined` where a response to an earlier request is under way. */
export function beginUpgrade({
  request,
  socket,
  head,
}: RequestedUpgrade): BegunUpgrade | undefined {
  // Node has left the connection to itself.
  socket.on('error', () => socket.destroy());
  const response = new nodeHttp.ServerResponse(request);
  response.shouldKeepAlive = false;
  try {
    response.assignSocket(request.socket);
  } catch {
    return undefined;
  }
  response.once('finish', () => request.socket.destroySoon());
  const sent = new PassThrough();
  if (head.length > 0) sent.write(head);
  // It is read from now on: otherwise nobody would see that the client has left while the request waits.
  socket.once('end', () => {
    if (!response.headersSent) socket.destroy();
  });
  socket.pipe(sent);
  return { response, sent };
}
