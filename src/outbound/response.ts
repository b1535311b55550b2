/** The response to a forwarded request, of which a reader takes the body, or nobody wants it. */
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { endToEnd, valuesOf } from './end-to-end.ts';
import type { OutboundError } from './error.ts';
import { ResponseBody } from './response-body.ts';

export interface ForwardResponse {
  readonly status: number;
  /** As sent, names and values in turn, without those of the hop. */
  readonly headers: readonly string[];
  /** As sent: a compressed body is not unpacked. It fails with an OutboundError unless it is whole. */
  readonly body: Readable;
  /** Names and values in turn, once the body has ended. */
  readonly trailers: () => readonly string[];
  /**
   * In place of reading the body, in the turn in which the answer is there: receives it, so that the connection can
   * be used again, unless it has more bytes or takes longer. Resolves once the connection is free or closed, and
   * never fails.
   */
  drop(limits: DropLimits): Promise<void>;
}

export interface DropLimits {
  readonly bytesMax: number;
  readonly timeoutMs: number;
}

export interface Received {
  readonly answer: ForwardResponse;
  /** Whether all of it has been received, though perhaps not read. */
  isWhole(): boolean;
  /** Whoever reads the body, or is about to, learns of it. */
  fail(failure: OutboundError): void;
}

/**
 * The list of headers is made for those who ask for it, the stream of the body unless the response is dropped at
 * once: only what is received lets go of the connection, and of its slot, also where nobody reads it.
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
    answer: {
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
  // It may have failed in the packet that brought the head, before anybody could listen.
  if (client.closed) return Promise.resolve();
  let bytes = 0;
  incoming.on('data', (chunk: Uint8Array) => {
    bytes += chunk.length;
    if (bytes > bytesMax) incoming.destroy();
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
