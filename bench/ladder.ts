/**
 * What reads, creates and imports cost on each step of the ladder in docs/growth.md: the embedded database, PostgreSQL,
 * PostgreSQL behind PgBouncer, and Citus, each with one and two servers of the vault. By processor time, because all of
 * it runs on this machine. Many tenants are equally busy. Citus needs `TEST_CITUS_BIN`, whose PostgreSQL all steps have
 * then.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createTenantWithKey } from '../src/access/tenants/bootstrap.ts';
import { readConfig } from '../src/runtime/config/config.ts';
import { openVault } from '../src/runtime/open-vault.ts';
import { citusVariable } from '../tests/support/citus-cluster.ts';
import { beginPgBouncer, versionOf } from '../tests/support/poolers.ts';
import { startPostgres } from '../tests/support/postgres.ts';
import { binariesVariable } from '../tests/support/postgres-installation.ts';
import { cardBody, cardNumber, takeSerials } from './cards.ts';
import { bulkTarget, postLines } from './lines.ts';
import { type Column, digits, table } from './markdown.ts';
import type { Server } from './process.ts';
import { cpuSeconds } from './resources.ts';
import { engineOf, type Storage } from './storage.ts';
import { headersOf, startVault, type Vault } from './vault.ts';

interface Step {
  readonly name: string;
  readonly storage: () => Promise<Storage>;
  /** Why it cannot be measured here. */
  readonly missing?: string | undefined;
  readonly serversMax: number;
}

const citus = process.env['TEST_CITUS_BIN'];
const pooler = versionOf('pgbouncer');
const citusOn = (workers: number): Step => ({
  name: workers === 1 ? 'Citus, 1 worker' : `Citus, ${workers} workers`,
  storage: () => databaseWith({ workers }),
  missing: citus === undefined ? 'TEST_CITUS_BIN is not set' : undefined,
  serversMax: 2,
});
const steps = {
  embedded: { name: 'embedded', storage: engineOf('embedded'), serversMax: 1 },
  postgres: { name: 'PostgreSQL', storage: () => databaseWith({}), serversMax: 2 },
  pgbouncer: {
    name: 'PostgreSQL behind PgBouncer',
    storage: () => databaseWith({ isPooled: true }),
    missing: pooler === undefined ? 'there is no pgbouncer' : undefined,
    serversMax: 2,
  },
  citus1: citusOn(1),
  citus2: citusOn(2),
  citus3: citusOn(3),
} as const satisfies Record<string, Step>;

const { values: flags } = parseArgs({
  options: {
    step: {
      type: 'string',
      multiple: true,
      default: ['embedded', 'postgres', 'pgbouncer', 'citus2'],
    },
    servers: { type: 'string', multiple: true, default: ['1', '2'] },
    tenants: { type: 'string', default: '32' },
    seconds: { type: 'string', default: '4' },
    clients: { type: 'string', default: '64' },
    imported: { type: 'string', default: '6000' },
  },
});
const warmUpMs = 1_500;

interface Cost {
  readonly vaultUs: number;
  /** With the pooler, where there is one. */
  readonly databaseUs: number;
}

interface Result {
  readonly name: string;
  readonly servers: number;
  readonly reads: Cost;
  readonly creates: Cost;
  readonly imports: Cost;
}

const costColumns = (what: 'reads' | 'creates' | 'imports'): Column<Result>[] => [
  { title: `${what}: vault, µs`, cell: (result) => digits(result[what].vaultUs) },
  { title: 'database, µs', cell: (result) => digits(result[what].databaseUs) },
  {
    title: 'a second of a core',
    cell: (result) => digits(1e6 / (result[what].vaultUs + result[what].databaseUs)),
  },
];

if (citus !== undefined) process.env[binariesVariable] = citus;
const results: Result[] = [];
for (const name of flags.step) {
  const step: Step | undefined = steps[name as keyof typeof steps];
  if (step === undefined) throw new Error(`--step is one of ${Object.keys(steps).join(', ')}`);
  if (step.missing !== undefined) {
    process.stderr.write(`${step.name} was not measured: ${step.missing}\n`);
    continue;
  }
  for (const servers of flags.servers.map(Number)) {
    if (servers <= step.serversMax) results.push(await measure(step, servers));
  }
}
const columns: Column<Result>[] = [
  { title: 'step', cell: ({ name }) => name },
  { title: 'servers', cell: ({ servers }) => digits(servers) },
  ...costColumns('reads'),
  ...costColumns('creates'),
  ...costColumns('imports'),
];
process.stdout.write(`${table(columns, results)}\n`);

async function measure(step: Step, servers: number): Promise<Result> {
  const vault = await startVault(await step.storage());
  try {
    const all = [vault.server];
    while (all.length < servers) all.push(await vault.addServer());
    const keys = await tenantKeys(vault);
    const paths = keys.map((): string[] => []);
    const creates = await load(vault, all, async (at, { url }) => {
      const body = JSON.stringify({ type: 'token', data: 'of this tenant' });
      const path = '/tokens';
      const { id } = JSON.parse(await send(url, { method: 'POST', path, body, key: keys[at] }));
      paths[at]?.push(`${path}/${id}`);
    });
    const reads = await load(vault, all, async (at, { url }) => {
      const own = paths[at] ?? [];
      const path = own[Math.floor(Math.random() * own.length)] ?? '';
      await send(url, { method: 'GET', path, key: keys[at] });
    });
    const imports = await importing(vault, all);
    process.stderr.write(`${step.name}, ${servers}: measured\n`);
    return { name: step.name, servers, reads, creates, imports };
  } finally {
    await vault.close();
  }
}

interface Sent {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: string;
  readonly key: string | undefined;
}

async function send(url: string, { method, path, body, key = '' }: Sent): Promise<string> {
  const response = await fetch(url + path, { method, headers: headersOf(key), body: body ?? null });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path} gave ${response.status}: ${text}`);
  return text;
}

interface Used {
  readonly done: number;
  readonly vault: number;
  readonly database: number;
}

function used({ storage }: Vault, servers: readonly Server[], done: number): Used {
  const vault = servers.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0);
  return { done, vault, database: storage.cpuSeconds() };
}

function costOf(before: Used, after: Used): Cost {
  const count = after.done - before.done;
  return {
    vaultUs: (1e6 * (after.vault - before.vault)) / count,
    databaseUs: (1e6 * (after.database - before.database)) / count,
  };
}

/** Each client goes from tenant to tenant and from server to server, so that all are equally busy. */
async function load(
  vault: Vault,
  servers: readonly Server[],
  once: (tenant: number, server: Server) => Promise<void>,
): Promise<Cost> {
  let done = 0;
  let isOver = false;
  let next = 0;
  const client = async (at: number) => {
    while (!isOver) {
      await once(next++ % Number(flags.tenants), servers[at % servers.length] ?? vault.server);
      done++;
    }
  };
  const clients = Array.from({ length: Number(flags.clients) }, (_, at) => client(at));
  await new Promise((resolve) => setTimeout(resolve, warmUpMs));
  const before = used(vault, servers, done);
  await new Promise((resolve) => setTimeout(resolve, Number(flags.seconds) * 1_000));
  const after = used(vault, servers, done);
  isOver = true;
  await Promise.all(clients);
  return costOf(before, after);
}

/** Cards with one search index, through all servers at once; the first tenth warms them up. */
async function importing(vault: Vault, servers: readonly Server[]): Promise<Cost> {
  const post = async (count: number) => {
    const own = Math.ceil(count / servers.length);
    await Promise.all(
      servers.map(({ url }) =>
        postLines(bulkTarget(url, vault.keys.reveal), cards(own), (line) => {
          if (!line.includes('"status":201')) throw new Error(line.toString('utf8'));
        }),
      ),
    );
  };
  const count = Number(flags.imported);
  await post(count / 10);
  const before = used(vault, servers, 0);
  await post(count);
  return costOf(before, used(vault, servers, count));
}

function* cards(count: number): Generator<string> {
  const first = takeSerials(count);
  for (let serial = first; serial < first + count; serial += 1) {
    yield cardBody(cardNumber(serial), { search_indexes: ['{{ data.number }}'] });
  }
}

/** Of a private application of each tenant. */
async function tenantKeys(vault: Vault): Promise<readonly string[]> {
  const opened = await openVault(readConfig({ ...vault.storage.env }));
  const keys: string[] = [];
  try {
    for (let number = 0; number < Number(flags.tenants); number++) {
      const tenant = { tenant: `tenant-${number}`, type: 'test', key: undefined } as const;
      const { newKey = '' } = await createTenantWithKey(opened, tenant);
      const permissions = ['token:create', 'token:read'];
      const rule = { priority: 1, container: '/', permissions, transform: 'reveal' };
      const application = { name: 'bench', type: 'private', rules: [rule] };
      const body = JSON.stringify(application);
      const sent = { method: 'POST', path: '/applications', body, key: newKey } as const;
      keys.push((JSON.parse(await send(vault.server.url, sent)) as { readonly key: string }).key);
    }
    return keys;
  } finally {
    await opened.close();
  }
}

interface DatabaseOptions {
  /** 0 for PostgreSQL alone. */
  readonly workers?: number;
  readonly isPooled?: boolean;
}

async function databaseWith({ workers = 0, isPooled = false }: DatabaseOptions): Promise<Storage> {
  process.env[citusVariable] = workers > 0 ? 'on' : '';
  const directory = mkdtempSync(join(tmpdir(), 'strongroom-bench-'));
  const postgres = await startPostgres({ workers });
  let url = await postgres.createDatabase();
  const pids = [() => postgres.pids];
  const borrowed: (() => void | Promise<void>)[] = [];
  if (isPooled) {
    const lender = { after: (give: () => void | Promise<void>) => void borrowed.push(give) };
    const begun = await beginPgBouncer(lender, url, {
      settings: { default_pool_size: '20' },
      // As docs/postgresql.md says.
      connectQuery: 'set enable_seqscan = off; set enable_bitmapscan = off',
    });
    url = begun.url;
    pids.push(() => [begun.pid]);
  }
  return {
    env: { STRONGROOM_DATA_DIR: directory, STRONGROOM_DATABASE_URL: url },
    version: '',
    bytes: async () => ({ all: 0, log: 0 }),
    cpuSeconds: () => pids.flatMap((of) => of()).reduce((sum, pid) => sum + cpuSeconds(pid), 0),
    close: async () => {
      for (const give of borrowed.reverse()) await give();
      await postgres.stop();
      rmSync(directory, { recursive: true });
    },
  };
}
