/** What an engine says about itself: its version, its clock, and the settings on which durability depends. */
import { DatabaseSync } from 'node:sqlite';
import { type DistributionFacts, distributionFacts } from '../postgres/distribution.ts';
import { hiddenFunctions, type IdentityFunction } from '../postgres/facts.ts';
import { Servers } from '../postgres/servers.ts';
import { problemOf } from '../postgres/start.ts';
import { explainTls } from '../postgres/tls.ts';
import { unreachableWorkers } from '../postgres/workers.ts';
import { busyTimeoutMs, databaseFile } from '../sqlite/database.ts';

export interface EngineFacts {
  /** For people, with the name of the engine. */
  readonly version: string;
  /** In milliseconds; `undefined` where the engine has no clock of its own. */
  readonly clockMs: number | undefined;
  /** Why a start would refuse the servers, and which of several cannot be reached. */
  readonly problem: string | undefined;
  readonly unreachable: readonly string[];
  /** Something between drops what the vault sets for a session. */
  readonly isPooled: boolean;
  /** Settings by name, where they have another value than a durable commit needs. */
  readonly unsafe: readonly { readonly name: string; readonly found: string }[];
  /** How the tables lie on a database of several machines; `undefined` for an engine that has one. */
  readonly distribution?: DistributionFacts;
  /** Servers of such a database to which its coordinator cannot connect. */
  readonly unreachableWorkers: readonly string[];
  /** What the server denies to its user, and how many hosts are named; `undefined` for an engine without hosts. */
  readonly failover?: FailoverFacts;
}

export interface FailoverFacts {
  readonly hosts: number;
  readonly hidden: readonly IdentityFunction[];
}

/** Anything else acknowledges commits that a crash of the machine can undo or tear. */
const durable: Readonly<Record<string, RegExp>> = {
  fsync: /^on$/,
  full_page_writes: /^on$/,
  synchronous_commit: /^(?:on|remote_apply|remote_write|local)$/,
};

/** Changes nothing. Rejects with the error of the engine when it cannot be reached. */
export async function inspectPostgres(url: string): Promise<EngineFacts> {
  const servers = new Servers(url, { application_name: 'strongroom doctor' });
  try {
    const examined = await servers.examine();
    const session = await servers.connectToRead({}).catch((error) => {
      throw explainTls(error);
    });
    const text =
      "select current_setting('server_version') as version, " +
      'round(extract(epoch from clock_timestamp()) * 1000)::text as now';
    const { rows } = await session.query({ text });
    const settings = await session.query({
      text: 'select name, setting from pg_settings where name = any($1) order by name',
      values: [Object.keys(durable)],
    });
    const ask = (text: string) => session.query({ text });
    const distribution = await distributionFacts(ask);
    const lostWorkers = distribution.version === undefined ? [] : await unreachableWorkers(ask);
    const failover = { hosts: examined.length, hidden: await hiddenFunctions(session) };
    session.end();
    return {
      problem: problemOf(examined),
      isPooled: examined.some(({ facts }) => facts?.hasParameters === false),
      unreachable: examined.filter(({ facts }) => !facts).map(({ name }) => name),
      version: `PostgreSQL ${rows[0].version}`,
      clockMs: Number(rows[0].now),
      unsafe: (settings.rows as { name: string; setting: string }[])
        .filter(({ name, setting }) => !durable[name]?.test(setting))
        .map(({ name, setting }) => ({ name, found: setting })),
      distribution,
      unreachableWorkers: lostWorkers ?? [],
      failover,
    };
  } finally {
    await servers.close();
  }
}

/** Of a database that exists. */
export function inspectSqlite(dataDir: string): EngineFacts {
  const database = new DatabaseSync(databaseFile(dataDir), {
    readOnly: true,
    timeout: busyTimeoutMs,
  });
  try {
    const version = database.prepare('select sqlite_version() as version').get()?.['version'];
    const mode = String(database.prepare('pragma journal_mode').get()?.['journal_mode']);
    const unsafe = mode === 'wal' ? [] : [{ name: 'journal_mode', found: mode }];
    const reached = { problem: undefined, unreachable: [], unreachableWorkers: [] };
    const none = { ...reached, isPooled: false, clockMs: undefined };
    return { version: `SQLite ${version}`, ...none, unsafe };
  } finally {
    database.close();
  }
}
