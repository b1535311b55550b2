/** Commits groups over one connection: one statement for each group, one log stream. */
import pg from 'pg';
import { VaultError } from '../../base/errors.ts';
import type { TenantId } from '../../base/ids.ts';
import type { CommitOutcome, FlatChange } from '../change.ts';
import type { CommitGroup } from '../commit/lane.ts';
import { expired, monotonicMs } from '../commit/queue.ts';
import { chainBlock } from '../log-chain/block.ts';
import { LogChain } from '../log-chain/chain.ts';
import type { StoreOptions } from '../store.ts';
import { insufficientStorage, unavailable, uncertain } from '../unavailable.ts';
import { createDiskState, type DiskState } from './disk-state.ts';
import {
  conflictOf,
  endsSession,
  failureOf,
  isDiskFull,
  isExpected,
  isLockLost,
  isLogTaken,
  isWorkerLost,
  mayBeOfOne,
} from './failure.ts';
import { independentGroups, independentGroupsByTenant } from './independent-groups.ts';
import type { Session } from './session.ts';
import { createStatements } from './statement.ts';

export interface Committer {
  readonly commit: CommitGroup;
  close(): Promise<void>;
}

/** The statements for one group, one after another; those that have not begun by `giveUpAt` do not begin. */
interface GroupRun {
  readonly giveUpAt: number;
  /** The failure is the server's, so no other statement is tried. */
  failure?: Error;
}

interface LaneCommitterOptions extends StoreOptions {
  /** The one that all lanes of an engine share. */
  readonly room?: DiskState;
}

/** Lost lock races after which a change fails. */
const triesMax = 5;

export function createPostgresCommitter(
  connect: () => Promise<Session>,
  { newStreamId, onCommitted, room = createDiskState() }: LaneCommitterOptions,
  isDistributed: () => Promise<boolean>,
): Committer {
  const statementOf = createStatements();
  let session: Session | undefined;
  let chain = new LogChain(newStreamId(), { newStreamId });

  /** After a broken connection it is unknown whether the last group was committed, so the lane starts a new stream. */
  async function connected(): Promise<Session> {
    if (session?.isOpen) return session;
    if (session) discard(session);
    // A failure of the server concerns no single change, so the group is not split to find one.
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
      const isCertain = error instanceof pg.DatabaseError && !isWorkerLost(error);
      if (isCertain && (await outlived(open, error))) throw error;
      discard(open);
      throw uncertain(error instanceof Error ? error.message : 'commit failed', error);
    }
  }

  /**
   * Splits a failing group in halves, so that one failing change does not fail the others and few statements find it.
   * Only a failure that guarantees that nothing was done may be retried: a lost connection does not. If another
   * writer wrote to the log in the lane's place, the entries of its tenants continue in a new stream, whose name
   * cannot be predicted.
   */
  async function commitGroup(
    group: readonly FlatChange[],
    run: GroupRun,
  ): Promise<(CommitOutcome | Error)[]> {
    const hopeless = run.failure ?? (monotonicMs() < run.giveUpAt ? undefined : expired());
    if (hopeless) return group.map(() => hopeless);
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
          const first = await commitGroup(group.slice(0, half), run);
          return [...first, ...(await commitGroup(group.slice(half), run))];
        }
        if (isDiskFull(error) && group.some(({ grows }) => grows)) {
          room.end();
          return commitAdmitted(group, run);
        }
        if (isLockLost(error) && tries < triesMax) continue;
        if (isOfServer(error)) run.failure = failureOf(error);
        return group.map((change) => outcomeOf(error, change));
      }
    }
  }

  /** Commits the changes that do not grow. The others are refused, because the disk is full or was a moment ago. */
  async function commitAdmitted(
    group: readonly FlatChange[],
    run: GroupRun,
  ): Promise<(CommitOutcome | Error)[]> {
    const admitted = group.filter(({ grows }) => !grows);
    const outcomes = admitted.length > 0 ? await commitGroup(admitted, run) : [];
    let next = 0;
    return group.map(({ grows }) =>
      grows ? insufficientStorage() : (outcomes[next++] ?? unavailable('it was in no group')),
    );
  }

  const commitSome = (group: readonly FlatChange[], run: GroupRun) =>
    room.isShort() ? commitAdmitted(group, run) : commitGroup(group, run);

  return {
    commit: async (changes, giveUpAt, settle) => {
      const run: GroupRun = { giveUpAt };
      const divide = (await isDistributed()) ? independentGroupsByTenant : independentGroups;
      const groups = divide(changes);
      const [only] = groups;
      if (only && groups.length === 1) return commitSome(only, run);
      const places = new Map(changes.map((change, index) => [change, index]));
      const outcomes: (CommitOutcome | Error)[] = changes.map(() =>
        unavailable('it was in no group'),
      );
      for (const group of groups) {
        const committed = await commitSome(group, run);
        committed.forEach((outcome, index) => {
          const change = group[index];
          const place = change && places.get(change);
          if (place === undefined) return;
          outcomes[place] = outcome;
          // A committed change does not wait for the changes of a contended row.
          settle?.(place, outcome);
        });
      }
      return outcomes;
    },
    close: async () => {
      const open = session;
      session = undefined;
      await open?.close();
    },
  };
}

function tenantsOf(group: readonly FlatChange[]): ReadonlySet<TenantId> {
  return new Set(group.flatMap(({ entries }) => entries.map(({ tenant_id }) => tenant_id)));
}

/**
 * Whether the error undid the statement and left the session intact. An error that ended the session may have come
 * after the commit. Severities are in the language of the server, so the session is queried as well.
 */
async function outlived(open: Session, error: pg.DatabaseError): Promise<boolean> {
  if (endsSession(error)) return false;
  if (isExpected(error)) return true;
  return open.query({ text: 'select 1' }).then(
    () => true,
    () => false,
  );
}

/** True for an error with which every other statement would fail as well. */
function isOfServer(error: unknown): error is Error {
  if (error instanceof pg.DatabaseError) return !mayBeOfOne(error);
  return error instanceof VaultError;
}

function outcomeOf(error: unknown, change: FlatChange): CommitOutcome | Error {
  const conflict = conflictOf(error, change);
  return conflict ? { conflict } : failureOf(error);
}
