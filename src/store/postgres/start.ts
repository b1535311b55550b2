/** Checks the servers of a database at the start, before anything is changed in it. */
import { systemCodeOf } from '../../base/errors.ts';
import type { ExaminedServer, Servers } from './servers.ts';
import { DatabaseTlsError, explainTls } from './tls.ts';

/** The oldest major version that the contract suite passes on. */
const versionMin = 14;

/** A server of STRONGROOM_DATABASE_URL is not one that the vault can use. */
export class DatabaseServerError extends Error {
  override readonly name = 'DatabaseServerError';
}

const nameOne = 'Name one primary and its standbys.';

/** PostgreSQL's code for a database that does not exist. */
const unknownDatabase = '3D000';

/** PgBouncer's words for `begin`. */
const withoutTransactions = /^transaction blocks not allowed in statement pooling mode/;

/**
 * A host that cannot be reached now may be the standby that is being repaired; it is looked at again when
 * it is needed.
 * @throws DatabaseTlsError, DatabaseServerError, or the driver's error where no host can be reached.
 */
export async function checkServers(servers: Servers): Promise<void> {
  const examined: readonly ExaminedServer[] = await servers.examine();
  const errors = examined.flatMap(({ error }) => (error === undefined ? [] : [explainTls(error)]));
  const untrusted = errors.find((error) => error instanceof DatabaseTlsError);
  if (untrusted !== undefined) throw untrusted;
  if (examined.every(({ facts }) => facts === undefined)) throw errors[0];
  const problem = problemOf(examined);
  if (problem !== undefined) throw new DatabaseServerError(`STRONGROOM_DATABASE_URL ${problem}`);
}

/** The problem of the reachable servers, as the rest of a sentence that begins with the variable's name. */
export function problemOf(examined: readonly ExaminedServer[]): string | undefined {
  const reached = examined.flatMap(({ name, facts }) => (facts ? [{ name, ...facts }] : []));
  const old = reached.find(({ version }) => Math.trunc(version / 10_000) < versionMin);
  if (old) {
    const upgrade = `Upgrade it to ${versionMin} or later.`;
    return `names ${old.name}, which is PostgreSQL ${old.versionText}. ${upgrade}`;
  }
  const without = examined.find(({ error }) => systemCodeOf(error) === unknownDatabase);
  if (without) {
    return `names ${without.name}, which has no database of that name; the others have one. ${nameOne}`;
  }
  const [first] = reached;
  const foreign = reached.find(
    ({ systemId }) => systemId !== undefined && systemId !== first?.systemId,
  );
  if (first?.systemId !== undefined && foreign) {
    return `names servers with different data: ${first.name} and ${foreign.name}. ${nameOne}`;
  }
  const primaries = reached.filter(({ isStandby, isReadOnly }) => !isStandby && !isReadOnly);
  if (primaries.length > 1) {
    const each = primaries.map(({ name, timeline }) => `${name} (timeline ${timeline})`).join(', ');
    const stop = 'Stop the one with the lower timeline, and make it a standby again.';
    return `names servers that all accept writes: ${each}. ${stop}`;
  }
  if (primaries.length === 1) return undefined;
  const each = reached
    .map(({ name, isStandby }) => `${name} ${isStandby ? 'is a standby' : 'is read-only'}`)
    .join('; ');
  const advice = 'Name the primary, promote a standby, or turn default_transaction_read_only off.';
  return `names no server that accepts writes: ${each}. ${advice}`;
}

/** The error of a start by way of a PgBouncer that takes no transactions. Any other error stays as it is. */
export function explainPooler(error: unknown): unknown {
  if (!(error instanceof Error) || !withoutTransactions.test(error.message)) return error;
  return new DatabaseServerError(
    'STRONGROOM_DATABASE_URL leads to a PgBouncer whose pool_mode is statement, which takes no transactions. Set ' +
      'pool_mode = transaction there.',
    { cause: error },
  );
}
