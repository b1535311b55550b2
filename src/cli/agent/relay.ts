/**
 * The proxy of one program: it passes connections on to the forward proxy of the vault, with a key that the program
 * never has. What the program has instead is a password that means nothing elsewhere, and ends with this process.
 */
import type { IncomingMessage, RequestOptions, ServerResponse } from 'node:http';
import type { AddressInfo, ListenOptions } from 'node:net';
import type { Duplex } from 'node:stream';
import { nodeHttp } from '../../base/node-http.ts';
import { sha256 } from '../../keys/digest.ts';

export interface RelayOptions {
  /** The forward proxy of the vault. */
  readonly proxy: URL;
  readonly key: string;
  /** What the program sends in place of the key. */
  readonly password: string;
}

export interface Relay {
  /** Where it listens, unless that is a path. */
  readonly port: number;
  close(): void;
}

const challenge = 'Basic realm="strongroom"';
const refusal = [
  'HTTP/1.1 407 Proxy Authentication Required',
  `proxy-authenticate: ${challenge}`,
  'content-length: 0',
  'connection: close',
  '\r\n',
].join('\r\n');

export async function startRelay(options: RelayOptions, place: ListenOptions): Promise<Relay> {
  const { proxy, key, password } = options;
  const own = sha256(basicOf(password));
  const open = new Set<Duplex>();
  const upstream = { 'proxy-authorization': basicOf(key) };

  function isOwn({ headers }: IncomingMessage): boolean {
    return sha256(headers['proxy-authorization'] ?? '').equals(own);
  }

  function begin(more: RequestOptions) {
    const { hostname, port, protocol } = proxy;
    const { request } = protocol === 'https:' ? process.getBuiltinModule('node:https') : nodeHttp;
    return request({
      host: hostname.replace(/^\[|\]$/g, ''),
      port: port || undefined,
      agent: false,
      ...more,
    });
  }

  function connect(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy());
    if (!isOwn(request)) {
      socket.end(refusal);
      return;
    }
    const path = request.url ?? '';
    const beginning = begin({ method: 'CONNECT', path, headers: { host: path, ...upstream } });
    socket.once('close', () => beginning.destroy());
    beginning.once('error', () => {
      socket.end('HTTP/1.1 502 Bad Gateway\r\nconnection: close\r\n\r\n');
    });
    // A refusal comes as one too, with its body.
    beginning.once('connect', (response: IncomingMessage, other: Duplex, first: Buffer) => {
      const lines = [`HTTP/1.1 ${response.statusCode} ${response.statusMessage}`];
      for (let at = 0; at < response.rawHeaders.length; at += 2) {
        lines.push(`${response.rawHeaders[at]}: ${response.rawHeaders[at + 1]}`);
      }
      socket.write(`${lines.join('\r\n')}\r\n\r\n`);
      if (first.length > 0) socket.write(first);
      if (head.length > 0) other.write(head);
      open.add(other);
      other.on('error', () => other.destroy());
      other.once('close', () => {
        open.delete(other);
        socket.destroy();
      });
      socket.once('close', () => other.destroy());
      socket.pipe(other).pipe(socket);
    });
    beginning.end();
  }

  /** Without TLS the program sends each request to its proxy. */
  function passOn(request: IncomingMessage, response: ServerResponse): void {
    if (!isOwn(request)) {
      response.writeHead(407, { 'proxy-authenticate': challenge }).end();
      return;
    }
    const { 'proxy-authorization': _own, ...headers } = request.headers;
    const { method, url: path } = request;
    const sent = begin({ method, path, headers: { ...headers, ...upstream } });
    sent.once('error', () =>
      response.headersSent ? response.destroy() : response.writeHead(502).end(),
    );
    sent.once('response', (received: IncomingMessage) => {
      response.writeHead(received.statusCode ?? 502, received.rawHeaders);
      received.once('error', () => response.destroy());
      received.pipe(response);
    });
    response.once('close', () => sent.destroy());
    request.pipe(sent);
  }

  const server = nodeHttp.createServer(passOn);
  server.on('connect', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    connect(request, socket, head);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(place, resolve);
  });
  const address = server.address() as AddressInfo | string | null;
  return {
    port: typeof address === 'object' ? (address?.port ?? 0) : 0,
    close: () => {
      server.close();
      server.closeAllConnections();
      for (const one of open) one.destroy();
    },
  };
}

function basicOf(password: string): string {
  return `Basic ${Buffer.from(`agent:${password}`).toString('base64')}`;
}
