/** Somebody else's HTTPS server, with an authority of its own, that behaves as well or badly as a test wants. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket, TlsOptions } from 'node:tls';
import {
  type Authority,
  type IssuedCertificate,
  newAuthority,
} from '../../src/keys/temporary-authority.ts';
import type { Lender } from './temporary.ts';

export interface DestinationRequest {
  readonly method: string;
  readonly url: string;
  /** Names and values in turn, as they came. */
  readonly headers: readonly string[];
  /** Its beginning, up to a megabyte. */
  readonly body: Buffer;
  readonly bodyBytes: number;
  /** The connection on which it came, counted from 0. */
  readonly connection: number;
  /** The common name of the client's certificate. */
  readonly clientName: string | undefined;
}

/** A request whose head has come, and how it is answered. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly socket: TLSSocket;
  /** Ends the connection with a RST, as a host that crashed does. */
  readonly reset: () => void;
  /** When its body has come too. */
  readonly received: Promise<DestinationRequest>;
}

export type Behavior = (exchange: Exchange) => void | Promise<void>;

export interface DestinationOptions {
  /** Whether a client has to show a certificate of the destination's authority. */
  readonly clientCertificates?: boolean;
  readonly tls?: Pick<TlsOptions, 'minVersion' | 'maxVersion' | 'ciphers'>;
  /** The names in its certificate, instead of 127.0.0.1 and localhost. */
  readonly hosts?: readonly string[];
  readonly authority?: Authority;
}

export interface Destination {
  /** `https://127.0.0.1:port` */
  readonly url: string;
  /** `127.0.0.1:port`, as it stands in an allow-list. */
  readonly name: string;
  readonly port: number;
  readonly authority: Authority;
  /** Requests that have come whole. */
  readonly requests: DestinationRequest[];
  /** Every connection over which TLS was agreed on. */
  readonly sockets: TLSSocket[];
  /** Signed by its authority, for a client. */
  issue(name: string): IssuedCertificate;
  /** How it behaves from now on; at first it answers with an empty 200. */
  behave(behavior: Behavior): void;
  /** The same for requests that want another protocol, whose connection is then theirs. */
  upgrade(onUpgrade: (request: IncomingMessage, socket: Duplex) => void): void;
}

const recordedBytesMax = 1_048_576;

/** Starts a destination that is gone after the test, with every connection that is still open. */
export async function startDestination(
  t: Lender,
  options: DestinationOptions = {},
): Promise<Destination> {
  const authority = options.authority ?? newAuthority();
  const requests: DestinationRequest[] = [];
  const sockets: TLSSocket[] = [];
  /** Below TLS, by the port of the client. */
  const below = new Map<number | undefined, Socket>();
  let behavior: Behavior = answer();
  const mutual = { ca: authority.cert, requestCert: true, rejectUnauthorized: true };
  const identity = authority.issue('strongroom destination', options.hosts);
  const server = createServer(
    { ...identity, ...options.tls, ...(options.clientCertificates && mutual) },
    (request, response) => {
      const socket = request.socket as TLSSocket;
      const received = record(request, sockets.indexOf(socket));
      received.then(
        (whole) => requests.push(whole),
        () => undefined,
      );
      const reset = () => void below.get(socket.remotePort)?.resetAndDestroy();
      Promise.resolve(behavior({ request, response, socket, reset, received })).catch(() =>
        response.destroy(),
      );
    },
  );
  // Kept open until the client closes them.
  server.keepAliveTimeout = 0;
  server.requestTimeout = 0;
  server.on('connection', (socket) => below.set(socket.remotePort, socket));
  server.on('secureConnection', (socket) => {
    sockets.push(socket);
    socket.on('error', () => socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    for (const socket of sockets) socket.destroy();
    await closed;
  });
  const { port } = server.address() as AddressInfo;
  const name = `127.0.0.1:${port}`;
  return {
    url: `https://${name}`,
    name,
    port,
    authority,
    requests,
    sockets,
    issue: (clientName) => authority.issue(clientName),
    behave: (next) => {
      behavior = next;
    },
    upgrade: (onUpgrade) => {
      server.removeAllListeners('upgrade').on('upgrade', onUpgrade);
    },
  };
}

async function record(request: IncomingMessage, connection: number): Promise<DestinationRequest> {
  const { method = '', url = '', rawHeaders: headers } = request;
  const shown = (request.socket as TLSSocket).getPeerCertificate().subject?.CN;
  const clientName = typeof shown === 'string' ? shown : undefined;
  const chunks: Buffer[] = [];
  let bodyBytes = 0;
  request.on('data', (chunk: Buffer) => {
    if (bodyBytes < recordedBytesMax) chunks.push(chunk);
    bodyBytes += chunk.length;
  });
  await once(request, 'end');
  const body = Buffer.concat(chunks);
  return { method, url, headers, body, bodyBytes, connection, clientName };
}

/** Answers once the request has come whole. */
export function answer(
  status = 200,
  headers: readonly string[] = [],
  body: string | Uint8Array = '',
): Behavior {
  return async ({ response, received }) => {
    await received;
    response.writeHead(status, [...headers]).end(body);
  };
}

/** Sends the body back, as it comes. */
export const echo: Behavior = ({ request, response }) => {
  response.writeHead(200, { 'content-type': request.headers['content-type'] ?? 'text/plain' });
  response.flushHeaders();
  request.pipe(response);
};

export const hang: Behavior = () => undefined;

/** Exactly these bytes, whatever HTTP says, once the request has come whole; then `end`, if asked for. */
export function raw(
  text: string | Uint8Array,
  ending: 'open' | 'end' | 'reset' = 'open',
): Behavior {
  return async ({ response, socket, reset, received }) => {
    await received;
    // The server is to take this for its answer, and to hear the next request.
    response.emit('finish');
    socket.write(text, () => {
      if (ending === 'end') socket.end();
      if (ending === 'reset') reset();
    });
  };
}

/** Breaks the connection after so many bytes of a body of ten times as many. */
export function resetAfter(bytes: number): Behavior {
  const head = `HTTP/1.1 200 OK\r\nContent-Length: ${bytes * 10}\r\n\r\n`;
  return raw(head + 'x'.repeat(bytes), 'reset');
}

/** Announces one length and sends another, then closes. */
export function lyingAboutLength(announced: number, sent: number): Behavior {
  return raw(`HTTP/1.1 200 OK\r\nContent-Length: ${announced}\r\n\r\n${'x'.repeat(sent)}`, 'end');
}

/** A body of so many bytes, no faster than it is read. Given `onSent`, it learns of each piece. */
export function large(bytes: number, onSent: (bytes: number) => void = () => undefined): Behavior {
  const piece = Buffer.alloc(65_536, 'x');
  return async ({ response, received }) => {
    await received;
    response.writeHead(200, { 'content-length': String(bytes) });
    for (let left = bytes; left > 0 && !response.destroyed; left -= piece.length) {
      const part = piece.subarray(0, Math.min(left, piece.length));
      onSent(part.length);
      if (!response.write(part)) await once(response, 'drain');
    }
    response.end();
  };
}

/** In chunks, with trailers. */
export function chunked(parts: readonly string[], trailers: readonly string[] = []): Behavior {
  const chunks = parts.map((part) => `${Buffer.byteLength(part).toString(16)}\r\n${part}\r\n`);
  return raw(
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunks.join('')}0\r\n` +
      `${trailers.map((trailer) => `${trailer}\r\n`).join('')}\r\n`,
  );
}

/** Neither a length nor chunks: the body ends with the connection. */
export function withoutLength(body: string): Behavior {
  return raw(`HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${body}`, 'end');
}

/** Interim answers before the final one. */
export function informed(interim: readonly string[], body: string): Behavior {
  const heads = interim.map((line) => `HTTP/1.1 ${line}\r\n\r\n`).join('');
  return raw(
    `${heads}HTTP/1.1 200 OK\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

/** Byte by byte, each when the one before has left. */
export function slowly(body: string): Behavior {
  return async ({ response, received }) => {
    await received;
    response.writeHead(200, { 'content-length': String(Buffer.byteLength(body)) });
    for (const byte of Buffer.from(body)) {
      const { promise, resolve } = Promise.withResolvers<void>();
      response.write(Buffer.from([byte]), () => setImmediate(resolve));
      await promise;
    }
    response.end();
  };
}
