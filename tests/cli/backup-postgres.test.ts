/** A base backup of PostgreSQL, made as pg_basebackup makes one, restores to the same reads and an intact log. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { copyData } from '../support/base-backup.ts';
import { createTokens } from '../support/busy.ts';
import { startPostgres } from '../support/postgres.ts';
import { environmentOf, runCommand, spawnVault } from '../support/process.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { createApplication, request } from '../support/vault.ts';

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
  await copyData(postgres, directory);
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
