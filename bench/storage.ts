/** Where a vault under measurement keeps its data, and how that is looked at from outside: one row an engine. */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Client } from 'pg';
import { startPostgres } from '../tests/support/postgres.ts';
import { cpuSeconds } from './resources.ts';

export interface Storage {
  readonly env: Readonly<Record<string, string>>;
  /** For example `PostgreSQL 18.1`. */
  readonly version: string;
  /** Of the database alone; meaningful while the vault is stopped. */
  bytes(): Promise<StoredBytes>;
  /** Processor time of a database server beside the vault; 0 for none. */
  cpuSeconds(): number;
  close(): Promise<void>;
}

export interface StoredBytes {
  readonly all: number;
  /** Of these, what the audit log takes with its indexes. */
  readonly log: number;
}

export interface StorageOptions {
  /** False for one that waits for no disk: in memory, or a database server that does not wait. */
  readonly durable?: boolean;
}

/** A file system of Linux in memory, where `fsync` has nothing to wait for. */
const inMemory = '/dev/shm';

type OpenStorage = (options?: StorageOptions) => Promise<Storage>;

export const engines: Readonly<Record<string, OpenStorage>> = {
  embedded: async ({ durable = true } = {}) => {
    const directory = mkdtempSync(join(durable ? tmpdir() : inMemory, 'strongroom-bench-'));
    return {
      env: { STRONGROOM_DATA_DIR: directory },
      version: `SQLite ${process.versions['sqlite']}`,
      bytes: async () => ({ all: directoryBytes(directory), log: logBytes(directory) }),
      cpuSeconds: () => 0,
      close: async () => rmSync(directory, { recursive: true }),
    };
  },

  postgres: async ({ durable = true } = {}) => {
    const directory = mkdtempSync(join(tmpdir(), 'strongroom-bench-'));
    const settings = durable ? {} : { fsync: 'off', synchronous_commit: 'off' };
    const postgres = await startPostgres({ settings });
    const url = await postgres.createDatabase();
    return {
      env: { STRONGROOM_DATA_DIR: directory, STRONGROOM_DATABASE_URL: url },
      version: `PostgreSQL ${await ask(url, `current_setting('server_version')`)}`,
      bytes: async () => ({
        all: Number(await ask(url, 'pg_database_size(current_database())')),
        log: Number(await ask(url, `pg_total_relation_size('logs')`)),
      }),
      cpuSeconds: () => cpuSeconds(postgres.pid),
      async close() {
        await postgres.stop();
        rmSync(directory, { recursive: true });
      },
    };
  },
};

/** @throws Error naming what there is. */
export function engineOf(name: string): OpenStorage {
  const open = engines[name];
  if (open) return open;
  throw new Error(`there is no engine ${name}, only ${Object.keys(engines).join(', ')}`);
}

function directoryBytes(directory: string): number {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}

function logBytes(directory: string): number {
  const database = new DatabaseSync(join(directory, 'strongroom.db'), { readOnly: true });
  const sum = `select sum(pgsize) as bytes from dbstat where aggregate = true
    and name in (select name from sqlite_schema where tbl_name = 'logs')`;
  try {
    return Number(database.prepare(sum).get()?.['bytes']);
  } finally {
    database.close();
  }
}

async function ask(url: string, expression: string): Promise<unknown> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query(`select ${expression} as value`);
    return rows[0].value;
  } finally {
    await client.end();
  }
}
