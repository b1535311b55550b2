/** HTTP/2 in an opened connection: each stream is a request of HTTP/1.1 on a connection within the process. */
import type { IncomingMessage } from 'node:http';
import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import { type Duplex, pipeline } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { minute, second } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import { nodeHttp } from '../../base/node-http.ts';
import { problemMediaType, problemOf } from '../protocol/problem.ts';

/** What one session may have, for as long as it lasts unless said otherwise. */
const http2Limits = {
  streams: 100,
  /** The name and the value of each field, and {@link fieldOverheadBytes}. */
  headerBytes: 16_384,
  headers: 128,
  /** What each stream may send before the vault reads it. */
  windowBytes: 65_535,
  /** Streams that ended before their responses. */
  abandoned: 100,
  /** Settings of one frame, and pings that wait for their acknowledgment. */
  waitingFrames: 10,
  /** In each {@link checkMs}: frames that are no body, and belong to no request. */
  controlBytes: 65_536,
} as const;

/** RFC 9113, section 6.5.2. */
const fieldOverheadBytes = 32;

const checkMs = second / 2;
/** A stream of which the client reads nothing for so long ends, as a connection of HTTP/1.1 does. */
const unreadMsMax = 30 * second;
/** A session without a stream ends. */
const idleMsMax = minute;

export interface OpenedHttp2 {
  /** The connection below TLS. */
  readonly below: Duplex & { readonly bytesRead?: number; readonly bytesWritten?: number };
  /** Makes a connection for one request. */
  readonly open: () => Duplex;
  /** Called again and again; ends the session where nothing may be sent on it any more. */
  readonly check: (end: () => void) => void;
}

/** The session ends with its connection. */
export function serveHttp2(secured: TLSSocket, { below, open, check }: OpenedHttp2): void {
  const http2 = process.getBuiltinModule('node:http2');
  const { constants } = http2;
  // Only a server of TLS says so, and Node's HTTP/2 would wait for it.
  Object.assign(secured, { secureConnecting: false });
  const session = http2.performServerHandshake(secured, {
    settings: {
      maxConcurrentStreams: http2Limits.streams,
      maxHeaderListSize: http2Limits.headerBytes,
      initialWindowSize: http2Limits.windowBytes,
      enablePush: false,
    },
    maxHeaderListPairs: http2Limits.headers,
    maxSettings: http2Limits.waitingFrames,
    maxOutstandingPings: http2Limits.waitingFrames,
    maxSessionInvalidFrames: http2Limits.abandoned,
    streamResetBurst: http2Limits.abandoned,
  }) as ServerHttp2Session;
  const exchanges = new Set<Exchange>();
  let idleSince = performance.now();
  let abandoned = 0;
  let bodyBytes = 0;
  let requests = 0;
  let before = bytesOf(below);

  const calm = () => session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);

  /** What the client sends that is no body, beyond what requests and what it reads need. */
  function isFlood(): boolean {
    const { read, written } = bytesOf(below);
    const due =
      2 * bodyBytes + 2 * http2Limits.headerBytes * requests + (written - before.written) / 8;
    const control = read - before.read - due;
    before = { read, written };
    bodyBytes = 0;
    requests = 0;
    return control > http2Limits.controlBytes;
  }

  const timer = setInterval(() => {
    const now = performance.now();
    for (const exchange of exchanges) {
      if (exchange.isUnread(now)) exchange.stream.close(constants.NGHTTP2_CANCEL);
    }
    if (isFlood()) calm();
    else if (exchanges.size === 0 && now - idleSince >= idleMsMax) session.close();
    else check(() => session.destroy());
  }, checkMs).unref();
  session.once('close', () => clearInterval(timer));
  session.on('error', () => session.destroy());
  session.on('stream', (stream, _headers, _flags, rawHeaders) => {
    const exchange = new Exchange(stream);
    exchanges.add(exchange);
    requests += 1;
    stream.on('error', () => undefined);
    stream.on('data', ({ length }: Buffer) => {
      bodyBytes += length;
    });
    stream.once('close', () => {
      exchanges.delete(exchange);
      if (exchanges.size === 0) idleSince = performance.now();
      if (exchange.isDone) return;
      abandoned += 1;
      if (abandoned > http2Limits.abandoned) calm();
    });
    exchange.run(rawHeaders as unknown as readonly string[], open);
  });
}

/** Also of a connection of TLS within another one. */
function bytesOf({ bytesRead = 0, bytesWritten = 0 }: OpenedHttp2['below']) {
  return { read: bytesRead, written: bytesWritten };
}

/** A stream, and the request that is made of it. */
class Exchange {
  readonly stream: ServerHttp2Stream;
  /** Whether all of the response was given to the stream. */
  isDone = false;
  #receivedBytes = 0;
  #leftBytes = 0;
  #since = performance.now();

  constructor(stream: ServerHttp2Stream) {
    this.stream = stream;
  }

  /** Whether the client has left what waits for it where it is for too long. */
  isUnread(now: number): boolean {
    const { writableLength } = this.stream;
    const left = this.#receivedBytes - writableLength;
    if (writableLength === 0 || left > this.#leftBytes) {
      this.#leftBytes = left;
      this.#since = now;
    }
    return now - this.#since >= unreadMsMax;
  }

  run(rawHeaders: readonly string[], open: () => Duplex): void {
    const { stream } = this;
    if (stream.destroyed) return;
    const connection = open();
    stream.once('close', () => connection.destroy());
    try {
      const request = nodeHttp.request({
        ...headOf(rawHeaders, stream.endAfterHeaders),
        createConnection: () => connection,
        maxHeaderSize: responseHeaderBytesMax,
      });
      request.on('error', () => stream.close(internalError));
      request.once('continue', () => stream.additionalHeaders({ ':status': 100 }));
      request.once('response', (response) => this.#respond(response));
      request.flushHeaders();
      stream.pipe(request, { end: false });
      // A stream that was reset ends as well, without the rest of its body.
      stream.once('end', () => {
        if (!stream.closed) request.end();
      });
    } catch (error) {
      connection.destroy();
      this.#refuse(error);
    }
  }

  #respond(response: IncomingMessage): void {
    const { stream } = this;
    try {
      stream.respond(
        { ':status': response.statusCode, ...withoutConnection(response.headers) },
        { waitForTrailers: true },
      );
    } catch {
      stream.close(internalError);
      return;
    }
    stream.once('wantTrailers', () => stream.sendTrailers(withoutConnection(response.trailers)));
    // The client may go on sending what nobody reads.
    stream.once('finish', () => {
      if (!stream.readableEnded) stream.close(noError);
    });
    response.once('end', () => {
      this.isDone = true;
    });
    if (stream.writableEnded) response.resume();
    else {
      response.on('data', ({ length }: Buffer) => {
        this.#receivedBytes += length;
      });
      pipeline(response, stream, () => undefined);
    }
  }

  #refuse(error: unknown): void {
    const failure =
      error instanceof VaultError
        ? error
        : new VaultError('malformed_request', { public: 'The request is not valid HTTP.' });
    const problem = problemOf(failure);
    this.isDone = true;
    this.stream.respond({ ':status': problem.status, 'content-type': problemMediaType });
    this.stream.end(JSON.stringify(problem));
  }
}

/** RFC 9113, section 7. */
const noError = 0;
const internalError = 2;
/** Of responses, which the vault itself has written. */
const responseHeaderBytesMax = 131_072;

/** Of a connection of HTTP/1.1 (RFC 9113, section 8.2.2). */
const connectionHeader =
  /^(?:connection|keep-alive|proxy-connection|te|transfer-encoding|upgrade|http2-settings)$/i;

function withoutConnection<T extends object>(headers: T): T {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !connectionHeader.test(name)),
  ) as T;
}

/**
 * The head of the same request in HTTP/1.1. Its length is always said, and every name of a host that was sent is in it,
 * so that whoever reads it refuses what contradicts itself.
 * @throws VaultError `malformed_request`, or `headers_too_large`
 */
function headOf(rawHeaders: readonly string[], isWhole: boolean) {
  const pseudo = new Map<string, string>();
  const headers: string[] = [];
  const cookies: string[] = [];
  const hosts = new Set<string>();
  let bytes = 0;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = [rawHeaders[at], rawHeaders[at + 1]];
    bytes += name.length + value.length + fieldOverheadBytes;
    if (name === ':authority' || name === 'host') hosts.add(value);
    else if (name.startsWith(':')) pseudo.set(name, value);
    else if (name === 'cookie') cookies.push(value);
    else if (!connectionHeader.test(name)) headers.push(name, value);
  }
  // The limit of the session holds only once the client has acknowledged it.
  if (bytes > http2Limits.headerBytes) {
    throw new VaultError('headers_too_large', { public: 'The headers exceed the limit.' });
  }
  const method = pseudo.get(':method') ?? '';
  const path = pseudo.get(':path') ?? '';
  if (method === 'CONNECT' || pseudo.get(':scheme') !== 'https' || path === '') {
    throw new VaultError('malformed_request', {
      public: 'A stream has a request of the host of its connection, with the scheme https.',
    });
  }
  for (const host of hosts) headers.unshift('host', host);
  // RFC 9113, section 8.2.3.
  if (cookies.length > 0) headers.push('cookie', cookies.join('; '));
  const hasLength = headers.some((name, at) => at % 2 === 0 && name === 'content-length');
  if (!hasLength && !isWhole) headers.push('transfer-encoding', 'chunked');
  else if (!hasLength && method !== 'GET' && method !== 'HEAD') headers.push('content-length', '0');
  return { method, path, headers };
}
