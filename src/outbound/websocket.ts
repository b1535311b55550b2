/** Handshakes of WebSocket (RFC 6455, section 4), as a proxy looks at them. */
import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { minute } from '../base/clock.ts';
import { endToEnd, valuesOf } from './end-to-end.ts';
import type { ForwardResponse } from './response.ts';

/** An open connection in which nothing moves for so long ends. */
const idleMsMax = 10 * minute;
const keyForm = /^[A-Za-z0-9+/]{22}==$/;
/** Of RFC 6455, section 1.3. */
const suffix = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

export const extensionsHeader = 'sec-websocket-extensions';
/** For the connection to the host. */
export const handshakeHeaders = ['Connection', 'Upgrade', 'Upgrade', 'websocket'] as const;

export function isHandshake({ method, httpVersion, headers }: IncomingMessage): boolean {
  return (
    method === 'GET' &&
    httpVersion === '1.1' &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    headers['sec-websocket-version'] === '13' &&
    keyForm.test(headers['sec-websocket-key'] ?? '') &&
    headers['content-length'] === undefined &&
    headers['transfer-encoding'] === undefined
  );
}

/**
 * A host that has not understood the handshake would take what follows for requests, which no policy has seen. Of an
 * extension that nobody asked for, the frames could not be read.
 */
export function isAccepted(
  { statusCode, headers, rawHeaders }: IncomingMessage,
  sent: readonly string[],
): boolean {
  const [key = '', ...others] = valuesOf(sent, 'sec-websocket-key');
  return (
    statusCode === 101 &&
    others.length === 0 &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    headers['sec-websocket-accept'] === hash('sha1', key + suffix, 'base64') &&
    valuesOf(rawHeaders, extensionsHeader).length === 0
  );
}

/** @param socket the connection, which the host and the caller have for themselves from now on. */
export function acceptedResponse(
  { rawHeaders }: IncomingMessage,
  socket: Duplex & { setTimeout(ms: number, onTimeout: () => void): unknown },
): ForwardResponse {
  socket.setTimeout(idleMsMax, () => socket.destroy());
  // Whoever reads from it or writes to it sees that it is closed.
  socket.on('error', () => undefined);
  return {
    status: 101,
    headers: endToEnd(rawHeaders, ['content-length']),
    body: socket,
    trailers: () => [],
    drop: async () => void socket.destroy(),
    upgraded: socket,
  };
}
