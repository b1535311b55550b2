/**
 * What the reads of a private key lose while ten addresses and five public keys do their worst. The attackers are a
 * process of lower priority: what is to be seen is what the vault does for them, not that they take the processor.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { freePort } from '../tests/support/temporary.ts';
import { digits, table } from './markdown.ts';

const { values: flags } = parseArgs({
  options: {
    /** Of another version, to compare with. */
    root: { type: 'string', default: new URL('..', import.meta.url).pathname },
    seconds: { type: 'string', default: '8' },
    only: { type: 'string', default: '' },
    /** What an attacker is told. */
    attack: { type: 'string' },
  },
});

interface Target {
  readonly port: number;
  readonly publicKeys: readonly string[];
  readonly proxyKey: string;
}

interface Sent {
  readonly port: number;
  readonly method: string;
  readonly path: string;
  readonly agent: Agent;
  readonly localAddress?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/** The status and the text; the status alone where nobody reads the text. */
function send(sent: Sent): Promise<{ status: number; text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>();
  const { port, method, path, agent, localAddress, headers = {}, body } = sent;
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
  const json = body === undefined ? {} : { 'content-type': 'application/json' };
  request(
    {
      ...{ port, method, path, agent, host: '127.0.0.1', ...(localAddress && { localAddress }) },
      headers: { ...json, ...length, ...headers },
    },
    (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
      response.on('error', reject);
    },
  )
    .on('error', reject)
    .end(body);
  return promise;
}

const wide = JSON.stringify({ type: 'token', data: new Array(85_000).fill(1) });
const unknown = JSON.stringify(
  Object.fromEntries(Array.from({ length: 90_000 }, (_, at) => [`a${at}`, 1])),
);
const largest = JSON.stringify({ type: 'token', data: new Array(9_990).fill('x'.repeat(90)) });
const expressions = JSON.stringify(
  Array.from({ length: 8_000 }, (_, at) => `{{ proxy.request.headers.x-a | append: "${at}" }}`),
);

interface Attacker extends Target {
  readonly localAddress: string;
  readonly agent: Agent;
  readonly key: string;
}

type Attack = (attacker: Attacker) => Promise<unknown>;

const posting =
  (body: string): Attack =>
  ({ key, ...own }) =>
    send({ ...own, method: 'POST', path: '/tokens', headers: { 'svc-api-key': key }, body });

const getting =
  (path: string, headers?: Record<string, string>): Attack =>
  (own) =>
    send({ ...own, method: 'GET', path, ...(headers && { headers }) });

/** Each once, one after the other, on each connection. */
const attacks: Readonly<Record<string, Attack>> = {
  'bodies of 85,000 members': posting(wide),
  'bodies of 90,000 unknown attributes': posting(unknown),
  'largest valid creates': posting(largest),
  'no key': getting('/tokens/one'),
  'unknown keys': (own) =>
    getting('/tokens/one', { 'svc-api-key': `key_test_pub_${randomBytes(20).toString('hex')}` })(
      own,
    ),
  'unknown paths': getting('/nowhere'),
  'the description': getting('/openapi.json'),
  '8,000 expressions without a key': ({ proxyKey, ...own }) => {
    const headers = { 'svc-proxy-key': proxyKey, 'x-a': 'b' };
    return send({ ...own, method: 'POST', path: '/proxy', headers, body: expressions });
  },
  'slow uploads': async ({ port, localAddress, key }) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    socket.on('error', () => undefined);
    const head = ['POST /tokens HTTP/1.1', 'host: x', `svc-api-key: ${key}`];
    const type = ['content-type: application/json', 'content-length: 1000000'];
    socket.write(`${[...head, ...type].join('\r\n')}\r\n\r\n{`);
    for (let at = 0; at < 20 && !socket.destroyed; at += 1) {
      await pause(100);
      socket.write('x'.repeat(40_000));
    }
    socket.destroy();
  },
  'new connections': async ({ port, localAddress }) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    socket.on('error', () => undefined);
    socket.end('GET /ping HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
    socket.resume();
    await once(socket, 'close');
  },
};

const addresses = Array.from({ length: 10 }, (_, at) => `127.0.0.${at + 2}`);
/** Of each attack from each address. */
const connectionsEach = 3;

async function attack({ target, only }: { target: Target; only: string }): Promise<never> {
  setPriority(19);
  for (const [at, localAddress] of addresses.entries()) {
    const agent = new Agent({ keepAlive: true, maxSockets: 200 });
    const key = target.publicKeys[at % target.publicKeys.length] as string;
    for (const [name, run] of Object.entries(attacks)) {
      if (!name.includes(only)) continue;
      for (let one = 0; one < connectionsEach; one += 1) {
        void (async () => {
          for (;;) {
            await run({ ...target, localAddress, agent, key }).catch(() => pause(5));
            // What is refused within the rate limits costs the attacker nothing, and is sent again.
          }
        })();
      }
    }
  }
  return new Promise(() => undefined);
}

interface Measured {
  readonly p50: number;
  readonly p99: number;
  readonly reads: number;
  /** The part of the time in which the server was ready to run and had no processor. */
  readonly delayed: number;
}

async function measure(reader: Omit<Sent, 'agent'>, pid: number): Promise<Measured> {
  const agent = new Agent({ keepAlive: true });
  const times: number[] = [];
  const until = performance.now() + Number(flags.seconds) * 1000;
  const began = performance.now();
  const delayBefore = delayMs(pid);
  await Promise.all(
    [1, 2].map(async () => {
      while (performance.now() < until) {
        const begun = performance.now();
        const { status, text } = await send({ ...reader, agent });
        if (status !== 200) throw new Error(`${status} ${text}`);
        times.push(performance.now() - begun);
        await pause(2);
      }
    }),
  );
  const delayed = (delayMs(pid) - delayBefore) / (performance.now() - began);
  agent.destroy();
  times.sort((a, b) => a - b);
  const at = (part: number) => times[Math.floor(times.length * part)] ?? 0;
  return { p50: at(0.5), p99: at(0.99), reads: times.length, delayed };
}

/** Of the main thread, which answers all requests. */
function delayMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6;
}

async function startServer(dataDir: string, port: number, key: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, [join(flags.root, 'bin/strongroom.js'), 'serve'], {
    env: {
      ...process.env,
      STRONGROOM_DATA_DIR: dataDir,
      STRONGROOM_PORT: String(port),
      STRONGROOM_BOOTSTRAP_KEY: key,
      STRONGROOM_THREADS: '1',
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const agent = new Agent();
  for (;;) {
    const ready = await send({ port, method: 'GET', path: '/readyz', agent }).catch(
      () => undefined,
    );
    if (ready?.status === 200) return child;
    await pause(100);
  }
}

async function main(): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'hostile-'));
  const port = await freePort();
  const management = `bench_${randomBytes(24).toString('hex')}`;
  const server = await startServer(dataDir, port, management);
  try {
    const agent = new Agent({ keepAlive: true });
    const post = async (path: string, body: object, key = management) => {
      const headers = { 'svc-api-key': key };
      const sent = { port, method: 'POST', path, agent, headers, body: JSON.stringify(body) };
      const { status, text } = await send(sent);
      if (status !== 201) throw new Error(`${path}: ${status} ${text}`);
      return JSON.parse(text);
    };
    const rules = [
      {
        priority: 1,
        container: '/',
        permissions: ['token:create', 'token:read'],
        transform: 'reveal',
      },
    ];
    const { key } = await post('/applications', { name: 'reader', type: 'private', rules });
    const { id } = await post('/tokens', { type: 'token', data: 'x' }, key);
    const visitor = { name: 'visitor', type: 'public', permissions: ['token:create'] };
    const publicKeys: string[] = [];
    for (let at = 0; at < 5; at += 1) publicKeys.push((await post('/applications', visitor)).key);
    const proxy = await post('/proxies', {
      ...{ name: 'open', destination_url: 'https://destination.example.com' },
      require_auth: false,
    });
    agent.destroy();
    const target: Target = { port, publicKeys, proxyKey: proxy.key };
    const headers = { 'svc-api-key': key };
    const reader = { port, method: 'GET', path: `/tokens/${id}`, headers };
    const pid = server.pid as number;
    await measure(reader, pid);
    const idle = await measure(reader, pid);
    const attacker = spawn(
      process.execPath,
      [import.meta.filename, '--attack', JSON.stringify({ target, only: flags.only })],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    );
    await pause(2_000);
    const loaded = await measure(reader, pid);
    attacker.kill('SIGKILL');
    await once(attacker, 'exit');
    const rows = [
      { name: 'idle', ...idle },
      { name: 'beside attackers', ...loaded },
    ];
    const columns = [
      { title: '', cell: ({ name }: (typeof rows)[number]) => name },
      { title: 'p50, ms', cell: ({ p50 }: (typeof rows)[number]) => digits(p50, 2) },
      { title: 'p99, ms', cell: ({ p99 }: (typeof rows)[number]) => digits(p99, 2) },
      { title: 'reads', cell: ({ reads }: (typeof rows)[number]) => digits(reads) },
      {
        title: 'server waited for a processor',
        cell: ({ delayed }: (typeof rows)[number]) => `${digits(delayed * 100)} %`,
      },
    ];
    const ratio = digits(loaded.p50 / idle.p50, 2);
    process.stdout.write(`${table(columns, rows)}\n\np50 ${ratio} times its idle value, goal 3.\n`);
  } finally {
    server.kill('SIGTERM');
    await once(server, 'exit');
    rmSync(dataDir, { recursive: true, force: true });
  }
}

await (flags.attack === undefined ? main() : attack(JSON.parse(flags.attack)));
