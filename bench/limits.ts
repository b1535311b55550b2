/** What the promises about time cost: an idempotency key on a create, and removing expired tokens beside reads. */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { type Running, serve } from '../src/app.ts';
import { readConfig } from '../src/config.ts';
import { expireTokens } from '../src/jobs/expire-tokens.ts';
import { instantAfter, systemClock } from '../src/lib/clock.ts';
import type { TokenId } from '../src/lib/ids.ts';
import { createLog } from '../src/lib/log.ts';
import type { Row } from '../src/store/tables.ts';
import { cardBody } from './cards.ts';
import type { LoadResult } from './job.ts';
import { applyLoad } from './load.ts';
import { cpuSeconds } from './process.ts';
import { median } from './report.ts';
import { engines, headersOf, startVault, type Vault } from './vault.ts';

const hourMs = 3_600_000;
const rowsPerCommit = 500;
const readTokens = 200;
const managementKey = 'limits.bench.management.key.00000000';

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '5' },
    connections: { type: 'string', default: '64' },
    tokens: { type: 'string', default: '60000' },
    engine: { type: 'string', multiple: true },
    measure: { type: 'string', multiple: true },
  },
});
const seconds = Number(flags.seconds);
const rounds = Number(flags.rounds);
const connections = Number(flags.connections);
const measures = flags.measure ?? ['key', 'expiry'];

let serial = randomInt(10 ** 9);

for (const engine of flags.engine ?? Object.keys(engines)) {
  const open = engines[engine];
  if (open === undefined) throw new Error(`there is no engine ${engine}`);
  if (measures.includes('key')) {
    const vault = await startVault(await open());
    await measureKey(engine, vault).finally(() => vault.close());
  }
  if (measures.includes('expiry')) {
    const storage = await open();
    await measureExpiry(engine, storage.env).finally(() => storage.close());
  }
}

interface Creates {
  readonly perSecond: number;
  /** Processor time of the vault and its database, in microseconds. */
  readonly cpuMicros: number;
}

/** Creates with and without a key take turns, so that whatever slows the machine slows both. */
async function measureKey(engine: string, vault: Vault): Promise<void> {
  const { server, storage } = vault;
  const key = await vault.createApplication('reveal');
  const cpu = () => cpuSeconds(server.pid) + storage.cpuSeconds();
  const create = async (idempotent: boolean): Promise<Creates> => {
    const before = cpu();
    const job = { url: server.url, headers: headersOf(key), connections, seconds };
    const result = await applyLoad({ ...job, work: { serial, idempotent } });
    serial += result.succeeded + result.failed + connections;
    if (result.failed > 0) throw new Error(`${result.failed} creates failed`);
    const perSecond = result.succeeded / result.seconds;
    return { perSecond, cpuMicros: ((cpu() - before) / result.succeeded) * 1e6 };
  };
  await create(true);
  const results: { plain: Creates; keyed: Creates }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const plain = await create(false);
    const keyed = await create(true);
    results.push({ plain, keyed });
    const told = ({ perSecond, cpuMicros }: Creates) =>
      `${perSecond.toFixed(0)}/s, ${cpuMicros.toFixed(0)} µs of processor time each`;
    say(`${engine}: without a key ${told(plain)}; with one ${told(keyed)}`);
  }
  const throughput = median(results.map(({ plain, keyed }) => keyed.perSecond / plain.perSecond));
  const cost = median(results.map(({ plain, keyed }) => keyed.cpuMicros / plain.cpuMicros));
  say(
    `${engine}: creates with a key at ${throughput.toFixed(2)} of the throughput, ` +
      `for ${cost.toFixed(2)} of the processor time (medians)`,
  );
}

/** The job runs in the server's own process, as it does in service; the reads come from another one. */
async function measureExpiry(engine: string, env: Readonly<Record<string, string>>): Promise<void> {
  const environment = {
    ...env,
    STRONGROOM_PORT: '0',
    STRONGROOM_BOOTSTRAP_KEY: managementKey,
    STRONGROOM_LOG_LEVEL: 'silent',
  };
  const running = await serve(readConfig(environment), { log: createLog('silent') });
  try {
    const key = await applicationKey(running);
    const paths: string[] = [];
    for (let count = 0; count < readTokens; count += 1) {
      serial += 1;
      paths.push(`/tokens/${(await post(running, key, cardBody(serial)))['id']}`);
    }
    const read = (time: number): Promise<LoadResult> =>
      applyLoad({
        url: running.url,
        headers: headersOf(key),
        connections,
        seconds: time,
        work: { paths },
      });
    await read(2);
    const results: { rate: number; alone: number; beside: number }[] = [];
    for (let round = 0; round < rounds; round += 1) {
      await insertExpired(running, round);
      const alone = await read(seconds);
      const reading = read(seconds);
      const rate = await removalRate(running, AbortSignal.timeout(seconds * 1000));
      const beside = await reading;
      results.push({ rate, alone: alone.p99Ms, beside: beside.p99Ms });
      say(
        `${engine}: ${rate.toFixed(0)} tokens/s removed; reads ` +
          `${(alone.succeeded / alone.seconds).toFixed(0)}/s with p99 ${alone.p99Ms.toFixed(1)} ms alone, ` +
          `${(beside.succeeded / beside.seconds).toFixed(0)}/s with p99 ${beside.p99Ms.toFixed(1)} ms beside it`,
      );
    }
    const rate = median(results.map((one) => one.rate));
    const ratio = median(results.map((one) => one.beside / one.alone));
    say(`${engine}: ${rate.toFixed(0)} tokens/s; p99 of reads at ${ratio.toFixed(2)} (medians)`);
    await insertExpired(running, rounds);
    const idle = await removalRate(running, new AbortController().signal);
    say(`${engine}: ${idle.toFixed(0)} tokens/s without other load`);
  } finally {
    await running.stop();
  }
}

/** Tokens removed a second, until they or the time are used up. */
async function removalRate(running: Running, stopping: AbortSignal): Promise<number> {
  const started = performance.now();
  const count = await expireTokens(running.vault, stopping);
  return (count / (performance.now() - started)) * 1000;
}

/** Copies of one token, with its search terms, that expired an hour ago. */
async function insertExpired({ vault: { store } }: Running, round: number): Promise<void> {
  const [template] = await store.select((db) => db.selectFrom('tokens').selectAll().limit(1));
  const [entry] = await store.select((db) => db.selectFrom('logs').selectAll().limit(1));
  if (!template || !entry) throw new Error('there is no token to copy');
  const expires_at = instantAfter(systemClock.now(), -hourMs);
  const count = Number(flags.tokens);
  for (let first = 0; first < count; first += rowsPerCommit) {
    const tokens = Array.from({ length: rowsPerCommit }, (_, index): Row<'tokens'> => {
      const token_id = `gone-${round}-${first + index}` as TokenId;
      return { ...template, token_id, search_indexes: '["{{ data.number }}"]', expires_at };
    });
    const search_terms = tokens.map(({ tenant_id, token_id, created_at }) => {
      return { tenant_id, token_id, term: `term of ${token_id}`, created_at };
    });
    await store.commit({ insert: { tokens, search_terms }, entries: [entry] });
  }
}

async function applicationKey(running: Running): Promise<string> {
  const rule = { priority: 1, container: '/', transform: 'reveal' };
  const permissions = ['token:create', 'token:read'];
  const application = { name: 'bench', type: 'private', rules: [{ ...rule, permissions }] };
  const made = await post(running, managementKey, JSON.stringify(application), '/applications');
  return made['key'] ?? '';
}

async function post(
  running: Running,
  key: string,
  body: string,
  path = '/tokens',
): Promise<Readonly<Record<string, string>>> {
  const response = await fetch(running.url + path, {
    method: 'POST',
    headers: headersOf(key),
    body,
  });
  if (!response.ok) throw new Error(`POST ${path} gave ${response.status}`);
  return (await response.json()) as Readonly<Record<string, string>>;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
