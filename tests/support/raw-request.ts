/** A request whose bytes leave when the test says so. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export interface Connection {
  readonly socket: Socket;
  /** All that came back, once the connection is closed. */
  readonly answer: Promise<string>;
}

export interface RawRequestOptions {
  readonly url: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Bytes of the body that is announced; without, it is chunked. */
  readonly length?: number;
}

/** A connection on which nothing was sent yet. */
export async function connectTo(url: string): Promise<Connection> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  const answer = new Promise<string>((resolve) => {
    socket.once('close', () => resolve(Buffer.concat(chunks).toString('utf8')));
  });
  await once(socket, 'connect');
  // The server may cut the connection; what had arrived by then is the answer.
  socket.on('error', () => undefined);
  return { socket, answer };
}

/** Resolves when the server has taken the headers and asks for the body (RFC 9110 section 10.1.1). */
export async function beginRequest(options: RawRequestOptions): Promise<Connection> {
  const connection = await connectTo(options.url);
  const headers = {
    host: new URL(options.url).host,
    'content-type': 'application/json',
    ...(options.length === undefined
      ? { 'transfer-encoding': 'chunked' }
      : { 'content-length': String(options.length) }),
    expect: '100-continue',
    ...options.headers,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  connection.socket.write(`${options.method} ${options.path} HTTP/1.1\r\n${lines.join('')}\r\n`);
  const [first] = await once(connection.socket, 'data');
  assert.match(String(first), /^HTTP\/1\.1 100 Continue\r\n/);
  return connection;
}

/** Resolves when nothing listens there any more. */
export async function untilClosed(url: string): Promise<void> {
  const { hostname, port } = new URL(url);
  while (await accepts(Number(port), hostname));
}

function accepts(port: number, hostname: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, hostname);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
