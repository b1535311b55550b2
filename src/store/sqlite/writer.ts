/** The writer thread: owns the writing connection and commits one group per transaction. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { createEpochs } from '../../base/epochs.ts';
import { newUuid, type TenantId } from '../../base/ids.ts';
import { pooledRandom } from '../../base/random.ts';
import { createThreadRpc, type ThreadRpc } from '../../base/thread-rpc.ts';
import { amendedParts, isPartialUpdate } from '../amendments.ts';
import { columnsOf, type FlatChange, type Precondition, type RowOperation } from '../change.ts';
import { expired, monotonicMs } from '../commit/queue.ts';
import type { WrittenEntry } from '../log-chain/block.ts';
import { chainBlock, type LogBlock } from '../log-chain/block.ts';
import { type Continuation, LogChain } from '../log-chain/chain.ts';
import type { ChainedEntry } from '../log-chain/entries.ts';
import { refusalOf, selectState, stateOf } from '../migrations/migrate.ts';
import { isCounted } from '../migrations/stored-sizes.ts';
import { movedTexts, outgoingCopy } from '../outgoing-copy.ts';
import type { StoreHealth } from '../store.ts';
import { storedValues } from '../stored-form.ts';
import { type AnyRow, type SqlValue, shapes, type Table } from '../tables.ts';
import { createByteCount } from './byte-count.ts';
import { busyTimeoutMs, openWriter } from './database.ts';
import { describe, failureOf, isFull, movedIn, preconditionOf } from './failure.ts';
import type { WireGroup } from './packed-group.ts';
import { servePorts } from './ports.ts';
import { createRoom, type Room } from './room.ts';
import type { WriterCalls, WriterEvents, WriterOptions } from './thread.ts';
import type { WireOutcome, WireReply } from './wire.ts';

class ConflictError extends Error {
  readonly precondition: Precondition;

  constructor(precondition: Precondition) {
    super(precondition);
    this.precondition = precondition;
  }
}

/** Another writer wrote at the places where the streams of these tenants were to continue. */
class StreamsTakenError extends Error {
  readonly tenants: readonly TenantId[];

  constructor(tenants: readonly TenantId[]) {
    super('the log goes on where another block is stored');
    this.tenants = tenants;
  }
}

/** There are only three statements for each table. They are prepared on first use and reused. */
function createStatements(database: DatabaseSync): (operation: RowOperation) => StatementSync {
  const prepared = new Map<string, StatementSync>();
  return ({ table, action }) => {
    const name = `${table} ${action}`;
    const known = prepared.get(name);
    if (known) return known;
    const statement = database.prepare(sqlOf(table, action));
    prepared.set(name, statement);
    return statement;
  };
}

function sqlOf(table: Table, action: RowOperation['action']): string {
  const { columns, key } = shapes[table];
  const parameters = columns.map((_, index) => `?${index + 1}`);
  if (action === 'insert') {
    return `insert into ${table} (${columns.join(', ')}) values (${parameters.join(', ')})`;
  }
  if (action === 'replace') {
    const at = (column: string) => parameters[columns.indexOf(column)];
    const assignments = columns.map((column) => `${column} = ${at(column)}`);
    const same = key.map((column) => `${column} = ${at(column)}`);
    return `update ${table} set ${assignments.join(', ')}
      where ${same.join(' and ')} and version = ${at('version')} - 1`;
  }
  if (isPartialUpdate(action)) {
    const parts = amendedParts(action, table);
    const assignments = parts.filter(({ isCondition }) => !isCondition);
    const conditions = parts.filter(({ isCondition }) => isCondition);
    const at = (value: string) => `?${columnsOf(table, action).indexOf(value) + 1}`;
    return `update ${table} set ${assignments.map((one) => `${one.column} = ${at(one.value)}`).join(', ')}
      where ${key.map((column) => `${column} = ${at(column)}`).join(' and ')}
      and ${conditions.map((one) => `${one.column} is ${at(one.value)}`).join(' and ')}`;
  }
  const named = columnsOf(table, action).map((column) => `${column} = ?`);
  // By itself SQLite would rather go through all of the tenant's rows, in the order of their key.
  const index = action === 'clear' ? ` indexed by ${table}_by_owner` : '';
  return `delete from ${table}${index} where ${named.join(' and ')}`;
}

interface Committed {
  readonly reply: WireReply;
  /** The chained entries, if the process has a listener for them. */
  readonly entries: readonly ChainedEntry[];
}

interface CommitterOptions extends Pick<WriterOptions, 'streamId' | 'returnsEntries'> {
  readonly room: Room;
  /** For streams after the first. */
  readonly newStreamId: () => string;
}

function createCommitter(
  database: DatabaseSync,
  { streamId, newStreamId, returnsEntries, room }: CommitterOptions,
) {
  const statementOf = createStatements(database);
  const insertLog = statementOf({ table: 'logs', action: 'insert', values: [] });
  const logColumns = shapes.logs.columns;
  const chain = new LogChain(streamId, { newStreamId });

  const byteCount = createByteCount(database);

  function apply(change: FlatChange): void {
    byteCount.beginChange();
    applyOperations(change);
    const exceeded = byteCount.exceeded(change.ceilings);
    if (exceeded) throw new ConflictError(`stored_bytes.${exceeded.quota}`);
    byteCount.endChange();
  }

  function applyOperations(change: FlatChange): void {
    for (const operation of change.operations) {
      let changes: number | bigint;
      try {
        changes = run(operation, storedValues(operation));
      } catch (error) {
        const precondition = preconditionOf(error, operation.table);
        throw precondition ? new ConflictError(precondition) : error;
      }
      if (changes !== 1 && operation.action !== 'clear')
        throw new ConflictError(`${operation.table}.version`);
    }
  }

  /** Gives how many rows there were. What a row of a counted table takes is counted as well. */
  function run(operation: RowOperation, stored: readonly SqlValue[]): number | bigint {
    const { table, action } = operation;
    // Partial updates of counted tables write values that are as long as before.
    if (!isCounted(table) || isPartialUpdate(action))
      return statementOf(operation).run(...stored).changes;
    if (action === 'remove') return byteCount.remove(operation, stored);
    if (action === 'replace') byteCount.replaced(operation, stored);
    const { changes } = statementOf(operation).run(...stored);
    byteCount.written(operation, stored);
    return changes;
  }

  /** A change that fails is undone to its savepoint, so its neighbours never notice. */
  function applyOne(change: FlatChange): WireOutcome {
    database.exec('savepoint change');
    try {
      apply(change);
      database.exec('release change');
      return {};
    } catch (error) {
      // SQLite has already rolled back by itself after some failures, such as a full disk.
      if (!database.isTransaction || isFull(error)) throw error;
      database.exec('rollback to change; release change');
      return error instanceof ConflictError ? { conflict: error.precondition } : failureOf(error);
    }
  }

  /** One savepoint for all: nearly always all succeed. Where one does not, nothing of them is done. */
  function isEachApplied(changes: readonly FlatChange[]): boolean {
    if (changes.length === 0) return true;
    if (changes.length === 1) return false;
    database.exec('savepoint whole');
    try {
      for (const change of changes) apply(change);
      database.exec('release whole');
      return true;
    } catch (error) {
      if (!database.isTransaction || isFull(error)) throw error;
      database.exec('rollback to whole; release whole');
      byteCount.beginAgain();
      return false;
    }
  }

  /** The entries of what was done, which follow all rows of the group. */
  function writeLog(done: readonly FlatChange[], { notes, provers }: WireGroup): Continuation {
    const continuation = chain.continue([...done, { entries: notes, provers }]);
    const taken = continuation.blocks.filter(({ block }) => !isInserted(block));
    if (taken.length > 0) throw new StreamsTakenError(taken.map(({ block }) => block.tenant_id));
    return continuation;
  }

  /** False where another block has its place. */
  function isInserted(block: LogBlock): boolean {
    const row: AnyRow = { ...block };
    try {
      insertLog.run(...logColumns.map((column) => row[column] ?? null));
      return true;
    } catch (error) {
      if (preconditionOf(error, 'logs') === undefined) throw error;
      return false;
    }
  }

  function commit(group: WireGroup): Committed {
    const { changes } = group;
    // Other processes were waited for by the group before as well.
    const patienceMs = group.giveUpAt - monotonicMs();
    if (patienceMs <= 0) throw expired();
    const isShort = changes.some(({ grows }) => grows) && room.isShort();
    const admitted = isShort ? changes.filter(({ grows }) => !grows) : changes;
    database.exec(`pragma busy_timeout = ${patienceMs}; begin immediate`);
    byteCount.beginGroup();
    const applied = isEachApplied(admitted) ? undefined : admitted.map(applyOne);
    const done = applied ? admitted.filter((_, index) => isDone(applied[index])) : admitted;
    const outcomes = isShort ? withRefused(changes, applied) : applied;
    byteCount.write();
    const continuation = writeLog(done, group);
    database.exec('commit');
    chain.adopt(continuation);
    room.tidy();
    const wanted = returnsEntries ? continuation.blocks : [];
    const entries = wanted.flatMap(({ previous, block }) => chainBlock(previous, block));
    return { reply: outcomes ? { outcomes, notes: {} } : 'done', entries };
  }

  /** Retries in new streams if the old ones are taken. The names of new streams cannot be predicted. */
  function commitAnywhere(group: WireGroup): Committed {
    try {
      return commit(group);
    } catch (error) {
      if (!(error instanceof StreamsTakenError)) throw error;
      database.exec('rollback');
      chain.leave(error.tenants, newStreamId());
      return commit(group);
    }
  }

  /**
   * Undefined where the disk is full. What the write-ahead log held is given back by then: as long as readers prevent
   * that, the group is tried again until it has waited too long.
   */
  function commitIfRoom(group: WireGroup): Committed | undefined {
    for (;;) {
      try {
        return commitAnywhere(group);
      } catch (error) {
        if (database.isTransaction) database.exec('rollback');
        const moved = movedIn(error);
        if (moved === movedTexts.tenant) return withoutMoved(group);
        if (moved !== undefined) return failed(group, { moved });
        if (!isFull(error)) return failed(group, { unavailable: describe(error) });
        if (room.giveBack()) return undefined;
      }
    }
  }

  /** Commits what is of other tenants than those that were moved to another vault. */
  function withoutMoved(group: WireGroup): Committed | undefined {
    const gone = movedTenants(database);
    const isGone = ({ tenant_id }: WrittenEntry) => gone.has(tenant_id);
    const changes = group.changes.filter(({ entries }) => !entries.some(isGone));
    const notes = group.notes.filter((note) => !isGone(note));
    const moved = { moved: movedTexts.tenant };
    if (changes.length + notes.length === group.changes.length + group.notes.length) {
      return failed(group, moved);
    }
    const committed = commitIfRoom({ ...group, changes, notes });
    if (committed === undefined) return undefined;
    const { reply } = committed;
    const outcomes = reply === 'done' ? [] : reply.outcomes;
    const outcomeOf = (change: FlatChange) => outcomes[changes.indexOf(change)] ?? {};
    return {
      ...committed,
      reply: {
        outcomes: group.changes.map((one) => (changes.includes(one) ? outcomeOf(one) : moved)),
        notes: { ...(reply !== 'done' && reply.notes), movedTenants: gone },
      },
    };
  }

  /**
   * Deleting takes room in the write-ahead log before it gives any back. Where that is too much for a whole group, its
   * parts are committed one after another, so that one large deletion does not fail those of others, or their reads.
   */
  function commitWithRoom(group: WireGroup): Committed {
    const whole = commitIfRoom(group);
    if (whole) return whole;
    const parts = partsOf(group);
    if (parts) return joined(parts.map((part) => ({ part, ...commitWithRoom(part) })));
    return commitIfRoom(group) ?? withoutRoom(group);
  }

  return commitWithRoom;
}

function movedTenants(database: DatabaseSync): ReadonlySet<string> {
  const rows = database
    .prepare(
      `select tenant from ${outgoingCopy} where tenant is not null and stopped_at is not null`,
    )
    .all();
  return new Set(rows.map(({ tenant }) => String(tenant)));
}

/** Two groups in place of one, unless it has a single change. Reads come first. */
function partsOf(group: WireGroup): readonly WireGroup[] | undefined {
  const { changes, notes } = group;
  if (changes.length === 0 || (changes.length === 1 && notes.length === 0)) return undefined;
  const half = changes.length >> 1;
  return [
    { ...group, changes: changes.slice(0, half) },
    { ...group, changes: changes.slice(half), notes: [] },
  ];
}

/** Nothing of it was done. */
function failed({ changes }: WireGroup, outcome: WireOutcome): Committed {
  return { reply: { outcomes: changes.map(() => outcome), notes: outcome }, entries: [] };
}

function withoutRoom({ changes }: WireGroup): Committed {
  const full = { unavailable: 'the disk is full' };
  const outcomes = changes.map(({ grows }) => (grows ? { isShort: true as const } : full));
  return { reply: { outcomes, notes: full }, entries: [] };
}

/** What came of the parts of a group, the first of which has its reads. */
function joined(parts: readonly (Committed & { readonly part: WireGroup })[]): Committed {
  const first = parts[0]?.reply;
  return {
    reply: {
      outcomes: parts.flatMap(({ part, reply }) =>
        reply === 'done' ? part.changes.map(() => ({})) : reply.outcomes,
      ),
      notes: first === undefined || first === 'done' ? {} : first.notes,
    },
    entries: parts.flatMap(({ entries }) => entries),
  };
}
/** The outcomes of all changes, where those that grow were refused and the others applied. */
function withRefused(
  changes: readonly FlatChange[],
  applied: readonly WireOutcome[] | undefined,
): readonly WireOutcome[] {
  let next = 0;
  return changes.map(({ grows }) => (grows ? { isShort: true } : (applied?.[next++] ?? {})));
}

function isDone(outcome: WireOutcome | undefined): boolean {
  return outcome !== undefined && Object.keys(outcome).length === 0;
}

/**
 * Writes one page and commits it: only a write shows that the disk still takes one, and SQLite writes
 * no page whose bytes are as before. The log must be there as well, or no secret may be released.
 */
const probeSql = `
  pragma busy_timeout = ${busyTimeoutMs};
  begin immediate;
  update schema_version set version = version + 1;
  update schema_version set version = version - 1;
  insert into logs select * from logs where false;
  commit`;

function probe(database: DatabaseSync, room: Room): StoreHealth {
  try {
    const isShort = room.isShort();
    const refusal = refusalOf(stateOf(database.prepare(selectState).get()));
    if (refusal) throw refusal;
    database.exec(probeSql);
    return { isShort };
  } catch (error) {
    if (database.isTransaction) database.exec('rollback');
    throw new Error(describe(error));
  }
}

/** Commits wait while the log is emptied, so it waits no longer than this for readers elsewhere. */
const scrubTimeoutMs = 250;

/**
 * Moves what the write-ahead log holds into the database, where what was deleted is zeros, and empties
 * the log.
 */
function scrub(database: DatabaseSync): void {
  let busy: unknown;
  try {
    database.exec(`pragma busy_timeout = ${scrubTimeoutMs}`);
    busy = database.prepare('pragma wal_checkpoint(truncate)').get()?.['busy'];
  } catch (error) {
    throw new Error(describe(error));
  }
  if (busy !== 0) throw new Error('the write-ahead log is being read');
}

function serve(options: WriterOptions): void {
  const control = parentPort;
  if (!control) throw new Error('sqlite-writer runs in a worker thread');
  const rpc: ThreadRpc<WriterEvents> = createThreadRpc<WriterEvents, WriterCalls>(control, {
    probe: () => probe(database, room),
    scrub: () => scrub(database),
    addPort: (port) => ports.add(port),
    close: () => {
      ports.close();
      database.close();
      control.close();
    },
  });
  let database: DatabaseSync;
  try {
    database = openWriter(options.dataDir);
  } catch (error) {
    const bySqlite = error instanceof Error && 'errcode' in error;
    const name = error instanceof Error ? error.name : 'Error';
    rpc.notify('opened', { message: describe(error), name: bySqlite ? 'SqliteError' : name });
    control.close();
    return;
  }
  const epochs = createEpochs(options.epochs);
  const random = pooledRandom();
  const newStreamId = () => newUuid(random);
  const room = createRoom(database, options);
  const commitGroup = createCommitter(database, { ...options, newStreamId, room });
  const ports = servePorts((group) => {
    const { reply, entries } = commitGroup(group);
    epochs.advance('commits');
    if (entries.length > 0) rpc.notify('committed', entries);
    return reply;
  });
  rpc.notify('opened', undefined);
}

serve(workerData as WriterOptions);
