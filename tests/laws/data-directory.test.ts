/** With PostgreSQL the data directory is made for a new root key alone. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { engineOf } from '../support/engines.ts';
import { environmentOf, runCommand } from '../support/process.ts';
import { freePort, temporaryDirectory } from '../support/temporary.ts';

const ownKey = { STRONGROOM_ROOT_KEY: randomBytes(32).toString('base64') };

test('a command makes no data directory where the root key is elsewhere', async (t) => {
  const { databaseUrl } = await engineOf('postgres').place(t);
  const dataDir = join(temporaryDirectory(t), 'data');
  const environment = environmentOf({ databaseUrl, dataDir }, ownKey);
  const { code, stderr } = await runCommand(['tenant', 'create', '--name', 'one'], environment);
  assert.equal(code, 0, stderr);
  assert.equal((await runCommand(['tenant', 'list'], environment)).code, 0);
  assert.equal(existsSync(dataDir), false);
});

test('nor does it while the database cannot be reached, whatever the place of the key', async (t) => {
  const dataDir = join(temporaryDirectory(t), 'data');
  const databaseUrl = `postgres://nobody@127.0.0.1:${await freePort()}/none`;
  for (const key of [ownKey, {}]) {
    const environment = environmentOf({ databaseUrl, dataDir }, key);
    assert.equal((await runCommand(['tenant', 'list'], environment)).code, 1);
    assert.equal(existsSync(dataDir), false);
  }
});

test('a new root key is put there, and in no directory that the operator named and is missing', async (t) => {
  const { databaseUrl } = await engineOf('postgres').place(t);
  const dataDir = join(temporaryDirectory(t), 'data');
  const environment = environmentOf({ databaseUrl, dataDir });
  const create = ['tenant', 'create', '--name', 'one'];
  const misspelled = { STRONGROOM_ROOT_KEY_FILE: join(dataDir, 'kyes', 'root.key') };
  const refused = await runCommand(create, { ...environment, ...misspelled });
  assert.match(refused.stderr, /root key .* cannot be created: ENOENT/);
  assert.equal(existsSync(dataDir), false);
  const { code, stderr } = await runCommand(create, environment);
  assert.equal(code, 0, stderr);
  assert.deepEqual(readdirSync(dataDir), ['root.key']);
});
