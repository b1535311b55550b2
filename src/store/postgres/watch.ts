/**
 * Sessions that have been silent for long: of a server that works, or of one that will never respond. TCP
 * alone does not say for minutes that the other side is gone, is stopped, or lost what was sent.
 */
import pg from 'pg';
import { NoPrimaryError } from './first-of.ts';
import type { Session } from './session.ts';

/** A query that takes longer is checked over another connection. */
const silentMs = 2_000;
/**
 * The time limit for that connection and its response. After it the state of the server is unknown, and the queries
 * that wait for it fail.
 */
const probeMs = 2_500;
const lookMs = 500;

const workingSql = `select pid from pg_stat_activity where pid = any($1::integer[]) and state <> 'idle'`;

export interface WatchedPool {
  readonly sessions: Iterable<Session>;
  /** Whether their process ids are known to the server. */
  readonly knowsProcesses: boolean;
  survey(): Promise<void>;
  connect(parameters: Readonly<Record<string, never>>): Promise<Session>;
}

/** @returns stops watching. */
export function watchSilence(watched: WatchedPool): () => void {
  let isProbing = false;
  /** Sessions that the server was not working for at the last check. */
  let suspects = new Map<Session, number>();

  async function look(): Promise<void> {
    const silent = silentSessions(watched.sessions);
    if (isProbing || silent.size === 0) return;
    isProbing = true;
    // A primary whose standby was promoted waits for it forever, but otherwise works.
    void watched.survey();
    const working = await probe(watched, [...silent.keys()]);
    isProbing = false;
    // A server that responded may have done so to these as well, a moment ago.
    const again = working === undefined ? silent : suspects;
    suspects = new Map();
    for (const [session, since] of silent) {
      if (session.busySince !== since || working?.has(session)) continue;
      if (again.get(session) === since) abandon(session);
      else suspects.set(session, since);
    }
  }

  /** The idle connections are probably silent for the same reason, which shows only when they are used. */
  function abandon(session: Session): void {
    session.cut();
    for (const other of watched.sessions) if (other.busySince === undefined) other.retire();
  }

  const timer = setInterval(() => void look(), lookMs).unref();
  return () => clearInterval(timer);
}

function silentSessions(sessions: Iterable<Session>): Map<Session, number> {
  const until = performance.now() - silentMs;
  const silent = new Map<Session, number>();
  for (const session of sessions) {
    const { busySince } = session;
    if (busySince !== undefined && busySince < until) silent.set(session, busySince);
  }
  return silent;
}

/** Those for which the server works, as far as it can tell; `undefined` where it says nothing at all. */
async function probe(
  watched: WatchedPool,
  silent: readonly Session[],
): Promise<ReadonlySet<Session> | undefined> {
  let session: Session | undefined;
  let isLate = false;
  const late = new Promise<undefined>((resolve) => {
    setTimeout(() => {
      isLate = true;
      session?.cut();
      resolve(undefined);
    }, probeMs).unref();
  });
  const asked = async () => {
    try {
      session = await watched.connect({});
      if (isLate) return session.cut();
      if (!watched.knowsProcesses) return new Set(silent);
      const pids = silent.map(({ processId }) => processId ?? 0);
      const { rows } = await session.query({ text: workingSql, values: [pids] });
      const working = new Set(rows.map(({ pid }) => Number(pid)));
      const isSame = (one: Session) => one.server === session?.server;
      return new Set(silent.filter((one) => isSame(one) && working.has(one.processId ?? 0)));
    } catch (error) {
      // The server is up, and has no room for another connection, or refuses all of them.
      const first = error instanceof NoPrimaryError ? error.cause : error;
      return first instanceof pg.DatabaseError ? new Set(silent) : undefined;
    } finally {
      session?.end();
    }
  };
  return (await Promise.race([asked(), late])) ?? undefined;
}
