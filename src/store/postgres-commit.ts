/** A commit lane on PostgreSQL: one connection, one statement per group, one log stream. */
import pg from 'pg';
import { VaultError } from '../lib/errors.ts';
import { type ChainedEntry, LogChain } from '../lib/log-chain.ts';
import {
  type Change,
  type Operation,
  type Outcome,
  operationsOf,
  type Precondition,
  removalColumns,
} from './change.ts';
import type { StoreOptions } from './store.ts';
import { type ColumnKind, type SqlValue, shapes, type Table } from './tables.ts';
import { unavailable, uncertain } from './unavailable.ts';

interface Committer {
  commit(changes: readonly Change[]): Promise<readonly (Outcome | Error)[]>;
  close(): Promise<void>;
}

/** SQLSTATE of the failures that a group recovers from. */
const uniqueViolation = '23505';
/** Raised on purpose by the statement when a row was not in the version its writer had seen. */
const divisionByZero = '22012';
/** Lost a lock race against another lane: nothing was done, and a second try is likely to succeed. */
const lockLost = new Set(['40P01', '40001', '55P03']);
const triesMax = 5;
/** The server ended the session, as it does when it shuts down; any other error undid the statement. */
const sessionEnded = /^(?:57P|08)/;

export function createPostgresCommitter(
  connection: pg.ClientConfig,
  { newStreamId, onCommitted }: StoreOptions,
): Committer {
  let client: pg.Client | undefined;
  let chain = new LogChain(newStreamId());

  async function connected(): Promise<pg.Client> {
    if (client) return client;
    const fresh = new pg.Client(connection);
    fresh.on('error', () => discard(fresh));
    await fresh.connect();
    client = fresh;
    return fresh;
  }

  /** After a broken connection nobody knows whether its last group was committed: start a new stream. */
  function discard(broken: pg.Client): void {
    if (client !== broken) return;
    client = undefined;
    chain = new LogChain(newStreamId());
    broken.end().catch(() => undefined);
  }

  async function attempt(changes: readonly Change[]): Promise<void> {
    const open = await connected();
    // The answer and the end of the connection may arrive in one packet, and with it a new stream.
    const own = chain;
    const fork = own.fork();
    const { entries, ...statement } = statementOf(changes, fork);
    try {
      await open.query(statement);
      own.adopt(fork);
      onCommitted?.(entries);
    } catch (error) {
      if (error instanceof pg.DatabaseError && !sessionEnded.test(error.code ?? '')) throw error;
      discard(open);
      throw uncertain(error instanceof Error ? error.message : 'commit failed', error);
    }
  }

  async function commitOne(change: Change): Promise<Outcome | Error> {
    for (let tries = 1; ; tries++) {
      try {
        await attempt([change]);
        return {};
      } catch (error) {
        const conflict = conflictOf(error, change);
        if (conflict) return { conflict };
        if (isLockLost(error) && tries < triesMax) continue;
        return failureOf(error);
      }
    }
  }

  return {
    commit: async (changes) => {
      const outcomes = new Map<Change, Outcome | Error>();
      for (const group of independentGroups(changes)) {
        try {
          await attempt(group);
          for (const change of group) outcomes.set(change, {});
        } catch (error) {
          // One by one, so that a neighbour's conflict touches nobody else. Only a failure that says
          // that nothing was done may be tried again: a lost connection does not.
          const failure = isConflict(error) ? undefined : failureOf(error);
          for (const change of group) outcomes.set(change, failure ?? (await commitOne(change)));
        }
      }
      return changes.map(
        (change) => outcomes.get(change) ?? unavailable('the group was not committed'),
      );
    },
    close: async () => {
      const open = client;
      client = undefined;
      await open?.end();
    },
  };
}

function failureOf(error: unknown): Error {
  if (error instanceof VaultError) return error;
  return unavailable(error instanceof Error ? error.message : 'commit failed', error);
}

function isConflict(error: unknown): boolean {
  if (isLockLost(error)) return true;
  const code = error instanceof pg.DatabaseError ? error.code : undefined;
  return code === uniqueViolation || code === divisionByZero;
}

function isLockLost(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code !== undefined && lockLost.has(error.code);
}

function conflictOf(error: unknown, change: Change): Precondition | undefined {
  if (!(error instanceof pg.DatabaseError)) return undefined;
  if (error.code === uniqueViolation && error.table !== undefined) {
    const table = error.table as Table;
    return `${table}.${(error.constraint ?? '').slice(table.length + 1)}`;
  }
  if (error.code !== divisionByZero) return undefined;
  const guarded = operationsOf(change).filter((operation) => operation.action !== 'insert');
  // The statement does not say which row it missed; rows without a version hang on one that has it.
  const missed = guarded.find((operation) => shapes[operation.table].versioned) ?? guarded[0];
  return missed && `${missed.table}.version`;
}

/**
 * One statement sees one snapshot, so two changes of the same row cannot share it: the second waits
 * for the next group. Inserts need no such care, a duplicate key fails the group and is sorted out.
 */
function independentGroups(changes: readonly Change[]): Change[][] {
  const groups: { changes: Change[]; touched: Set<string> }[] = [];
  for (const change of changes) {
    const touched = operationsOf(change)
      .filter((operation) => operation.action !== 'insert')
      .map((operation) => `${operation.table} ${JSON.stringify(keyOf(operation))}`);
    let group = groups.find((candidate) => touched.every((row) => !candidate.touched.has(row)));
    if (!group) {
      group = { changes: [], touched: new Set() };
      groups.push(group);
    }
    group.changes.push(change);
    for (const row of touched) group.touched.add(row);
  }
  return groups.map((group) => group.changes);
}

function keyOf({ table, action, values }: Operation): readonly SqlValue[] {
  const { key, columns } = shapes[table];
  if (action === 'remove') return values.slice(0, key.length);
  return key.map((column) => values[columns.indexOf(column)] ?? null);
}

/** Statements by shape: which tables are touched in which way. The server keeps a plan for each name. */
const prepared = new Map<string, { name: string; text: string }>();

/** Gathers the rows of all changes by table and action, and gives the one statement that does them all. */
function statementOf(
  changes: readonly Change[],
  chain: LogChain,
): { name: string; text: string; values: unknown[]; entries: ChainedEntry[] } {
  const rowsByPart = new Map<string, (readonly SqlValue[])[]>();
  const entries: ChainedEntry[] = [];
  const add = (part: string, values: readonly SqlValue[]) => {
    const rows = rowsByPart.get(part);
    if (rows) rows.push(values);
    else rowsByPart.set(part, [values]);
  };
  for (const change of changes) {
    for (const { action, table, values } of operationsOf(change)) add(`${action} ${table}`, values);
    for (const entry of change.entries) {
      const chained = chain.append(entry);
      entries.push(chained);
      const row = chained as unknown as Record<string, SqlValue>;
      add(
        'insert logs',
        shapes.logs.columns.map((column) => row[column] ?? null),
      );
    }
  }
  const parts = [...rowsByPart.keys()].sort();
  const shape = parts.join(', ');
  const known = prepared.get(shape) ?? { name: `commit ${prepared.size}`, text: textOf(parts) };
  prepared.set(shape, known);
  const values = parts.flatMap((part) => {
    const rows = rowsByPart.get(part) ?? [];
    return (rows[0] ?? []).map((_, column) => rows.map((row) => row[column]));
  });
  return { ...known, values, entries };
}

const arrayTypes: Record<ColumnKind, string> = {
  text: 'text[]',
  integer: 'bigint[]',
  bytes: 'bytea[]',
};

/**
 * A statement of one common table expression per part. The outer query divides by zero, and so undoes
 * everything, unless each guarded part has touched as many rows as it was given.
 */
function textOf(parts: readonly string[]): string {
  let parameter = 0;
  const expressions: string[] = [];
  const guards: string[] = [];
  parts.forEach((part, index) => {
    const [action, table] = part.split(' ') as [Operation['action'], Table];
    const { columns, kinds } = shapes[table];
    const given = action === 'remove' ? removalColumns(table) : columns;
    const first = parameter + 1;
    const lists = given.map(
      (column) => `$${++parameter}::${arrayTypes[kinds[columns.indexOf(column)] ?? 'text']}`,
    );
    const source = `unnest(${lists.join(', ')})`;
    expressions.push(`p${index} as (${bodyOf(action, table, given, source)})`);
    if (action !== 'insert') {
      guards.push(`(select count(*) from p${index}) = cardinality($${first}::${arrayTypes.text})`);
    }
  });
  const guard =
    guards.length === 0 ? '1' : `1 / (case when ${guards.join(' and ')} then 1 else 0 end)`;
  return `with ${expressions.join(', ')} select ${guard}`;
}

function bodyOf(
  action: Operation['action'],
  table: Table,
  given: readonly string[],
  source: string,
): string {
  const { columns, key } = shapes[table];
  if (action === 'insert')
    return `insert into ${table} (${columns.join(', ')}) select * from ${source}`;
  if (action === 'replace') {
    const assignments = columns.map((column) => `${column} = n.${column}`);
    const same = key.map((column) => `t.${column} = n.${column}`);
    return `update ${table} t set ${assignments.join(', ')}
      from ${source} as n (${columns.join(', ')})
      where ${same.join(' and ')} and t.version = n.version - 1 returning 1`;
  }
  const same = given.map((column) => `t.${column} = n.${column}`);
  return `delete from ${table} t using ${source} as n (${given.join(', ')})
    where ${same.join(' and ')} returning 1`;
}
