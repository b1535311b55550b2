/**
 * What a rotation of a tenant's keys costs: rows sealed again in a second of processor time, of the vault and of the
 * database apart, and what reads notice of it. Every token is a card with a fingerprint and a search term.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { LoadResult } from './job.ts';
import { defaultGenerator, loadBy } from './load.ts';
import { type Column, digits, table } from './markdown.ts';
import { grow, nobody } from './population.ts';
import { cpuSeconds } from './resources.ts';
import { engineOf, engines } from './storage.ts';
import { headersOf, startVault, type Vault } from './vault.ts';

const { values: flags } = parseArgs({
  options: {
    tokens: { type: 'string', default: '100000' },
    purpose: { type: 'string', multiple: true, default: ['data', 'search', 'fingerprint'] },
    engine: { type: 'string', multiple: true, default: Object.keys(engines) },
    connections: { type: 'string', default: '4' },
    /** Of reads without a rotation; 0 leaves the reads out. */
    seconds: { type: 'string', default: '8' },
  },
});
const tokens = Number(flags.tokens);
const seconds = Number(flags.seconds);
const connections = Number(flags.connections);
const load = loadBy(defaultGenerator);
const lookMs = 250;
/** Each look leaves an entry in the log, and beside other commits the job takes small steps for two seconds. */
const lookAloneMs = 10_000;

interface Sealed {
  readonly rows: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly databaseCpuSeconds: number;
}

interface Result {
  readonly engine: string;
  readonly purpose: string;
  readonly alone: Sealed;
  readonly idle?: LoadResult;
  readonly beside?: LoadResult & { readonly rate: number };
}

const perSecond = ({ succeeded, seconds: took }: LoadResult) => digits(succeeded / took);

const columns: readonly Column<Result>[] = [
  { title: `${digits(tokens)} tokens`, cell: ({ engine, purpose }) => `${engine}, ${purpose}` },
  {
    title: "rows in the vault's processor second",
    cell: ({ alone }) => digits(alone.rows / alone.cpuSeconds),
  },
  {
    title: 'rows in all processor seconds',
    cell: ({ alone }) => digits(alone.rows / (alone.cpuSeconds + alone.databaseCpuSeconds)),
  },
  { title: 'rows/s alone', cell: ({ alone }) => digits(alone.rows / alone.seconds) },
  { title: 'rows/s beside reads', cell: ({ beside }) => (beside ? digits(beside.rate) : '') },
  { title: 'reads/s idle', cell: ({ idle }) => (idle ? perSecond(idle) : '') },
  { title: 'reads/s beside', cell: ({ beside }) => (beside ? perSecond(beside) : '') },
  { title: 'p50 idle, ms', cell: ({ idle }) => (idle ? digits(idle.p50Ms, 2) : '') },
  { title: 'p50 beside, ms', cell: ({ beside }) => (beside ? digits(beside.p50Ms, 2) : '') },
  { title: 'p99 idle, ms', cell: ({ idle }) => (idle ? digits(idle.p99Ms, 2) : '') },
  { title: 'p99 beside, ms', cell: ({ beside }) => (beside ? digits(beside.p99Ms, 2) : '') },
];

const results: Result[] = [];
for (const engine of flags.engine) {
  const vault = await startVault(await engineOf(engine)());
  try {
    const { population, tokensPerSecond } = await grow(vault, nobody, tokens);
    say(`${engine}: imported ${digits(tokensPerSecond)} tokens/s`);
    const requests = population.sample.map(({ id }) => ({ path: `/tokens/${id}` }));
    for (const purpose of flags.purpose) {
      const alone = await begin(vault, purpose).then(({ finished }) => finished(lookAloneMs));
      const result = { engine, purpose, alone };
      results.push(
        seconds > 0 ? { ...result, ...(await besideReads(vault, purpose, requests)) } : result,
      );
      say(table(columns, results.slice(-1)));
    }
  } finally {
    await vault.close();
  }
}
say(`\n${table(columns, results)}`);

/** The reads last as long as the rows of the tenant are sealed again, or a little less. */
async function besideReads(vault: Vault, purpose: string, requests: { readonly path: string }[]) {
  const job = {
    url: vault.server.url,
    headers: headersOf(vault.keys.reveal),
    connections,
    requests,
  };
  const read = (time: number) => load({ ...job, method: 'GET', serial: 0, seconds: time });
  await read(2);
  const idle = await read(seconds);
  const { finished, rowsDone } = await begin(vault, purpose);
  const before = { rows: await rowsDone(), at: performance.now() };
  const reads = await read(seconds);
  const rate = ((await rowsDone()) - before.rows) / ((performance.now() - before.at) / 1_000);
  await finished();
  return { idle, beside: { ...reads, rate } };
}

interface Rotation {
  readonly state: string;
  readonly rows_done: number;
}

/** Begins a rotation and returns when its first rows are sealed again. */
async function begin(vault: Vault, purpose: string) {
  const { server, storage, managementKey } = vault;
  const path = '/tenants/self/keys/rotations';
  await vault.send('POST', { path, body: JSON.stringify({ purpose }) }, managementKey);
  const now = async (): Promise<Rotation> => {
    const text = await vault.send('GET', { path }, managementKey);
    const all = JSON.parse(text).data ?? JSON.parse(text);
    const rotations: (Rotation & { purpose: string })[] = Array.isArray(all) ? all : all.rotations;
    const found = rotations.find((one) => one.purpose === purpose);
    if (found === undefined) throw new Error(`there is no rotation in ${text}`);
    return found;
  };
  const used = () => ({
    at: performance.now(),
    cpu: cpuSeconds(server.pid),
    database: storage.cpuSeconds(),
  });
  while ((await now()).state !== 'sealing') await pause(lookMs);
  const before = used();
  let after = before;
  let rows = 0;
  return {
    rowsDone: async () => (await now()).rows_done,
    finished: async (everyMs = lookMs): Promise<Sealed> => {
      for (let last = await now(); last.state !== 'finished'; last = await now()) {
        // What follows the last row is a wait, and a look at all rows.
        if (last.rows_done > rows) after = used();
        rows = last.rows_done;
        await pause(everyMs);
      }
      const end = used();
      return {
        rows: (await now()).rows_done,
        seconds: (after.at - before.at) / 1_000,
        cpuSeconds: end.cpu - before.cpu,
        databaseCpuSeconds: end.database - before.database,
      };
    },
  };
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
