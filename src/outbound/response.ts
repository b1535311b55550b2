/** The response to a forwarded request. A reader takes its body, or drops it. */
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Duplex, Readable } from 'node:stream';
import { endToEnd, valuesOf } from './end-to-end.ts';
import type { OutboundError } from './error.ts';
import { countOfResponse, ResponseBody } from './response-body.ts';

export interface ForwardResponse {
  readonly status: number;
  /** Alternating names and values as the host sent them, without hop-by-hop headers. */
  readonly headers: readonly string[];
  /**
   * The bytes that the host sent: a compressed body is not unpacked. It fails with an OutboundError unless it is
   * complete.
   */
  readonly body: Readable;
  /** Alternating names and values, after the body has ended. */
  readonly trailers: () => readonly string[];
  /** Set for an accepted handshake, whose body ends with it: where bytes of the caller go. */
  readonly upgraded?: Duplex;
  /**
   * Receives the body without a reader, so that the connection can be reused, unless the body exceeds the limits.
   * Call it in the turn of the event loop in which the response arrives. Resolves when the connection is free or
   * closed, and never rejects.
   */
  drop(limits: DropLimits): Promise<void>;
}

export interface DropLimits {
  readonly bytesMax: number;
  readonly timeoutMs: number;
}

export interface Received {
  readonly response: ForwardResponse;
  /** Whether the response has been received completely, even if it has not been read. */
  isWhole(): boolean;
  /** Passes the failure to the current or next reader of the body. */
  fail(failure: OutboundError): void;
}

/**
 * Headers are listed only on request. The stream of the body is created unless the response is dropped immediately,
 * because the connection and its slot are free only after the body is received, even if it has no reader.
 */
export function receive(client: ClientRequest, incoming: IncomingMessage): Received {
  const { statusCode: status = 0, rawHeaders } = incoming;
  let body: ResponseBody | undefined;
  let isDropped = false;
  let failure: OutboundError | undefined;

  function bodyOf(): ResponseBody {
    body ??= new ResponseBody(incoming, failure);
    return body;
  }

  setImmediate(() => {
    if (!isDropped) bodyOf();
  });
  return {
    response: {
      status,
      get headers() {
        const lengthless = status === 204 || valuesOf(rawHeaders, 'transfer-encoding').length > 0;
        return endToEnd(rawHeaders, lengthless ? ['content-length'] : []);
      },
      get body() {
        return bodyOf();
      },
      trailers: () => endToEnd(incoming.rawTrailers),
      drop: (limits) => {
        isDropped = true;
        return drop(client, incoming, limits);
      },
    },
    isWhole: () => incoming.complete,
    fail: (reason) => {
      failure ??= reason;
      body?.destroy(reason);
    },
  };
}

function drop(
  client: ClientRequest,
  incoming: IncomingMessage,
  { bytesMax, timeoutMs }: DropLimits,
): Promise<void> {
  // The request may have failed in the packet that brought the head, before any listener was added.
  if (client.closed) return Promise.resolve();
  let bytes = 0;
  const count = countOfResponse();
  incoming.on('data', (chunk: Uint8Array) => {
    bytes += chunk.length;
    if (bytes > bytesMax || !count.mayTake(chunk)) incoming.destroy();
  });
  return new Promise((resolve) => {
    const isOver = incoming.complete && client.writableFinished;
    const timer = isOver ? undefined : setTimeout(() => client.destroy(), timeoutMs);
    client.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
