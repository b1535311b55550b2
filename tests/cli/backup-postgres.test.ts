/** A base backup of PostgreSQL, made as pg_basebackup makes one, restores to the same reads and an intact log. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Client } from 'pg';
import { createTokens } from '../support/busy.ts';
import { startPostgres } from '../support/postgres.ts';
import { environmentOf, runCommand, spawnVault } from '../support/process.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { createApplication, request } from '../support/vault.ts';

/** Copies the files while the server writes them, between the two calls that make it a backup. */
async function backUp(url: string, from: string, to: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query("select pg_backup_start('test', true)");
  // Files that come and go meanwhile are none of the backup's, so `cp` may complain about them.
  await once(spawn('cp', ['-a', from, to], { stdio: 'ignore' }), 'exit');
  const { rows } = await client.query('select labelfile from pg_backup_stop(false)');
  await client.end();
  await once(spawn('cp', ['-a', join(from, 'pg_wal'), to], { stdio: 'ignore' }), 'exit');
  rmSync(join(to, 'postmaster.pid'), { force: true });
  const label = join(to, 'backup_label');
  writeFileSync(label, rows[0].labelfile);
  const { uid, gid } = statSync(to);
  chownSync(label, uid, gid);
}

test('a base backup of a busy PostgreSQL restores to the same reads, with a log that explains them', async (t) => {
  const dataDir = temporaryDirectory(t);
  const postgres = await startPostgres();
  t.after(() => postgres.stop());
  const databaseUrl = await postgres.createDatabase();
  const vault = await spawnVault(t, environmentOf({ dataDir, databaseUrl }));
  const key = await createApplication(vault.url, {});
  const { created, end } = await createTokens(vault.url, key);
  const before = [...created];
  const directory = temporaryDirectory(t);
  await backUp(databaseUrl, join(postgres.directory, 'data'), join(directory, 'data'));
  assert.ok(created.length > before.length, 'the vault served requests meanwhile');
  await end();

  const copy = await startPostgres({ directory });
  t.after(() => copy.stop());
  const restored = new URL(databaseUrl);
  restored.port = new URL(copy.url).port;
  const environment = environmentOf({ dataDir, databaseUrl: restored.href });
  const intact = await runCommand(['logs', 'verify', '--state'], environment);
  assert.equal(intact.code, 0, intact.stdout + intact.stderr);
  assert.equal(intact.stderr, '', 'nor does a library warn of its use');
  const second = await spawnVault(t, environment);
  for (const id of before) {
    const [was, is] = await Promise.all(
      [vault.url, second.url].map((url) => request(`${url}/tokens/${id}`, 'GET', { key })),
    );
    assert.deepEqual([is?.status, is?.text], [200, was?.text]);
  }
});
