/**
 * What a call through a proxy costs beside a bare reverse proxy of `node:http` to the same destination over
 * TLS, in one run: throughput as a ratio, latency of a single connection, and memory for large bodies.
 */
import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { parseArgs } from 'node:util';
import { newAuthority } from '../src/keys/temporary-authority.ts';
import { freePort } from '../tests/support/temporary.ts';
import { defaultGenerator, loadBy } from './load.ts';
import { type Column, digits, median, table } from './markdown.ts';
import { type Server, startServer } from './process.ts';
import { using as watching } from './resources.ts';
import { engineOf, engines } from './storage.ts';
import { startVault, type Vault } from './vault.ts';

const megabyte = 1_048_576;
const largeMegabytes = 100;
const residentGoalMb = 60;
const goals = { 'passed through': 0.5, 'with a token': 0.35 } as const;
type Way = keyof typeof goals;
const latencyGoal = 2;
const latencyRequests = 400;

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '4' },
    connections: { type: 'string', default: '64' },
    engine: { type: 'string', multiple: true, default: Object.keys(engines) },
    load: { type: 'string', default: defaultGenerator },
  },
});
const load = loadBy(flags.load);

interface Measured {
  readonly engine: string;
  readonly way: Way;
  /** Throughput over that of the bare proxy. */
  readonly ratio: number;
  /** Of one connection, over the bare proxy's. */
  readonly latency: number;
  readonly failed: number;
}

const measured: Measured[] = [];
const grown: { engine: string; direction: string; megabytes: number }[] = [];

using directory = mkdtempDisposableSync(join(tmpdir(), 'strongroom-bench-'));
const place = writeIdentity(directory.path);
const tlsPort = await freePort();
const destinationUrl = `https://localhost:${tlsPort}`;
const hosts = { script: 'exec node bench/proxy-hosts.ts', readyPath: '/readyz' };
const destination = await startHost('destination', { HOSTS_TLS_PORT: String(tlsPort), ...place });
const bare = await startHost('bare', { HOSTS_DESTINATION: destinationUrl, ...place });
try {
  for (const engine of flags.engine) await measureEngine(engine);
} finally {
  await bare.stop();
  await destination.stop();
}
report();

function writeIdentity(path: string): Readonly<Record<string, string>> {
  const authority = newAuthority();
  const { cert, key } = authority.issue('destination');
  const files = { HOSTS_CERT: cert, HOSTS_KEY: key, HOSTS_CA: authority.cert };
  return Object.fromEntries(
    Object.entries(files).map(([name, text]) => {
      const file = join(path, name);
      writeFileSync(file, text, { mode: 0o600 });
      return [name, file];
    }),
  );
}

async function startHost(role: string, env: Readonly<Record<string, string>>): Promise<Server> {
  const port = await freePort();
  const own = { HOSTS_ROLE: role, HOSTS_PORT: String(port) };
  return startServer({ ...hosts, port, env: { ...env, ...own } });
}

async function measureEngine(engine: string): Promise<void> {
  const storage = await engineOf(engine)();
  const env = {
    ...storage.env,
    STRONGROOM_OUTBOUND_ALLOW: new URL(destinationUrl).host,
    STRONGROOM_OUTBOUND_CA: place['HOSTS_CA'] ?? '',
  };
  const vault = await startVault({ ...storage, env });
  try {
    const proxyKey = await createProxy(vault);
    await measureWays(engine, { vault, proxyKey });
    await measureLarge(engine, { vault, proxyKey });
  } finally {
    await vault.close();
  }
}

async function createProxy({ server, managementKey }: Vault): Promise<string> {
  const response = await fetch(`${server.url}/proxies`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'svc-api-key': managementKey },
    body: JSON.stringify({ name: 'bench', destination_url: destinationUrl }),
  });
  if (response.status !== 201) throw new Error(`no proxy: ${await response.text()}`);
  return ((await response.json()) as { key: string }).key;
}

interface Called {
  readonly vault: Vault;
  readonly proxyKey: string;
}

async function measureWays(engine: string, { vault, proxyKey }: Called): Promise<void> {
  const card = { number: '4242424242424242', expiration_month: 12, expiration_year: 2040 };
  const body = JSON.stringify({ type: 'card', data: card });
  const { id } = JSON.parse(await vault.send('POST', { path: '/tokens', body }));
  const bodies: Readonly<Record<Way, string>> = {
    'passed through': padded({ number: 'x'.repeat(60) }),
    'with a token': padded({ number: `{{ ${id} | json: '$.number' }}` }),
  };
  const keys = { 'svc-api-key': vault.keys.reveal, 'svc-proxy-key': proxyKey };
  const headersTo = (url: string) => ({
    'content-type': 'application/json',
    ...(url === vault.server.url && keys),
  });
  const rateOf = async (url: string, path: string, body: string) => {
    const { succeeded, seconds, failed } = await load({
      url,
      connections: Number(flags.connections),
      method: 'POST',
      headers: headersTo(url),
      requests: [{ path, body }],
      serial: 0,
      seconds: Number(flags.seconds),
    });
    return { rate: succeeded / seconds, failed };
  };
  for (const way of Object.keys(goals) as Way[]) {
    for (const url of [`${bare.url}/charges`, `${vault.server.url}/proxy/charges`]) {
      const headers = { 'content-type': 'application/json', ...keys };
      const first = await fetch(url, { method: 'POST', headers, body: bodies[way] });
      if (first.status !== 200) throw new Error(`${way}: ${first.status} ${await first.text()}`);
    }
    const ratios: number[] = [];
    const latencies: number[] = [];
    let failed = 0;
    for (let round = 0; round < Number(flags.rounds); round += 1) {
      const plain = await rateOf(bare.url, '/charges', bodies[way]);
      const ours = await rateOf(vault.server.url, '/proxy/charges', bodies[way]);
      failed += ours.failed + plain.failed;
      ratios.push(ours.rate / plain.rate);
      const one = (url: string, path: string) =>
        medianMsOfOne(`${url}${path}`, { headers: headersTo(url), body: bodies[way] });
      const plainMs = await one(bare.url, '/charges');
      latencies.push((await one(vault.server.url, '/proxy/charges')) / plainMs);
    }
    measured.push({ engine, way, ratio: median(ratios), latency: median(latencies), failed });
  }
}

interface Posted {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Of requests that follow one another on one connection, in milliseconds: load generators count in whole ones. */
async function medianMsOfOne(url: string, { headers, body }: Posted): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const times: number[] = [];
  for (let sent = 0; sent < latencyRequests; sent += 1) {
    const began = performance.now();
    await new Promise<void>((resolve, reject) => {
      const outgoing = request(url, { method: 'POST', headers, agent }, (response) => {
        response.resume().once('end', resolve);
        if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`));
      });
      outgoing.once('error', reject).end(body);
    });
    times.push(performance.now() - began);
  }
  agent.destroy();
  return median(times);
}

/** A kilobyte of JSON. */
function padded(content: Readonly<Record<string, string>>): string {
  const text = JSON.stringify({ ...content, text: '' });
  return JSON.stringify({ ...content, text: 'x'.repeat(1024 - text.length) });
}

/** How much more memory the vault holds at most while so much goes through it. */
async function measureLarge(engine: string, { vault, proxyKey }: Called): Promise<void> {
  const headers = {
    'svc-api-key': vault.keys.reveal,
    'svc-proxy-key': proxyKey,
    'content-type': 'application/octet-stream',
  };
  const chunk = new Uint8Array(megabyte);
  const directions: Readonly<Record<string, () => Promise<Response>>> = {
    down: () => fetch(`${vault.server.url}/proxy/large/${largeMegabytes}`, { headers }),
    up: () => {
      const chunks = Array.from({ length: largeMegabytes }, () => chunk);
      const body = Readable.toWeb(Readable.from(chunks)) as ReadableStream;
      const sent = { method: 'POST', headers, body, duplex: 'half' } as RequestInit;
      return fetch(`${vault.server.url}/proxy/upload`, sent);
    },
  };
  for (const [direction, send] of Object.entries(directions)) {
    const { used } = await watching({ pid: vault.server.pid }, async () => {
      const response = await send();
      if (response.status !== 200) throw new Error(`${direction}: ${await response.text()}`);
      for await (const _chunk of response.body ?? []);
    });
    const [before = Number.NaN] = used.residentBytes;
    grown.push({
      engine,
      direction,
      megabytes: (Math.max(...used.residentBytes) - before) / megabyte,
    });
  }
}

function report(): void {
  const ways: readonly Column<Measured>[] = [
    { title: 'engine', cell: ({ engine }) => engine },
    { title: 'a kilobyte of JSON', cell: ({ way }) => way },
    { title: 'throughput over the bare proxy', cell: ({ ratio }) => digits(ratio, 2) },
    { title: 'goal', cell: ({ way }) => digits(goals[way], 2) },
    {
      title: 'p50 of one connection over the bare proxy',
      cell: ({ latency }) => digits(latency, 2),
    },
    { title: 'at most', cell: () => digits(latencyGoal, 1) },
    { title: 'failed', cell: ({ failed }) => digits(failed) },
  ];
  const sizes: readonly Column<(typeof grown)[number]>[] = [
    { title: 'engine', cell: ({ engine }) => engine },
    { title: `${largeMegabytes} MB`, cell: ({ direction }) => direction },
    { title: 'more MB resident', cell: ({ megabytes }) => digits(megabytes) },
    { title: 'goal', cell: () => digits(residentGoalMb) },
  ];
  process.stdout.write(`${table(ways, measured)}\n\n${table(sizes, grown)}\n`);
}
