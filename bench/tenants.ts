/**
 * What ten thousand tenants cost: a start compared with that of a vault with one, memory after a read in each, and
 * the checkpoints of all of them. Tenants are made through the vault's own functions, their tokens over HTTP.
 */
import { parseArgs } from 'node:util';
import { createTenantWithKey } from '../src/access/tenants/bootstrap.ts';
import { writeCheckpoints } from '../src/audit/checkpoints.ts';
import { type Clock, hour, instantAfter, systemClock } from '../src/base/clock.ts';
import { readConfig } from '../src/runtime/config/config.ts';
import { type Vault as OpenVault, openVault } from '../src/runtime/open-vault.ts';
import { type Column, digits, median, table } from './markdown.ts';
import { cpuSeconds, residentBytes } from './resources.ts';
import { engineOf, engines, type Storage } from './storage.ts';
import { headersOf, startVault, type Vault } from './vault.ts';

/** As the job of a vault without a sink does. */
const checkpointRunsPerHour = 4;
const atOnce = 32;

const { values: flags } = parseArgs({
  options: {
    tenants: { type: 'string', default: '10000' },
    starts: { type: 'string', default: '7' },
    engine: { type: 'string', multiple: true, default: Object.keys(engines) },
  },
});
const tenants = Number(flags.tenants);
const starts = Number(flags.starts);

interface Result {
  readonly engine: string;
  readonly readyOneMs: number;
  readonly readyManyMs: number;
  readonly cpuRatio: number;
  readonly residentOneMb: number;
  readonly residentManyMb: number;
  readonly checkpointMs: number;
  readonly coreShare: number;
  readonly idleMs: number;
}

const columns: readonly Column<Result>[] = [
  { title: `${digits(tenants)} tenants`, cell: ({ engine }) => engine },
  { title: 'ready with one, ms', cell: ({ readyOneMs }) => digits(readyOneMs) },
  { title: 'with all, ms', cell: ({ readyManyMs }) => digits(readyManyMs) },
  { title: 'ratio', cell: ({ readyOneMs, readyManyMs }) => digits(readyManyMs / readyOneMs, 2) },
  { title: 'ratio of processor time', cell: ({ cpuRatio }) => digits(cpuRatio, 2) },
  { title: 'resident with one, MB', cell: ({ residentOneMb }) => digits(residentOneMb) },
  { title: 'after a read in each, MB', cell: ({ residentManyMb }) => digits(residentManyMb) },
  { title: 'CPU ms a checkpoint', cell: ({ checkpointMs }) => digits(checkpointMs, 2) },
  { title: 'of a core, all active', cell: ({ coreShare }) => `${digits(coreShare * 100, 1)} %` },
  { title: 'CPU ms of an idle run', cell: ({ idleMs }) => digits(idleMs, 1) },
];

const results: Result[] = [];
for (const engine of flags.engine) {
  const one = await startVault(await engineOf(engine)());
  const many = await startVault(await engineOf(engine)());
  try {
    results.push(await measure(engine, one, many));
  } finally {
    await one.close();
    await many.close();
  }
}
process.stdout.write(`${table(columns, results)}\n`);

interface Read {
  readonly key: string;
  readonly path: string;
}

async function measure(engine: string, one: Vault, many: Vault): Promise<Result> {
  const oneRead = await tokenOf(one, one.managementKey);
  const keys = await makeTenants(many.storage);
  const reads = await inParallel(keys, (key) => tokenOf(many, key));
  await many.server.stop();
  const checkpoints = await measureCheckpoints(many.storage);
  const ready = { one: [] as Start[], many: [] as Start[] };
  for (let start = 0; start < starts; start++) {
    ready.one.push(await startOf(one));
    ready.many.push(await startOf(many));
  }
  const msOf = (all: readonly Start[]) => median(all.map(({ ms }) => ms));
  const cpuOf = (all: readonly Start[]) => median(all.map(({ cpu }) => cpu));
  await one.restart();
  await many.restart();
  const readAll = (vault: Vault, all: readonly Read[]) =>
    inParallel(all, ({ key, path }) => send(vault, 'GET', { key, path }));
  await readAll(
    one,
    Array.from({ length: tenants }, () => oneRead),
  );
  await readAll(many, reads);
  return {
    engine,
    readyOneMs: msOf(ready.one),
    readyManyMs: msOf(ready.many),
    cpuRatio: cpuOf(ready.many) / cpuOf(ready.one),
    residentOneMb: residentBytes(one.server.pid) / 1e6,
    residentManyMb: residentBytes(many.server.pid) / 1e6,
    ...checkpoints,
  };
}

interface Start {
  readonly ms: number;
  /** Seconds of processor time until then: other work on the machine changes it little. */
  readonly cpu: number;
}

async function startOf(vault: Vault): Promise<Start> {
  await vault.restart();
  const { readyMs: ms, pid } = vault.server;
  const cpu = cpuSeconds(pid);
  await vault.server.stop();
  return { ms, cpu };
}

/** The management keys of all tenants but the first. */
async function makeTenants(storage: Storage): Promise<readonly string[]> {
  const vault = await openVault(readConfig({ ...storage.env }));
  try {
    const names = Array.from({ length: tenants - 1 }, (_, number) => `tenant-${number}`);
    return await inParallel(names, async (tenant) => {
      const { newKey } = await createTenantWithKey(vault, {
        tenant,
        type: 'test',
        key: undefined,
      });
      if (newKey === undefined) throw new Error('a new tenant has a new key');
      return newKey;
    });
  } finally {
    await vault.close();
  }
}

/** A token of the tenant, and who reads it. */
async function tokenOf(vault: Vault, managementKey: string): Promise<Read> {
  const permissions = ['token:create', 'token:read'];
  const rule = { priority: 1, container: '/', permissions, transform: 'reveal' };
  const application = { name: 'bench', type: 'private', rules: [rule] };
  const made = await send(vault, 'POST', {
    key: managementKey,
    path: '/applications',
    body: application,
  });
  const { key } = JSON.parse(made);
  const token = { type: 'token', data: 'of this tenant' };
  const { id } = JSON.parse(await send(vault, 'POST', { key, path: '/tokens', body: token }));
  return { key, path: `/tokens/${id}` };
}

async function send(
  vault: Vault,
  method: 'GET' | 'POST',
  { key, path, body }: Read & { readonly body?: object },
): Promise<string> {
  const response = await fetch(vault.server.url + path, {
    method,
    headers: headersOf(key, method),
    body: body ? JSON.stringify(body) : null,
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path} gave ${response.status}: ${text}`);
  return text;
}

/** In this process, the database server's time included: once for all tenants, and then with nothing to sign. */
async function measureCheckpoints(storage: Storage) {
  let ahead = 0;
  const clock: Clock = { now: () => instantAfter(systemClock.now(), ahead) };
  const vault = await openVault(readConfig({ ...storage.env }), { clock });
  try {
    const all = await runCheckpoints(vault, storage);
    // Notes of logs that have grown are forgotten by then.
    for (let run = 0; run < 2; run++) {
      ahead += hour;
      await runCheckpoints(vault, storage);
    }
    const idle = await runCheckpoints(vault, storage);
    if (all.written < tenants || idle.written > 0) throw new Error('not every log has one');
    return {
      checkpointMs: all.cpuMs / all.written,
      coreShare: (all.cpuMs * checkpointRunsPerHour) / hour,
      idleMs: idle.cpuMs,
    };
  } finally {
    await vault.close();
  }
}

async function runCheckpoints(vault: OpenVault, storage: Storage) {
  const own = process.cpuUsage();
  const database = storage.cpuSeconds();
  const written = await writeCheckpoints(vault, new AbortController().signal);
  const { user, system } = process.cpuUsage(own);
  const cpuMs = (user + system) / 1_000 + (storage.cpuSeconds() - database) * 1_000;
  return { written, cpuMs };
}

async function inParallel<T, R>(
  items: readonly T[],
  work: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const results: R[] = [];
  const entries = items.entries();
  const worker = async () => {
    for (const [at, item] of entries) results[at] = await work(item);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return results;
}
