/** The vault under measurement: `strongroom serve` in its own process, driven through its public API. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { startPostgres } from '../tests/support/postgres.ts';
import { freePort } from '../tests/support/temporary.ts';
import { cpuSeconds, type Server, startServer } from './process.ts';

/** Where the vault keeps its data, and how that can be looked at from outside. */
interface Storage {
  readonly env: Readonly<Record<string, string>>;
  /** Of the database alone; meaningful while the vault is stopped. */
  bytes(): Promise<number>;
  /** Processor time of a database server beside the vault; 0 for none. */
  cpuSeconds(): number;
  close(): Promise<void>;
}

export const engines: Readonly<Record<string, () => Promise<Storage>>> = {
  embedded: async () => {
    const directory = mkdtempSync(join(tmpdir(), 'strongroom-bench-'));
    return {
      env: { STRONGROOM_DATA_DIR: directory },
      bytes: async () => directoryBytes(directory),
      cpuSeconds: () => 0,
      close: async () => rmSync(directory, { recursive: true }),
    };
  },

  postgres: async () => {
    const directory = mkdtempSync(join(tmpdir(), 'strongroom-bench-'));
    const postgres = await startPostgres();
    const url = await postgres.createDatabase();
    return {
      env: { STRONGROOM_DATA_DIR: directory, STRONGROOM_DATABASE_URL: url },
      bytes: () => databaseBytes(url),
      cpuSeconds: () => cpuSeconds(postgres.pid),
      async close() {
        await postgres.stop();
        rmSync(directory, { recursive: true });
      },
    };
  },
};

export interface Vault {
  /** The process that runs now. */
  readonly server: Server;
  readonly storage: Storage;
  /** Stops, measures the stored bytes and starts again on the same data. */
  restart(): Promise<{ storedBytes: number }>;
  /** A new private application's key. It may do everything with tokens, and sees them transformed so. */
  createApplication(transform: 'reveal' | 'mask'): Promise<string>;
  createToken(key: string, body: string): Promise<string>;
  /** POST with a body, else GET; the answer's text. */
  send(key: string, path: string, body?: string): Promise<string>;
  /** The answer's text. */
  getToken(key: string, id: string): Promise<string>;
  close(): Promise<void>;
}

const tokenPermissions = ['create', 'read', 'update', 'delete', 'search', 'use'].map(
  (operation) => `token:${operation}`,
);

export async function startVault(storage: Storage): Promise<Vault> {
  const managementKey = `bench_${randomBytes(24).toString('hex')}`;
  const port = await freePort();
  const start = () =>
    startServer({
      command: ['src/cli/main.ts', 'serve'],
      port,
      readyPath: '/readyz',
      env: {
        ...storage.env,
        STRONGROOM_PORT: String(port),
        STRONGROOM_BOOTSTRAP_KEY: managementKey,
      },
    });
  let server = await start();

  const call = async (key: string, path: string, body?: string): Promise<string> => {
    const method = body === undefined ? 'GET' : 'POST';
    const response = await fetch(server.url + path, {
      method,
      headers: headersOf(key),
      body: body ?? null,
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} gave ${response.status}: ${text}`);
    return text;
  };

  return {
    get server() {
      return server;
    },
    storage,
    async restart() {
      await server.stop();
      const storedBytes = await storage.bytes();
      server = await start();
      return { storedBytes };
    },
    async createApplication(transform) {
      const rule = {
        description: `Benchmark, ${transform}`,
        priority: 1,
        container: '/',
        permissions: tokenPermissions,
        transform,
      };
      const application = { name: `bench-${transform}`, type: 'private', rules: [rule] };
      return JSON.parse(await call(managementKey, '/applications', JSON.stringify(application)))
        .key;
    },
    async createToken(key, body) {
      return JSON.parse(await call(key, '/tokens', body)).id;
    },
    getToken: (key, id) => call(key, `/tokens/${id}`),
    send: call,
    async close() {
      await server.stop();
      await storage.close();
    },
  };
}

export function headersOf(key: string): Record<string, string> {
  return { 'content-type': 'application/json', 'svc-api-key': key };
}

function directoryBytes(directory: string): number {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}

async function databaseBytes(url: string): Promise<number> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query('select pg_database_size(current_database()) as bytes');
    return Number(rows[0].bytes);
  } finally {
    await client.end();
  }
}
