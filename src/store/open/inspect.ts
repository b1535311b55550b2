/** What an engine says about itself: its version, its clock, and the settings on which durability depends. */
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { type DistributionFacts, distributionFacts } from '../postgres/distribution.ts';
import { explainTls } from '../postgres/tls.ts';
import { busyTimeoutMs, databaseFile } from '../sqlite/database.ts';

export interface EngineFacts {
  /** For people, with the name of the engine. */
  readonly version: string;
  /** In milliseconds; `undefined` where the engine has no clock of its own. */
  readonly clockMs: number | undefined;
  /** Settings by name, where they have another value than a durable commit needs. */
  readonly unsafe: readonly { readonly name: string; readonly found: string }[];
  /** How the tables lie on a database of several machines; `undefined` for an engine that has one. */
  readonly distribution?: DistributionFacts;
}

const connectTimeoutMs = 5_000;

/** Anything else acknowledges commits that a crash of the machine can undo or tear. */
const durable: Readonly<Record<string, RegExp>> = {
  fsync: /^on$/,
  full_page_writes: /^on$/,
  synchronous_commit: /^(?:on|remote_apply|remote_write|local)$/,
};

/** Changes nothing. Rejects with the error of the engine when it cannot be reached. */
export async function inspectPostgres(url: string): Promise<EngineFacts> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'strongroom doctor',
    connectionTimeoutMillis: connectTimeoutMs,
  });
  try {
    await client.connect().catch((error) => {
      throw explainTls(error);
    });
    const { rows } = await client.query(
      "select current_setting('server_version') as version, " +
        'round(extract(epoch from clock_timestamp()) * 1000)::text as now',
    );
    const settings = await client.query(
      'select name, setting from pg_settings where name = any($1) order by name',
      [Object.keys(durable)],
    );
    return {
      version: `PostgreSQL ${rows[0].version}`,
      clockMs: Number(rows[0].now),
      unsafe: (settings.rows as { name: string; setting: string }[])
        .filter(({ name, setting }) => !durable[name]?.test(setting))
        .map(({ name, setting }) => ({ name, found: setting })),
      distribution: await distributionFacts((sql) => client.query(sql)),
    };
  } finally {
    await client.end().catch(() => undefined);
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
    return { version: `SQLite ${version}`, clockMs: undefined, unsafe };
  } finally {
    database.close();
  }
}
