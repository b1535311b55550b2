/** The files of a PostgreSQL that runs, copied while it writes them, as pg_basebackup copies them. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import type { Postgres } from './postgres.ts';

/** PostgreSQL 15 renamed them. */
const statements = {
  before15: { start: `pg_start_backup('test', true, false)`, stop: 'pg_stop_backup(false)' },
  since15: { start: `pg_backup_start('test', true)`, stop: 'pg_backup_stop(false)' },
};

/**
 * @param directory gets the folder `data`, of which a server recovers when it starts.
 * @param signals are empty files to put there, such as `standby.signal`.
 */
export async function copyData(
  { url, directory: source }: Pick<Postgres, 'url' | 'directory'>,
  directory: string,
  signals: readonly string[] = [],
): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const version = await client.query(`select current_setting('server_version_num')::int as n`);
    const { start, stop } = version.rows[0].n < 150_000 ? statements.before15 : statements.since15;
    await client.query(`select ${start}`);
    // Files that come and go meanwhile are none of the backup's, so `cp` may complain about them.
    await copy(join(source, 'data'), directory);
    const { rows } = await client.query(`select labelfile from ${stop}`);
    const data = join(directory, 'data');
    await copy(join(source, 'data', 'pg_wal'), data);
    rmSync(join(data, 'postmaster.pid'), { force: true });
    const { uid, gid } = statSync(data);
    const files = { backup_label: String(rows[0].labelfile) };
    const empty = Object.fromEntries(signals.map((name) => [name, '']));
    for (const [name, content] of Object.entries({ ...files, ...empty })) {
      writeFileSync(join(data, name), content);
      chownSync(join(data, name), uid, gid);
    }
  } finally {
    await client.end();
  }
}

async function copy(from: string, to: string): Promise<void> {
  await once(spawn('cp', ['-a', from, to], { stdio: 'ignore' }), 'exit');
}
