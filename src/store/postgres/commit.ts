/** A commit lane on PostgreSQL: one connection, one statement per group, one log stream. */
import pg from 'pg';
import type { TenantId } from '../../lib/ids.ts';
import { chainBlock } from '../../lib/log-chain/block.ts';
import { LogChain } from '../../lib/log-chain/chain.ts';
import { columnsOf, type FlatChange, type Outcome, type RowOperation } from '../change.ts';
import type { StoreOptions } from '../store.ts';
import { type SqlValue, shapes } from '../tables.ts';
import { unavailable, uncertain } from '../unavailable.ts';
import {
  conflictOf,
  endsSession,
  failureOf,
  isExpected,
  isLockLost,
  isLogTaken,
  mayBeOfOne,
} from './failure.ts';
import type { Session } from './session.ts';
import { createStatements } from './statement.ts';

interface Committer {
  commit(changes: readonly FlatChange[]): Promise<readonly (Outcome | Error)[]>;
  close(): Promise<void>;
}

/** Lock races that a change loses before it fails. */
const triesMax = 5;

export function createPostgresCommitter(
  connect: () => Promise<Session>,
  { newStreamId, onCommitted }: StoreOptions,
  isDistributed: () => Promise<boolean>,
): Committer {
  const statementOf = createStatements();
  let session: Session | undefined;
  let chain = new LogChain(newStreamId(), { newStreamId });

  /** After a broken connection nobody knows whether its last group was committed: start a new stream. */
  async function connected(): Promise<Session> {
    if (session?.isOpen) return session;
    if (session) discard(session);
    // What is wrong with a server is wrong with no change, and not looked for by halves.
    session = await connect().catch((error) => {
      throw failureOf(error);
    });
    return session;
  }

  function discard(broken: Session): void {
    if (session !== broken) return;
    session = undefined;
    chain = new LogChain(newStreamId(), { newStreamId });
    broken.cut();
  }

  async function attempt(changes: readonly FlatChange[]): Promise<void> {
    const open = await connected();
    // The response and the end of the connection may arrive in one packet, and with it a new stream.
    const own = chain;
    const continuation = own.continue(changes);
    const statement = statementOf(changes, continuation);
    try {
      await open.query(statement as pg.QueryConfig);
      own.adopt(continuation);
      onCommitted?.(
        continuation.blocks.flatMap(({ previous, block }) => chainBlock(previous, block)),
      );
    } catch (error) {
      if (error instanceof pg.DatabaseError && (await outlived(open, error))) throw error;
      discard(open);
      throw uncertain(error instanceof Error ? error.message : 'commit failed', error);
    }
  }

  /**
   * By halves, so that one failing change does not fail the others and is found with few statements.
   * Only a failure that says that nothing was done may be tried again: a lost connection does not. Where
   * somebody else wrote to the log in the lane's place, its tenants' entries go on in a new stream, whose name
   * nobody can know.
   */
  async function commitGroup(group: readonly FlatChange[]): Promise<(Outcome | Error)[]> {
    let hasLeft = false;
    for (let tries = 1; ; tries++) {
      try {
        await attempt(group);
        return group.map(() => ({}));
      } catch (error) {
        if (isLogTaken(error) && !hasLeft) {
          chain.leave(tenantsOf(group), newStreamId());
          hasLeft = true;
          continue;
        }
        if (group.length > 1 && mayBeOfOne(error)) {
          const half = Math.ceil(group.length / 2);
          const first = await commitGroup(group.slice(0, half));
          return [...first, ...(await commitGroup(group.slice(half)))];
        }
        if (isLockLost(error) && tries < triesMax) continue;
        return group.map((change) => outcomeOf(error, change));
      }
    }
  }

  return {
    commit: async (changes) => {
      const outcomes = new Map<FlatChange, Outcome | Error>();
      const spread = (await isDistributed())
        ? [...Map.groupBy(changes, tenantOf).values()]
        : [changes];
      for (const group of spread.flatMap(independentGroups)) {
        const committed = await commitGroup(group);
        group.forEach((change, index) => {
          const outcome = committed[index];
          if (outcome) outcomes.set(change, outcome);
        });
      }
      return changes.map(
        (change) => outcomes.get(change) ?? unavailable('the group was not committed'),
      );
    },
    close: async () => {
      const open = session;
      session = undefined;
      await open?.close();
    },
  };
}

/** On a database of several machines a statement stays within one tenant, whose trouble is no other's. */
function tenantOf({ entries: [entry], operations: [operation] }: FlatChange): SqlValue | undefined {
  if (entry) return entry.tenant_id;
  if (operation === undefined) return undefined;
  const { table, action, values } = operation;
  return values[columnsOf(table, action).indexOf('tenant_id')];
}

function tenantsOf(group: readonly FlatChange[]): ReadonlySet<TenantId> {
  return new Set(group.flatMap(({ entries }) => entries.map(({ tenant_id }) => tenant_id)));
}

/**
 * Whether the error undid the statement and left the session intact: one that ended the session may have
 * come after the commit. Severities are in the language of the server, so the session is asked as well.
 */
async function outlived(open: Session, error: pg.DatabaseError): Promise<boolean> {
  if (endsSession(error)) return false;
  if (isExpected(error)) return true;
  return open.query({ text: 'select 1' }).then(
    () => true,
    () => false,
  );
}

function outcomeOf(error: unknown, change: FlatChange): Outcome | Error {
  const conflict = conflictOf(error, change);
  return conflict ? { conflict } : failureOf(error);
}

/**
 * One statement sees one snapshot, so two changes of the same row cannot share it: the second waits
 * for the next group. Inserts need no such care, a duplicate key fails the group and is sorted out.
 */
function independentGroups(changes: readonly FlatChange[]): FlatChange[][] {
  const groups: { changes: FlatChange[]; touched: Set<string> }[] = [];
  for (const change of changes) {
    const touched = change.operations
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

function keyOf({ table, action, values }: RowOperation): readonly SqlValue[] {
  const { key, columns } = shapes[table];
  if (action === 'clear') return values;
  if (action === 'remove' || action === 'amend') return values.slice(0, key.length);
  return key.map((column) => values[columns.indexOf(column)] ?? null);
}
