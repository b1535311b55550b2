/**
 * The other two hosts when proxies are measured, each run as a process of its own: a destination over TLS,
 * and a bare reverse proxy of `node:http` in front of it, which does nothing but pass on.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createProxy, type IncomingMessage, type ServerResponse } from 'node:http';
import { Agent, createServer, request as send } from 'node:https';
import { type Duplex, pipeline } from 'node:stream';
import { accept, frame, framesOf } from '../tests/support/websocket.ts';

const megabyte = Buffer.alloc(1_048_576, 'x');

const {
  HOSTS_ROLE,
  HOSTS_PORT,
  HOSTS_TLS_PORT,
  HOSTS_DESTINATION,
  HOSTS_CERT,
  HOSTS_KEY,
  HOSTS_CA,
} = process.env;
const textOf = (path: string | undefined) => readFileSync(path ?? '', 'utf8');

const roles: Readonly<Record<string, () => void>> = {
  /** Answers whatever is sent with a kilobyte; `/large/100` with so many megabytes, as does a WebSocket a message. */
  destination: () => {
    const answer = Buffer.from(JSON.stringify({ approved: true, text: 'x'.repeat(990) }));
    const server = createServer({ cert: textOf(HOSTS_CERT), key: textOf(HOSTS_KEY) });
    server.on('upgrade', (request, socket) => {
      accept(request, socket);
      void sendMessages(socket);
    });
    server.on('request', (request, response) => {
      const [, megabytes] = /^\/large\/(\d+)$/.exec(request.url ?? '') ?? [];
      request.resume().on('end', () => {
        if (megabytes !== undefined) {
          sendLarge(response, Number(megabytes));
          return;
        }
        response.writeHead(200, {
          'content-type': 'application/json',
          'content-length': answer.length,
        });
        response.end(answer);
      });
    });
    server.listen(Number(HOSTS_TLS_PORT), '127.0.0.1', () => {
      // Says that the other port is ready.
      createProxy((_request, response) => response.end()).listen(Number(HOSTS_PORT), '127.0.0.1');
    });
  },

  bare: () => {
    const { hostname, port } = new URL(HOSTS_DESTINATION ?? '');
    const agent = new Agent({ keepAlive: true, ca: textOf(HOSTS_CA) });
    createProxy((request, response) => {
      if (request.url === '/readyz') response.end();
      else passOn(request, response, { agent, hostname, port });
    }).listen(Number(HOSTS_PORT), '127.0.0.1');
  },
};

interface Onward {
  readonly agent: Agent;
  readonly hostname: string;
  readonly port: string;
}

function passOn(request: IncomingMessage, response: ServerResponse, onward: Onward): void {
  const { method, url: path, headers } = request;
  const outgoing = send({
    ...onward,
    method,
    path,
    headers: { ...headers, host: onward.hostname },
  });
  outgoing.on('response', (answer) => {
    // The load has ended and its client is gone.
    if (response.destroyed) {
      answer.destroy();
      return;
    }
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    pipeline(answer, response, () => undefined);
  });
  outgoing.on('error', () => response.destroy());
  pipeline(request, outgoing, () => undefined);
}

function sendLarge(response: ServerResponse, megabytes: number): void {
  let left = megabytes;
  response.writeHead(200, {
    'content-type': 'application/octet-stream',
    'content-length': megabytes * megabyte.length,
  });
  const more = () => {
    while (left > 0) {
      left -= 1;
      if (!response.write(megabyte)) {
        response.once('drain', more);
        return;
      }
    }
    response.end();
  };
  more();
}

/** As many megabytes as a message says, in messages of 16 KiB. */
async function sendMessages(socket: Duplex): Promise<void> {
  const message = frame({ payload: megabyte.subarray(0, 16_384) });
  socket.on('error', () => socket.destroy());
  for await (const { payload } of framesOf(socket)) {
    for (let sent = 0; sent < Number(payload) * 64; sent += 1) {
      if (!socket.write(message)) await once(socket, 'drain');
    }
  }
}

const role = roles[HOSTS_ROLE ?? ''];
if (role === undefined) throw new Error('HOSTS_ROLE is destination or bare');
role();
