/**
 * Connections that do not simply go on: what never became a request gets a response, and a body that is still
 * arriving when its response is ready is discarded.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { second } from '../../base/clock.ts';
import type { VaultError } from '../../base/errors.ts';
import { nodeHttp } from '../../base/node-http.ts';
import type { Log } from '../../base/telemetry/log.ts';
import type { CutOff } from './cut-off.ts';
import { connectionErrorOf, problemMediaType, problemOf } from './problem.ts';

export interface ConnectionStates {
  readonly isStreaming: (socket: Duplex) => boolean;
  /** True where the request that is still arriving has its response. */
  readonly hasResponse: (socket: Duplex) => boolean;
  /** Why any other method than those of the path is refused. */
  readonly refusalOf: (url: string) => VaultError | undefined;
  readonly cutOff: Pick<CutOff, 'note'>;
}

interface ParserError extends Error {
  readonly code?: string;
  /** The last packet read. */
  readonly rawPacket?: Buffer;
}

/** Records requests whose response ended before their body did. */
export function createEarlyResponses() {
  const requests = new WeakMap<Duplex, IncomingMessage>();
  return {
    note: (request: IncomingMessage): void => {
      requests.set(request.socket, request);
    },
    hasResponse: (socket: Duplex): boolean => requests.get(socket)?.complete === false,
  };
}

/** What Node and its parser say of a client that ended the connection in the middle of a request. */
const clientLeft: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'HPE_INVALID_EOF_STATE']);

/** Sends the client the error as the last bytes of the connection, if the client still reads. */
export function createRefuseConnection(
  log: Log,
  { isStreaming, hasResponse, refusalOf, cutOff }: ConnectionStates,
): (error: ParserError, socket: Duplex) => void {
  return (error, socket) => {
    // A stream takes as long as it takes; it is cut off when nothing moves any more.
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && isStreaming(socket)) return;
    // Bytes written into a response that has begun would be taken for a part of it.
    const mayRead = error.code !== 'ECONNRESET' && socket.writable;
    // The client would take a second response for that of its next request, or of another client's.
    const url = urlOfUnknownMethod(error);
    const failure = (url !== undefined && refusalOf(url)) || connectionErrorOf(error.code ?? '');
    const problem = problemOf(failure);
    if (!clientLeft.has(error.code ?? '')) cutOff.note(socket, problem.status);
    if (!mayRead || isStreaming(socket) || hasResponse(socket)) {
      socket.destroy();
      return;
    }
    log.debug('connection refused', { status: problem.status, code: failure.code });
    const body = JSON.stringify(problem);
    const head = [
      `HTTP/1.1 ${problem.status} ${nodeHttp.STATUS_CODES[problem.status]}`,
      `content-type: ${problemMediaType}`,
      `content-length: ${Buffer.byteLength(body)}`,
      'cache-control: no-store',
      'x-content-type-options: nosniff',
      'connection: close',
      ...Object.entries(failure.headers ?? {}).map(([name, value]) => `${name}: ${value}`),
    ];
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
  };
}

const requestLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}) (\/[!-~]*) HTTP\/1\.[01]\r\n/;

/** The parser knows a list of methods, and takes a request with another one for something else than HTTP. */
function urlOfUnknownMethod({ code, rawPacket }: ParserError): string | undefined {
  if (code !== 'HPE_INVALID_METHOD') return undefined;
  const [, method = '', url] = requestLine.exec(rawPacket?.toString('latin1') ?? '') ?? [];
  // Otherwise a request was read, and the error follows it in the same packet.
  return nodeHttp.METHODS.includes(method) ? undefined : url;
}

/**
 * How much of a body is read and discarded before the response, and how long that may take. Beyond it, the connection
 * is not read any more: a proxy may send the next request after an incomplete body, and the vault would take that
 * request for the rest of the body.
 */
export const discarded = { bytesMax: 65_536, msMax: second } as const;

/**
 * The same after a response that ends the connection. Data that arrives at a closed connection resets it, and the
 * client, which may send all of its body before it reads, would lose the response.
 */
export const lingering = { bytesMax: 8 * 1_048_576, msMax: second } as const;

export interface DiscardLimits {
  readonly bytesMax: number;
  readonly msMax: number;
}

export function isUnread({ complete, destroyed, headers }: IncomingMessage): boolean {
  if (complete || destroyed) return false;
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
  return encoding !== undefined || length !== '0';
}

/** Whether the body is so short that reading it is worth the time. */
export function mayBeShort({ headers }: IncomingMessage): boolean {
  return !(Number(headers['content-length']) > discarded.bytesMax);
}

/** Resolves when the body or its connection has ended, or a limit is reached. */
export function discard(
  request: IncomingMessage,
  { bytesMax, msMax }: DiscardLimits,
): Promise<void> {
  return new Promise((resolve) => {
    let bytes = 0;
    const count = (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > bytesMax) end();
    };
    const end = () => {
      clearTimeout(timer);
      request.off('data', count).off('end', end).off('close', end).off('error', end);
      resolve();
    };
    const timer = setTimeout(end, msMax);
    request.on('data', count).once('end', end).once('close', end).once('error', end);
  });
}
