/**
 * Deliveries to webhooks: how many a second reach local receivers, how long an event takes from its commit at a steady
 * rate, and what waiting events cost in memory. Receivers run on the same machine, over TLS.
 */
import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { newAuthority } from '../src/keys/temporary-authority.ts';
import { freePort } from '../tests/support/temporary.ts';
import { describeMachine } from './machine.ts';
import { type Column, digits, table } from './markdown.ts';
import { type Server, startServer } from './process.ts';
import { cpuSeconds, residentBytes, threadCpuSeconds } from './resources.ts';
import { engineOf, engines } from './storage.ts';
import { startVault, type Vault } from './vault.ts';

const megabyte = 1_048_576;
const perSecondGoal = 2_000;
const p99GoalMs = 500;
const bulkLines = 1_000;
const pollMs = 100;
/** Connections of the steady load. */
const creatingMax = 64;

const { values: flags } = parseArgs({
  options: {
    engine: { type: 'string', multiple: true, default: Object.keys(engines) },
    webhooks: { type: 'string', default: '4' },
    /** Events that wait when the receivers begin to respond. */
    waiting: { type: 'string', default: '100000' },
    /** Of the steady load. */
    rate: { type: 'string', default: '500' },
    seconds: { type: 'string', default: '20' },
  },
});
const webhooks = Number(flags.webhooks);
const waiting = Number(flags.waiting);

interface Result {
  readonly engine: string;
  readonly perSecond: number;
  /** Of one delivery, in milliseconds of processor time: of the vault's process, and of its delivering thread. */
  readonly vaultMs: number;
  readonly threadMs: number;
  readonly databaseMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Events a second that were really committed in the steady load. */
  readonly rate: number;
  /** More than before, with all events waiting. */
  readonly megabytes: number;
  readonly lost: number;
}

using directory = mkdtempDisposableSync(join(tmpdir(), 'strongroom-bench-'));
const tlsPort = await freePort();
const identity = writeIdentity(directory.path);
const results: Result[] = [];
for (const engine of flags.engine) results.push(await measure(engine));
report();

function writeIdentity(path: string) {
  const authority = newAuthority();
  const { cert, key } = authority.issue('receivers');
  const write = (name: string, text: string) => {
    const file = join(path, name);
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  };
  return {
    RECEIVERS_CERT: write('cert', cert),
    RECEIVERS_KEY: write('key', key),
    authorities: write('ca', authority.cert),
  };
}

async function measure(engine: string): Promise<Result> {
  const port = await freePort();
  const { authorities, ...files } = identity;
  const receivers = await startServer({
    script: 'exec node bench/webhook-receivers.ts',
    port,
    readyPath: '/readyz',
    env: { ...files, RECEIVERS_PORT: String(port), RECEIVERS_TLS_PORT: String(tlsPort) },
  });
  const storage = await engineOf(engine)();
  const env = {
    ...storage.env,
    STRONGROOM_OUTBOUND_ALLOW: `localhost:${tlsPort}`,
    STRONGROOM_OUTBOUND_CA: authorities,
  };
  const vault = await startVault({ ...storage, env });
  try {
    await createWebhook(vault, 0);
    await createTokens(vault, bulkLines);
    await untilArrived(receivers, bulkLines);
    const steady = await measureSteady(receivers, vault);
    for (let count = 1; count < webhooks; count += 1) await createWebhook(vault, count);
    const drained = await measureBacklog(receivers, vault);
    return { engine, ...drained, ...steady };
  } finally {
    await vault.close();
    await receivers.stop();
  }
}

async function createWebhook({ server, managementKey }: Vault, count: number): Promise<void> {
  const response = await fetch(`${server.url}/webhooks`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'svc-api-key': managementKey },
    body: JSON.stringify({
      name: `bench ${count}`,
      url: `https://localhost:${tlsPort}/${count}`,
      events: ['token.created'],
    }),
  });
  if (response.status !== 201) throw new Error(`no webhook: ${await response.text()}`);
}

/** In bulk. */
async function createTokens({ server, keys }: Vault, count: number): Promise<void> {
  const line = `${JSON.stringify({ type: 'token', data: 'x'.repeat(16) })}\n`;
  for (let left = count; left > 0; left -= bulkLines) {
    const response = await fetch(`${server.url}/tokens/bulk`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-ndjson', 'svc-api-key': keys.reveal },
      body: line.repeat(Math.min(left, bulkLines)),
    });
    if (response.status !== 200) throw new Error(await response.text());
    await response.arrayBuffer();
  }
}

async function ask<R>({ url }: Server, path: string): Promise<R> {
  return (await fetch(url + path)).json() as Promise<R>;
}

interface Arrived {
  readonly arrived: number;
  /** Different ones. */
  readonly events: number;
}

async function untilArrived(receivers: Server, count: number): Promise<void> {
  while ((await ask<Arrived>(receivers, '/arrived')).events < count) await pause(pollMs);
}

/** Memory while all events wait, and then the rate at which half of the deliveries arrive: the last ones are retries. */
async function measureBacklog(receivers: Server, { server, storage, ...vault }: Vault) {
  await pause(1_000);
  const before = residentBytes(server.pid);
  await ask(receivers, '/hold');
  await createTokens({ server, storage, ...vault }, waiting);
  await pause(3_000);
  const megabytes = (residentBytes(server.pid) - before) / megabyte;
  const { events } = await ask<Arrived>(receivers, '/arrived');
  await ask(receivers, '/release');
  // What was held back comes again after five seconds, and one attempt at a time until one succeeds.
  await untilArrived(receivers, events + webhooks);
  await pause(1_000);
  const begun = performance.now();
  const start = await ask<Arrived>(receivers, '/arrived');
  const used = cpuUsed(server.pid, storage.cpuSeconds);
  const half = Math.min(start.events + (waiting * webhooks) / 2, events + waiting * webhooks * 0.9);
  // What timed out while responses were held back comes again minutes later, and is not waited for.
  await untilArrived(receivers, half);
  const end = await ask<Arrived>(receivers, '/arrived');
  const count = end.events - start.events;
  const perSecond = (count / (performance.now() - begun)) * 1_000;
  const { process: all, thread, database } = used();
  const each = (seconds: number) => (seconds / count) * 1_000;
  return {
    perSecond,
    megabytes,
    vaultMs: each(all),
    threadMs: each(thread),
    databaseMs: each(database),
  };
}

function cpuUsed(pid: number, ofDatabase: () => number) {
  const ofThread = () =>
    threadCpuSeconds(pid).find(({ name }) => name === 'delivering')?.seconds ?? Number.NaN;
  const now = () => ({ process: cpuSeconds(pid), thread: ofThread(), database: ofDatabase() });
  const before = now();
  return () => {
    const after = now();
    return {
      process: after.process - before.process,
      thread: after.thread - before.thread,
      database: after.database - before.database,
    };
  };
}

/** For a third of what `fetch` takes of the cores that it shares with the vault. */
function create({ server, keys }: Vault, agent: Agent, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'svc-api-key': keys.reveal };
    const options = { method: 'POST', agent, headers };
    const sent = request(`${server.url}/tokens`, options, (response) => {
      response.resume().on('end', resolve).on('error', reject);
      if (response.statusCode !== 201) reject(new Error(`create gave ${response.statusCode}`));
    });
    sent.on('error', reject).end(body);
  });
}

/** Creates one by one, each at its time, however long others take. */
async function measureSteady(receivers: Server, vault: Vault) {
  const body = JSON.stringify({ type: 'token', data: 'x'.repeat(16) });
  const { events } = await ask<Arrived>(receivers, '/arrived');
  await ask(receivers, '/milliseconds');
  const count = Number(flags.rate) * Number(flags.seconds);
  const begun = performance.now();
  const sent: Promise<unknown>[] = [];
  const agent = new Agent({ keepAlive: true, maxSockets: creatingMax });
  for (let index = 0; index < count; index += 1) {
    const dueMs = begun + (index / Number(flags.rate)) * 1_000 - performance.now();
    if (dueMs > 1) await pause(dueMs);
    sent.push(create(vault, agent, body));
  }
  await Promise.all(sent);
  agent.destroy();
  const seconds = (performance.now() - begun) / 1_000;
  await Promise.race([untilArrived(receivers, events + count), pause(10_000)]);
  const end = await ask<Arrived>(receivers, '/arrived');
  const { milliseconds } = await ask<{ milliseconds: number[] }>(receivers, '/milliseconds');
  const sorted = milliseconds.toSorted((one, other) => one - other);
  const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
  const lost = events + count - end.events;
  return { p50Ms: at(0.5), p99Ms: at(0.99), rate: count / seconds, lost };
}

function report(): void {
  const columns: readonly Column<Result>[] = [
    { title: 'engine', cell: ({ engine }) => engine },
    { title: 'deliveries/s', cell: ({ perSecond }) => digits(perSecond) },
    { title: 'goal', cell: () => digits(perSecondGoal) },
    { title: 'CPU ms each: vault', cell: ({ vaultMs }) => digits(vaultMs, 2) },
    { title: 'of these the thread', cell: ({ threadMs }) => digits(threadMs, 2) },
    { title: 'database', cell: ({ databaseMs }) => digits(databaseMs, 2) },
    { title: 'commits/s', cell: ({ rate }) => digits(rate) },
    { title: 'commit to arrival, p50 ms', cell: ({ p50Ms }) => digits(p50Ms) },
    { title: 'p99 ms', cell: ({ p99Ms }) => digits(p99Ms) },
    { title: 'goal', cell: () => digits(p99GoalMs) },
    { title: `more MB with ${waiting} waiting`, cell: ({ megabytes }) => digits(megabytes) },
    { title: 'lost', cell: ({ lost }) => digits(lost) },
  ];
  process.stdout.write(`${describeMachine('autocannon')}\n\n${table(columns, results)}\n`);
}
