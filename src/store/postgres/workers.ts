/** The workers of a Citus database: which of them cannot be reached, and what that means for a start. */
import pg from 'pg';
import { workerLost } from './failure.ts';
import { DatabaseServerError } from './start.ts';
import { codeOf } from './violation.ts';

export type RunSql = (
  sql: string,
) => Promise<{ readonly rows: readonly Record<string, unknown>[] }>;

/** PostgreSQL's code for what the user may not call. */
const insufficientPrivilege = '42501';

/**
 * The workers to which the coordinator cannot connect, as `host:port`. Changes nothing but which warnings the session
 * shows from then on.
 * @returns `undefined` where the user may not ask.
 */
export async function unreachableWorkers(ask: RunSql): Promise<readonly string[] | undefined> {
  try {
    // Citus warns of each, as of a worker that fails during a commit.
    await ask('set client_min_messages = error');
    const { rows } = await ask(`select nodename, nodeport from pg_dist_node
      where isactive and noderole = 'primary' and not citus_check_connection_to_node(nodename, nodeport)
      order by nodename, nodeport`);
    return rows.map(({ nodename, nodeport }) => `${nodename}:${nodeport}`);
  } catch (error) {
    if (error instanceof pg.DatabaseError && codeOf(error) === insufficientPrivilege) {
      return undefined;
    }
    throw error;
  }
}

/** The error of a start or a command, which a worker that does not run has ended. Any other error stays as it is. */
export function explainWorker(error: unknown): unknown {
  if (!(error instanceof pg.DatabaseError) || !workerLost.test(error.message)) return error;
  const [said = ''] = error.message.split('\n');
  return lostWorker(said, error);
}

/** For a command that takes long before it needs a certain worker. @throws DatabaseServerError */
export async function requireWorkers(ask: RunSql): Promise<void> {
  const { rows } = await ask("select 1 where to_regclass('pg_dist_node') is not null");
  const [lost] = rows.length === 0 ? [] : ((await unreachableWorkers(ask)) ?? []);
  if (lost !== undefined) throw lostWorker(`no connection to ${lost}`);
}

function lostWorker(said: string, cause?: unknown): DatabaseServerError {
  return new DatabaseServerError(
    `STRONGROOM_DATABASE_URL leads to a Citus coordinator that cannot reach one of its workers: ${said}. ` +
      'Start that worker, and try again.',
    { cause },
  );
}
