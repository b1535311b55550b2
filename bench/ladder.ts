/**
 * What a create and a read cost on Citus with one, two and three workers, beside the same PostgreSQL without it: by
 * processor time, because all of it runs on this machine. Many tenants are equally busy. Needs `TEST_CITUS_BIN`.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createTenantWithKey } from '../src/access/tenants/bootstrap.ts';
import { readConfig } from '../src/runtime/config/config.ts';
import { openVault } from '../src/runtime/open-vault.ts';
import { citusVariable } from '../tests/support/citus-cluster.ts';
import { startPostgres } from '../tests/support/postgres.ts';
import { binariesVariable } from '../tests/support/postgres-installation.ts';
import { type Column, digits, table } from './markdown.ts';
import { cpuSeconds } from './resources.ts';
import type { Storage } from './storage.ts';
import { headersOf, startVault, type Vault } from './vault.ts';

const { values: flags } = parseArgs({
  options: {
    tenants: { type: 'string', default: '32' },
    seconds: { type: 'string', default: '5' },
    clients: { type: 'string', default: '64' },
    workers: { type: 'string', multiple: true, default: ['0', '1', '2', '3'] },
  },
});
const warmUpMs = 1_500;

interface Cost {
  readonly perSecond: number;
  readonly vaultUs: number;
  readonly databaseUs: number;
}

interface Result {
  readonly name: string;
  readonly creates: Cost;
  readonly reads: Cost;
}

const costColumns = (what: 'creates' | 'reads'): Column<Result>[] => [
  { title: `${what} a second`, cell: (result) => digits(result[what].perSecond) },
  { title: 'vault, µs', cell: (result) => digits(result[what].vaultUs) },
  { title: 'database, µs', cell: (result) => digits(result[what].databaseUs) },
  {
    title: 'a second of a core',
    cell: (result) => digits(1e6 / (result[what].vaultUs + result[what].databaseUs)),
  },
];

process.env[binariesVariable] = process.env['TEST_CITUS_BIN'] ?? '';
const results: Result[] = [];
for (const workers of flags.workers.map(Number)) results.push(await measure(workers));
const columns: Column<Result>[] = [
  { title: '', cell: ({ name }) => name },
  ...costColumns('creates'),
  ...costColumns('reads'),
];
process.stdout.write(`${table(columns, results)}\n`);

async function measure(workers: number): Promise<Result> {
  const storage = await storageOf(workers);
  const vault = await startVault(storage);
  try {
    const keys = await tenantKeys(vault);
    const paths = keys.map((): string[] => []);
    const creates = await load(vault, async (at) => {
      const body = JSON.stringify({ type: 'token', data: 'of this tenant' });
      const { id } = JSON.parse(
        await vault.send('POST', { path: '/tokens', body }, keys[at] ?? ''),
      );
      paths[at]?.push(`/tokens/${id}`);
    });
    const reads = await load(vault, async (at) => {
      const own = paths[at] ?? [];
      const path = own[Math.floor(Math.random() * own.length)] ?? '';
      await vault.send('GET', { path }, keys[at] ?? '');
    });
    const name = workers === 0 ? 'PostgreSQL' : `Citus, ${workers} worker${workers > 1 ? 's' : ''}`;
    return { name, creates, reads };
  } finally {
    await vault.close();
  }
}

/** Each client goes from tenant to tenant, so that all are equally busy. */
async function load(vault: Vault, once: (tenant: number) => Promise<void>): Promise<Cost> {
  let done = 0;
  let isOver = false;
  let next = 0;
  const client = async () => {
    while (!isOver) {
      await once(next++ % Number(flags.tenants));
      done++;
    }
  };
  const clients = Array.from({ length: Number(flags.clients) }, client);
  await new Promise((resolve) => setTimeout(resolve, warmUpMs));
  const used = () => ({
    done,
    at: performance.now(),
    vault: cpuSeconds(vault.server.pid),
    database: vault.storage.cpuSeconds(),
  });
  const before = used();
  await new Promise((resolve) => setTimeout(resolve, Number(flags.seconds) * 1_000));
  const after = used();
  isOver = true;
  await Promise.all(clients);
  const requests = after.done - before.done;
  return {
    perSecond: (1_000 * requests) / (after.at - before.at),
    vaultUs: (1e6 * (after.vault - before.vault)) / requests,
    databaseUs: (1e6 * (after.database - before.database)) / requests,
  };
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
      const response = await fetch(`${vault.server.url}/applications`, {
        method: 'POST',
        headers: headersOf(newKey),
        body: JSON.stringify(application),
      });
      keys.push(((await response.json()) as { readonly key: string }).key);
    }
    return keys;
  } finally {
    await opened.close();
  }
}

async function storageOf(workers: number): Promise<Storage> {
  process.env[citusVariable] = workers > 0 ? 'on' : '';
  const directory = mkdtempSync(join(tmpdir(), 'strongroom-bench-'));
  const postgres = await startPostgres({ workers });
  const url = await postgres.createDatabase();
  return {
    env: { STRONGROOM_DATA_DIR: directory, STRONGROOM_DATABASE_URL: url },
    version: '',
    bytes: async () => ({ all: 0, log: 0 }),
    cpuSeconds: () => postgres.pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0),
    close: async () => {
      await postgres.stop();
      rmSync(directory, { recursive: true });
    },
  };
}
