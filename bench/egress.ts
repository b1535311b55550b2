/**
 * What a request costs that a program sends through the forward proxy, with a value in it, beside a call of a proxy
 * with the same value: processor time of the vault, on kept connections. And the memory of open connections and of open
 * WebSockets, and what their messages cost beside a response of the same size.
 */

import { once } from 'node:events';
import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { parseArgs } from 'node:util';
import { newAuthority } from '../src/keys/temporary-authority.ts';
import { freePort } from '../tests/support/temporary.ts';
import { frame, handshakeKey } from '../tests/support/websocket.ts';
import { digits, median, table } from './markdown.ts';
import { startServer } from './process.ts';
import { using as watching } from './resources.ts';
import { engineOf } from './storage.ts';
import { startVault } from './vault.ts';

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    requests: { type: 'string', default: '2000' },
    engine: { type: 'string', default: 'embedded' },
    connections: { type: 'string', default: '200' },
    // A tenant has at most 64 for a host on a thread.
    websockets: { type: 'string', default: '60' },
    megabytes: { type: 'string', default: '100' },
  },
});
const goals = { ratio: 1.3, megabytes: 60 } as const;
const megabyte = 1_048_576;

using directory = mkdtempDisposableSync(join(tmpdir(), 'strongroom-bench-'));
const fileOf = (name: string, text: string) => {
  const file = join(directory.path, name);
  writeFileSync(file, text, { mode: 0o600 });
  return file;
};
const authority = newAuthority();
const issued = authority.issue('destination');
const [tlsPort, port, egressPort] = [await freePort(), await freePort(), await freePort()];
const host = `localhost:${tlsPort}`;
const ca = fileOf('ca.pem', authority.cert);
const destination = await startServer({
  script: 'exec node bench/proxy-hosts.ts',
  readyPath: '/',
  port,
  env: {
    HOSTS_ROLE: 'destination',
    HOSTS_PORT: String(port),
    HOSTS_TLS_PORT: String(tlsPort),
    HOSTS_CERT: fileOf('cert.pem', issued.cert),
    HOSTS_KEY: fileOf('key.pem', issued.key),
    HOSTS_CA: ca,
  },
});
const storage = await engineOf(flags.engine)();
const vault = await startVault({
  ...storage,
  env: {
    ...storage.env,
    STRONGROOM_OUTBOUND_ALLOW: host,
    STRONGROOM_OUTBOUND_CA: ca,
    STRONGROOM_EGRESS_ADDRESS: `127.0.0.1:${egressPort}`,
  },
});
/** Until the end: what was closed would leave memory to what is opened next. */
const held: { destroy(): unknown }[] = [];
try {
  await measure();
} finally {
  for (const one of held) one.destroy();
  await vault.close();
  await destination.stop();
}

async function send(method: 'GET' | 'POST', path: string, body: object | undefined, key: string) {
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  return JSON.parse(await vault.send(method, { path, ...sent }, key));
}

async function measure(): Promise<void> {
  const card = { number: '4242424242424242', expiration_month: 12, expiration_year: 2040 };
  const { id } = await send('POST', '/tokens', { type: 'card', data: card }, vault.keys.reveal);
  const text = { type: 'token', data: 'an api key of thirty characters' };
  const secret = await send('POST', '/tokens', text, vault.keys.reveal);
  const egress = [
    {
      host: 'localhost',
      port: tlsPort,
      paths: ['/charges'],
      tokens: [id],
      places: ['json:number'],
    },
    {
      host: 'localhost',
      port: tlsPort,
      methods: ['GET'],
      tokens: [secret.id],
      places: ['header:authorization'],
      websocket: true,
    },
  ];
  const permissions = ['proxy:invoke'];
  const agent = { name: 'agent', type: 'private', permissions, egress };
  const { key } = await send('POST', '/applications', agent, vault.managementKey);
  const made = { token_id: id, property: 'number' };
  const { placeholder } = await send('POST', '/placeholders', made, key);
  const { certificate } = await send('GET', '/egress/authority', undefined, key);
  const proxy = { name: 'bench', destination_url: `https://${host}` };
  const { key: proxyKey } = await send('POST', '/proxies', proxy, vault.managementKey);
  const [, ownPort] = vault.server.url.split('//127.0.0.1:');

  const kept = new Agent({ keepAlive: true, maxSockets: 1 });
  const calling = {
    port: Number(ownPort),
    agent: kept,
    path: '/proxy/charges',
    headers: { 'svc-api-key': vault.keys.reveal, 'svc-proxy-key': proxyKey },
    body: padded(`{{ ${id} | json: '$.number' }}`),
  };
  // With a request, or it would wait too long for its first one.
  const opened = await openConnection(key, certificate, true);
  const through = new Agent({ keepAlive: true, maxSockets: 1 });
  through.createConnection = () => opened;
  const sending = {
    agent: through,
    path: '/charges',
    headers: { host },
    body: padded(placeholder),
  };

  const ratios: number[] = [];
  const costs: { proxy: number; egress: number }[] = [];
  for (let round = -1; round < Number(flags.rounds); round += 1) {
    const proxyMs = await costOf(calling);
    const egressMs = await costOf(sending);
    if (round < 0) continue;
    costs.push({ proxy: proxyMs, egress: egressMs });
    ratios.push(egressMs / proxyMs);
  }
  const opening = await grownBy(() => openConnection(key, certificate, true), flags.connections);
  const ofText = await send('POST', '/placeholders', { token_id: secret.id }, key);
  const openSocket = async () => {
    const socket = await openConnection(key, certificate);
    socket.write(handshakeOf(ofText.placeholder));
    const [head] = (await once(socket, 'data')) as [Buffer];
    if (!head.toString().startsWith('HTTP/1.1 101')) throw new Error('no WebSocket was opened');
    return socket;
  };
  const sockets = await grownBy(openSocket, flags.websockets);
  const live = await openSocket();
  const streams: { messages: number; response: number; grown: number }[] = [];
  for (let round = -1; round < Number(flags.rounds); round += 1) {
    const request = `GET /large/${flags.megabytes} HTTP/1.1\r\nhost: ${host}\r\nauthorization: ${ofText.placeholder}\r\n\r\n`;
    const body = await streamed(await openConnection(key, certificate), request);
    const messages = await streamed(live, frame({ payload: flags.megabytes, masked: true }));
    if (round < 0) continue;
    const { cpuMs: response } = body;
    streams.push({ messages: messages.cpuMs, response, grown: messages.grown });
  }
  live.destroy();
  process.stdout.write(
    `${table(
      [
        { title: 'ms of processor time', cell: ({ way }) => way },
        { title: 'a call', cell: ({ ms }) => digits(ms, 3) },
      ],
      [
        { way: 'a proxy', ms: median(costs.map(({ proxy }) => proxy)) },
        { way: 'the forward proxy', ms: median(costs.map(({ egress }) => egress)) },
      ],
    )}\n\nratio ${digits(median(ratios), 2)} (at most ${goals.ratio})\n` +
      `${flags.connections} opened connections: ${digits(opening)} MB more resident (at most ${goals.megabytes})\n` +
      `${flags.websockets} idle WebSockets: ${digits(sockets)} MB more resident\n` +
      `${flags.megabytes} MB of messages: ${digits(median(streams.map(({ messages }) => messages)))} ms, ` +
      `${digits(median(streams.map((one) => one.messages / one.response)))} of a response, ` +
      `${digits(median(streams.map(({ grown }) => grown)))} MB more resident\n`,
  );
}

interface Repeated {
  readonly port?: number;
  readonly agent: Agent;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A kilobyte of JSON. */
function padded(number: string): string {
  return JSON.stringify({ number, text: 'x'.repeat(1000 - number.length) });
}

/** Of one of many requests on one connection, in milliseconds of the vault's processor time. */
async function costOf({ body, headers, ...options }: Repeated): Promise<number> {
  const { used } = await watching({ pid: vault.server.pid }, async () => {
    for (let sent = 0; sent < Number(flags.requests); sent += 1) {
      const length = {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      };
      const outgoing = request({
        ...options,
        host: '127.0.0.1',
        method: 'POST',
        headers: { ...headers, ...length },
      });
      outgoing.end(body);
      const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
      if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}`);
      await once(response.resume(), 'end');
    }
  });
  return (used.cpuSeconds * 1000) / Number(flags.requests);
}

async function openConnection(key: string, certificate: string, isUsed = false) {
  const connecting = request({
    host: '127.0.0.1',
    port: egressPort,
    method: 'CONNECT',
    path: host,
    headers: { 'proxy-authorization': `Basic ${btoa(`agent:${key}`)}` },
    agent: false,
  });
  connecting.end();
  const [response, socket] = (await once(connecting, 'connect')) as [IncomingMessage, Socket];
  if (response.statusCode !== 200) throw new Error(`CONNECT gave ${response.statusCode}`);
  const secured = connectTls({ socket, ca: certificate, servername: 'localhost' });
  await once(secured, 'secureConnect');
  if (isUsed) {
    secured.write(`POST /charges HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 0\r\n\r\n`);
    await once(secured, 'data');
  }
  return secured;
}

function handshakeOf(placeholder: string): string {
  const lines = [
    ...['GET /live HTTP/1.1', `host: ${host}`, `authorization: Bearer ${placeholder}`],
    ...['connection: Upgrade', 'upgrade: websocket', 'sec-websocket-version: 13'],
    `sec-websocket-key: ${handshakeKey}`,
  ];
  return `${lines.join('\r\n')}\r\n\r\n`;
}

/** Until as much has come as was asked for: processor time, and megabytes more that were resident meanwhile. */
async function streamed(socket: Socket, asking: string | Buffer) {
  let left = Number(flags.megabytes) * megabyte;
  const { promise, resolve } = Promise.withResolvers<void>();
  const count = ({ length }: Buffer) => {
    left -= length;
    if (left <= 0) resolve();
  };
  const { used } = await watching({ pid: vault.server.pid }, async () => {
    socket.on('data', count);
    socket.write(asking);
    await promise;
  });
  socket.off('data', count);
  const [before = Number.NaN] = used.residentBytes;
  const grown = (Math.max(...used.residentBytes) - before) / megabyte;
  return { cpuMs: used.cpuSeconds * 1000, grown };
}

/** How many megabytes more the vault holds with so many connections open. */
async function grownBy(
  open: () => Promise<{ destroy(): unknown }>,
  count: string,
): Promise<number> {
  const { used } = await watching({ pid: vault.server.pid }, async () => {
    for (let at = 0; at < Number(count); at += 1) held.push(await open());
  });
  const [before = Number.NaN] = used.residentBytes;
  return (Math.max(...used.residentBytes) - before) / megabyte;
}
