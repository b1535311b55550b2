/** The embedded engine: short reads on this thread, long ones and writes on threads of their own. */
import type { DatabaseSync } from 'node:sqlite';
import type { Epochs } from '../../base/epochs.ts';
import type { OnGroup } from '../../base/telemetry/store-work.ts';
import type { CommitOutcome } from '../change.ts';
import { type CommitGroup, createLane } from '../commit/lane.ts';
import { memoryLimiter } from '../limiter.ts';
import type { OnCommitEnd } from '../notify-after-commit.ts';
import { moved } from '../outgoing-copy.ts';
import { sqliteBuilder } from '../query-builder.ts';
import { createScanTurns } from '../scan-turns.ts';
import type { AttachOptions, Query, StoreEngine, StoreOptions } from '../store.ts';
import { namedRowReader, nonKeyColumns, rowReader, storedKey } from '../stored-form.ts';
import type { RowFromStore } from '../stored-row.ts';
import { type AnyRow, type Key, type SqlValue, shapes, type Table } from '../tables.ts';
import { insufficientStorage, unavailable, unstorable } from '../unavailable.ts';
import { openReader } from './database.ts';
import { prepareLists } from './lists.ts';
import { createScanner, type ScanRequest } from './scanner.ts';
import { createSnapshots } from './snapshots.ts';
import { startWriter, type Writer } from './thread.ts';
import { type WireOutcome, type WriterLine, writerLine } from './wire.ts';

/** The thread writes one group at a time: what comes meanwhile is one group more, and not two half as large. */
const groupsInFlight = 1;

/** Prepared statements kept for queries, those that were used last: some queries have a text for each number of ids. */
const statementsMax = 256;

/** The writer that a thread commits through, and the parts that only the process has; see {@link Writer}. */
interface WriterAccess extends Pick<Writer, 'commit' | 'probe' | 'scrub' | 'close'> {
  readonly dataDir: string;
  readonly epochs: Epochs;
  readonly threads: number;
  readonly onGroup: OnGroup | undefined;
  readonly onCommitEnd: OnCommitEnd;
  readonly limiter: StoreEngine['limiter'];
}

export async function openSqlite(
  options: StoreOptions & Pick<WriterAccess, 'epochs' | 'onCommitEnd'>,
): Promise<StoreEngine> {
  const { dataDir, epochs, onGroup, onCommitEnd } = options;
  const writer = await startWriter(options);
  const own = { dataDir, epochs, threads: 1, onGroup, onCommitEnd, limiter: memoryLimiter };
  const access = { ...writer, ...own };
  return { ...createEngine(access), writerPort: writer.port };
}

/** The engine on another thread of the process that opened it. It creates and migrates nothing. */
export function attachSqlite({
  dataDir,
  epochs,
  threads,
  onGroup,
  onCommitEnd,
  owner,
}: AttachOptions & Pick<WriterAccess, 'onCommitEnd'>): StoreEngine {
  let line: Promise<WriterLine> | undefined;

  /** A line that ended is opened again for the next group. */
  function open(): Promise<WriterLine> {
    const forget = () => {
      if (line === own) line = undefined;
    };
    const own = owner.writerPort().then((port) => writerLine(port, forget));
    own.catch(forget);
    line = own;
    return own;
  }

  return createEngine({
    dataDir,
    epochs,
    threads,
    onGroup,
    onCommitEnd,
    limiter: owner.limiter,
    commit: async (group) => (await (line ?? open())).commit(group),
    probe: owner.ping,
    scrub: () => Promise.reject(unavailable('the process scrubs, not its threads')),
    close: async () => (await line?.catch(() => undefined))?.end(),
  });
}

function createEngine({
  dataDir,
  epochs,
  threads,
  limiter,
  onGroup,
  onCommitEnd,
  ...writer
}: WriterAccess): StoreEngine {
  const reader = openReader(dataDir);
  const snapshots = createSnapshots(reader, () => epochs.now('commits'));
  const commitGroup: CommitGroup = async (changes, giveUpAt) =>
    (await writer.commit({ changes, giveUpAt })).map(toOutcome);
  const lane = createLane(groupsInFlight, commitGroup, { threads, onGroup, onCommitEnd });
  const rowsBy = createStatementCache(reader);
  const scanner = createScanner(dataDir);
  const turns = createScanTurns(1);
  const rowOf = createRowLookup(reader);

  async function scan<R>(query: Query<R>, of: Pick<ScanRequest, 'snapshot'> = {}): Promise<R[]> {
    const { sql, parameters } = query(sqliteBuilder).compile();
    const request = { sql, parameters: parameters as SqlValue[], ...of };
    const { names, lists } = await scanner.scan(request);
    return lists.map(namedRowReader(names)) as R[];
  }

  return {
    engine: 'sqlite',
    get: async <T extends Table>(table: T, key: Key<T>) =>
      snapshots.read(() => rowOf(table, key)) as RowFromStore<T> | undefined,
    select: async <R>(query: Query<R>) => {
      const { sql, parameters } = query(sqliteBuilder).compile();
      return snapshots.read(() => rowsBy(sql)(parameters as SqlValue[])) as R[];
    },
    scan: (query, payer) => turns.take(payer, () => scan(query)),
    snapshot: async (work) => {
      const snapshot = await scanner.beginSnapshot();
      try {
        return await work((query) => turns.take('vault', () => scan(query, { snapshot })));
      } finally {
        // A thread that has ended has no snapshot any more.
        await scanner.endSnapshot(snapshot).catch(() => undefined);
      }
    },
    commit: (change) => lane.commit(change),
    record: (work) => lane.record(work),
    state: () => ({ backlog: lane.backlog }),
    ping: async () => {
      snapshots.read(() => rowsBy('select 1')([]));
      return writer.probe();
    },
    limiter,
    scrub: () => writer.scrub(),
    close: async () => {
      await lane.close();
      await scanner.close();
      snapshots.end();
      reader.close();
      // The connection that closes last moves the write-ahead log into the database, and only a writer can do that.
      await writer.close();
    },
  };
}

/** Rows by their key, whose values are known and not read. */
function createRowLookup(database: DatabaseSync) {
  const lookups = new Map<Table, (key: object) => object | undefined>();

  function prepare(table: Table): (key: object) => object | undefined {
    const { key: names } = shapes[table];
    const same = names.map((column) => `${column} = ?`).join(' and ');
    const columns = nonKeyColumns(table).join(', ');
    const { get } = prepareLists(database, `select ${columns} from ${table} where ${same}`);
    const read = rowReader(table);
    return (key) => {
      const known = key as AnyRow;
      const values = storedKey(
        table,
        names.map((column) => known[column] ?? null),
      );
      const stored = get(values);
      return stored && read(known, stored);
    };
  }

  return (table: Table, key: object): object | undefined => {
    const lookup = lookups.get(table) ?? prepare(table);
    lookups.set(table, lookup);
    return lookup(key);
  };
}

type ReadRows = (parameters: readonly SqlValue[]) => readonly object[];

function createStatementCache(database: DatabaseSync): (sql: string) => ReadRows {
  const statements = new Map<string, ReadRows>();

  function prepare(sql: string): ReadRows {
    const { names, all } = prepareLists(database, sql);
    const rowOf = namedRowReader(names);
    return (parameters) => all(parameters).map(rowOf);
  }

  return (sql) => {
    const statement = statements.get(sql) ?? prepare(sql);
    // The one that was used last comes last.
    statements.delete(sql);
    statements.set(sql, statement);
    const [oldest] = statements.size > statementsMax ? statements.keys() : [];
    if (oldest !== undefined) statements.delete(oldest);
    return statement;
  };
}

function toOutcome(outcome: WireOutcome): CommitOutcome | Error {
  if (outcome.unavailable !== undefined) return unavailable(outcome.unavailable);
  if (outcome.unstorable !== undefined) return unstorable(outcome.unstorable);
  if (outcome.moved !== undefined) return moved(outcome.moved);
  if (outcome.isShort) return insufficientStorage();
  return outcome.conflict === undefined ? {} : { conflict: outcome.conflict };
}
