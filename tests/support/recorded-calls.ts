/**
 * A run of everything has one engine for each file of what lies above the store. What such a file asks of the store is
 * recorded, queries and changes, and asked again of both engines from the same empty vault, one change after another:
 * every row, outcome and error must be equal, and in the end all rows of all tables. So a statement that means
 * something else on the other engine is found without running the file on it. SQL that a test runs beside the store is
 * not part of it, so a file of attacks compares the engines on the rows as the vault wrote them.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { inspect } from 'node:util';
import type { Change } from '../../src/store/change.ts';
import { openStore } from '../../src/store/open/open.ts';
import { sqliteBuilder } from '../../src/store/query-builder.ts';
import type { Query, Store, StoreOptions } from '../../src/store/store.ts';
import { tenantNumber } from '../../src/store/stored-form.ts';
import type { Unread } from '../../src/store/stored-row.ts';
import { type Key, shapes, type Table } from '../../src/store/tables.ts';
import { copyMigratedFile, createMigratedDatabase } from './migrated.ts';

/** Of queries that differ in their arguments alone, and find equally much, so many of a database are asked again. */
const repeatsMax = 2;

interface Call {
  readonly name: string;
  readonly ask: (store: Store) => Promise<unknown>;
  readonly isWriting: boolean;
  /** What of rows is compared: how many there are, where a query leaves open which rows or in which order. */
  readonly compared: 'order' | 'rows' | 'count';
}

interface Recording {
  readonly streamIds: string[];
  readonly calls: Call[];
  readonly repeats: Map<string, number>;
}

/** @returns how to open a store so that what is asked of it is asked of both engines when the file is over. */
export function replayedOnBoth(): typeof openStore {
  const { open, replay } = createRecordings();
  after(async () => {
    try {
      await replay();
    } catch (error) {
      // A hook that throws would keep the hooks after it from closing what is open. The exit code fails the file.
      process.stderr.write(`${inspect(error)}\n`);
      process.exitCode = 1;
    }
  });
  return open;
}

export interface Recordings {
  readonly open: typeof openStore;
  /** Rejects with an AssertionError where the engines differ. */
  replay(): Promise<void>;
}

export function createRecordings(): Recordings {
  /** One for each database: a vault that is started again goes on with it. */
  const recordings = new Map<string, Recording>();
  return {
    open: async (options) => {
      const place = options.databaseUrl ?? options.dataDir;
      const recording: Recording = recordings.get(place) ?? {
        streamIds: [],
        calls: [],
        repeats: new Map(),
      };
      recordings.set(place, recording);
      const newStreamId = () => {
        const id = options.newStreamId();
        recording.streamIds.push(id);
        return id;
      };
      return recorded(await openStore({ ...options, newStreamId }), recording);
    },
    replay: async () => {
      for (const recording of recordings.values()) await replayOne(recording);
    },
  };
}

/** Calls are recorded as they succeed: of two that ran at once, the one that came second is asked second. */
function recorded(store: Store, recording: Recording): Store {
  const { calls, repeats } = recording;

  function keep(call: Call, result: string): void {
    const shape = `${call.name} ${result}`;
    const count = repeats.get(shape) ?? 0;
    repeats.set(shape, count + 1);
    if (count < repeatsMax) calls.push(call);
  }

  const querying =
    (method: 'select' | 'scan') =>
    async <R>(query: Query<R> & Unread<R>): Promise<R[]> => {
      const ask = (to: Store) => (method === 'scan' ? to.scan(query, 'vault') : to.select(query));
      const rows = await ask(store);
      const { sql } = query(sqliteBuilder).compile();
      const compared = comparedOf(sql);
      keep({ name: `${method} ${sql}`, ask, compared, isWriting: false }, sizeOf(rows));
      return rows;
    };

  return {
    ...store,
    async get<T extends Table>(table: T, key: Key<T>) {
      const row = await store.get(table, key);
      const ask = (to: Store) => to.get(table, key);
      keep(
        { name: `get ${table}`, ask, compared: 'order', isWriting: false },
        `${row !== undefined}`,
      );
      return row;
    },
    select: querying('select'),
    scan: querying('scan'),
    async commit(change) {
      const outcome = await store.commit(change);
      const ask = (to: Store) => to.commit(withoutSlots(change));
      calls.push({ name: 'commit', ask, compared: 'order', isWriting: true });
      return outcome;
    },
    async record(work) {
      const outcome = await store.record(work);
      const ask = (to: Store) => to.record(work);
      calls.push({ name: 'record', ask, compared: 'order', isWriting: true });
      return outcome;
    },
  };
}

/** Rows that are equal in all that a query orders by come in any order, unless it ends with what one row alone has. */
function comparedOf(sql: string): Call['compared'] {
  if (/order by [^()]*(?:\bid|_id|seq|host|\b2)"?(?: desc)?(?: limit \S+)?$/.test(sql))
    return 'order';
  return /\blimit\b/.test(sql) ? 'count' : 'rows';
}

/** Of the counts of stored bytes PostgreSQL keeps several rows, at random, where the embedded engine keeps one. */
function withoutSlots({ remove, ...change }: Change): Change {
  const { stored_bytes: _, ...others } = remove ?? {};
  return { ...change, remove: others };
}

function sizeOf(rows: readonly unknown[]): string {
  return rows.length > 1 ? 'several' : `${rows.length}`;
}

async function replayOne(recording: Recording): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'strongroom-replay-'));
  try {
    await copyMigratedFile(dataDir);
    const databaseUrl = await createMigratedDatabase();
    const [embedded, postgres] = await Promise.all([
      resultsOf(recording, { dataDir, databaseUrl: undefined }),
      resultsOf(recording, { dataDir, databaseUrl }),
    ]);
    for (const [at, { name, result }] of embedded.entries()) {
      assert.deepEqual(postgres[at]?.result, result, `${name} on PostgreSQL and embedded`);
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Changes one after another, and what is read between two of them at once; then all rows of all tables. */
async function resultsOf(
  { calls, streamIds }: Recording,
  place: Pick<StoreOptions, 'dataDir' | 'databaseUrl'>,
): Promise<{ name: string; result: unknown }[]> {
  // Both lanes of PostgreSQL get the one name: of calls that follow one another only one lane ever writes.
  const names = streamIds.slice(-1).flatMap((id) => [id, id]);
  const store = await openStore({ ...place, newStreamId: () => names.shift() ?? randomUUID() });
  const results: Promise<{ name: string; result: unknown }>[] = [];
  try {
    for (const call of [...calls, ...wholeTables]) {
      if (call.isWriting) await Promise.all(results);
      const asked = resultOf(call, store).then((result) => ({ name: call.name, result }));
      results.push(asked);
      if (call.isWriting) await asked;
    }
    return await Promise.all(results);
  } finally {
    await store.close();
  }
}

const wholeTables = (Object.keys(shapes) as Table[]).map(
  (table): Call => ({
    name: `all rows of ${table}`,
    ask: (store) => store.select((db) => db.selectFrom(table).selectAll() as never),
    compared: 'rows',
    isWriting: false,
  }),
);

/** What both engines must agree on, as texts: rows, an outcome, or the code of an error. */
async function resultOf({ ask, compared }: Call, store: Store): Promise<unknown> {
  try {
    const result = await ask(store);
    if (!Array.isArray(result)) return textOf(result);
    const texts = result.map(textOf);
    if (compared === 'count') return texts.length;
    return compared === 'order' ? texts : texts.toSorted();
  } catch (error) {
    return { failed: (error as { code?: unknown }).code ?? 'without a code' };
  }
}

/** What only one engine has: a place in a table, and rows among which PostgreSQL spreads what it counts. */
const ownColumns = ['rowid', 'slot'];

/**
 * Columns by their names, because the engines list those of a table in orders of their own; numbers as texts, because
 * PostgreSQL gives sums so; tenants by the numbers that rows name them by, because a process that has not met a tenant
 * knows only its number. Of several conditions that do not hold, an engine may name any.
 */
function textOf(row: unknown): string | undefined {
  if (typeof row !== 'object' || row === null) return JSON.stringify(row);
  const columns = Object.entries(row).filter(([name]) => !ownColumns.includes(name));
  const texts = columns.map(([name, value]): [string, unknown] => {
    if (name === 'conflict') return [name, true];
    if (value instanceof Uint8Array) return [name, Buffer.from(value).toString('hex')];
    if (name === 'tenant_id')
      return [name, `${typeof value === 'string' ? tenantNumber(value) : value}`];
    return [name, typeof value === 'number' ? `${value}` : value];
  });
  return JSON.stringify(texts.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}
