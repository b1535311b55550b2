/** Both engines, so that every test of stored state runs once on each in the same loop. */
import { createHash, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import pg from 'pg';
import { openStore } from '../../src/store/open/open.ts';
import type { Store } from '../../src/store/store.ts';
import { isCitus } from './citus-cluster.ts';
import { copyMigratedFile, createMigratedDatabase } from './migrated.ts';
import { sharedPostgres } from './postgres.ts';
import { drawVariable } from './random.ts';
import { replayedOnBoth } from './recorded-calls.ts';
import { type Lender, temporaryDirectory } from './temporary.ts';

/** `sqlite`, `postgres` or `both`. */
export const engineVariable = 'TEST_ENGINE';

/** Tests of what lies above the store, which is itself tested on both engines. */
const drawnFiles = /tests\/(?!(?:faults|laws|queue|store)\/).+\.test\.ts$/;

const engineNames = ['sqlite', 'postgres'] as const;
export type EngineName = (typeof engineNames)[number];

/** What one file of so many asks of its store is asked of both engines again. */
const replayedOneOf = 4;
const drawn = drawnFor();

/** How tests open a store: see `recorded-calls.ts`. */
export const openTested = drawn?.isReplayed ? replayedOnBoth() : openStore;

/** Where a fresh, empty store of one engine is. */
export interface Place {
  readonly databaseUrl: string | undefined;
  readonly dataDir: string;
}

export interface Engine {
  readonly name: EngineName;
  /** A place of its own for the test, without a table in it, gone after it. */
  place(t: Lender): Promise<Place>;
  /** The same with the tables of an empty vault, for tests that are not about the first start or migrations. */
  migrated(t: Lender): Promise<Place>;
  open(place: Place): Promise<Store>;
  /** Runs SQL beside the store, as an administrator or an attacker with the database would. */
  run(place: Place, sql: string): Promise<Record<string, unknown>[]>;
  /** A fresh store, closed after the test. */
  store(t: Lender): Promise<Store>;
}

/** One engine, for a test of what only that one has. */
export function engineOf(name: EngineName): Engine {
  // Of a cluster there are too many files to keep those of all tests.
  const owner = (t: Lender) => (isCitus() ? t : undefined);
  const place = async (t: Lender): Promise<Place> => ({
    databaseUrl:
      name === 'postgres' ? await (await sharedPostgres()).createDatabase(owner(t)) : undefined,
    dataDir: temporaryDirectory(t),
  });
  const migrated = async (t: Lender): Promise<Place> => {
    const dataDir = temporaryDirectory(t);
    if (name === 'postgres')
      return { databaseUrl: await createMigratedDatabase(owner(t)), dataDir };
    await copyMigratedFile(dataDir);
    return { databaseUrl: undefined, dataDir };
  };
  const open = (at: Place) => openTested({ ...at, newStreamId: randomUUID });
  return {
    name,
    place,
    migrated,
    open,
    run: name === 'sqlite' ? runOnSqlite : runOnPostgres,
    store: async (t) => {
      const store = await open(await migrated(t));
      t.after(() => store.close());
      return store;
    },
  };
}

async function runOnSqlite(place: Place, sql: string): Promise<Record<string, unknown>[]> {
  const database = new DatabaseSync(join(place.dataDir, 'strongroom.db'), { timeout: 5000 });
  try {
    return database.prepare(sql).all();
  } finally {
    database.close();
    // Reads of one turn of the event loop see one state, and another process would not be in this turn.
    await setImmediate();
  }
}

async function runOnPostgres(place: Place, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: place.databaseUrl });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

/**
 * Declares the tests once per engine. `TEST_ENGINE` leaves one of them; a run of everything draws one for each
 * file of what lies above the store, unless `TEST_ENGINE` is `both`.
 */
export function onBothEngines(title: string, declare: (engine: Engine) => void): void {
  for (const name of engineNames) {
    if (isTested(name) && name === (drawn?.engine ?? name)) {
      describe(`${title} on ${name}`, () => declare(engineOf(name)));
    }
  }
}

/** Declares a test of what only PostgreSQL has; `TEST_ENGINE` may leave it out. */
export function onPostgres(title: string, run: (t: TestContext) => Promise<void>): void {
  if (isTested('postgres')) test(title, run);
}

function isTested(name: EngineName): boolean {
  const tested = process.env[engineVariable] ?? 'both';
  return tested === name || tested === 'both';
}

interface Drawn {
  readonly engine: EngineName;
  readonly isReplayed: boolean;
}

/** By the seed of the run and the name of the file, so that each run has files on either engine. */
function drawnFor(): Drawn | undefined {
  const seed = process.env[drawVariable];
  const [file] = drawnFiles.exec(process.argv[1] ?? '') ?? [];
  if (seed === undefined || file === undefined || process.env[engineVariable]) return undefined;
  const [ofEngine = 0, ofReplay = 0] = createHash('sha256').update(`${seed} ${file}`).digest();
  const engine = engineNames[ofEngine % engineNames.length] ?? 'sqlite';
  return { engine, isReplayed: ofReplay % replayedOneOf === 0 };
}
