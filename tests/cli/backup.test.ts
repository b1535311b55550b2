/** `strongroom backup`: what was acknowledged comes back from the copy, and the copy is whole or absent. */
import assert from 'node:assert/strict';
import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { backUpSqlite } from '../../src/store/sqlite/backup.ts';
import { createTokens } from '../support/busy.ts';
import { engineOf } from '../support/engines.ts';
import { environmentOf, runCommand, spawnVault } from '../support/process.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { createApplication, request, startVault } from '../support/vault.ts';

const sqlite = engineOf('sqlite');

test('a backup of a busy vault restores to the same reads, with a log that explains them', async (t) => {
  const place = await sqlite.place(t);
  const vault = await spawnVault(t, environmentOf(place));
  const key = await createApplication(vault.url, {});
  const { created, end } = await createTokens(vault.url, key);
  const directory = join(temporaryDirectory(t), 'copies', 'today');
  const before = [...created];
  const { code, stdout, stderr } = await runCommand(
    ['backup', directory, '--json'],
    environmentOf(place),
  );
  const during = created.length;
  await end();
  assert.equal(code, 0, stderr);
  const rootKey = join(place.dataDir, 'root.key');
  const printed = JSON.parse(stdout);
  assert.deepEqual([printed.directory, printed.root_key], [directory, rootKey]);
  assert.ok(printed.pages > 0 && printed.rows >= before.length);
  assert.ok(during > before.length, 'the vault served requests meanwhile');
  const files = ['manifest.json', 'strongroom.db'];
  assert.deepEqual(readdirSync(directory).sort(), files, 'and no root key is in it');
  assert.equal(statSync(directory).mode & 0o777, 0o700);
  assert.equal(statSync(join(directory, 'strongroom.db')).mode & 0o777, 0o600);

  const copy = { databaseUrl: undefined, dataDir: directory };
  const environment = environmentOf(copy, { STRONGROOM_ROOT_KEY_FILE: rootKey });
  const refused = await runCommand(['serve'], environmentOf(copy));
  assert.equal(refused.code, 1, 'without its root key it does not start');
  assert.match(refused.stderr, /root key/i);
  const intact = await runCommand(['logs', 'verify', '--state'], environment);
  assert.equal(intact.code, 0, intact.stdout + intact.stderr);
  const restored = await spawnVault(t, environment);
  for (const id of before) {
    const [was, is] = await Promise.all(
      [vault.url, restored.url].map((url) => request(`${url}/tokens/${id}`, 'GET', { key })),
    );
    assert.deepEqual([is?.status, is?.text], [200, was?.text]);
  }
  const again = await runCommand(['logs', 'verify', '--state'], environment);
  assert.equal(again.code, 0, again.stdout);
});

/** A database of a few parts, on which nothing runs. */
async function largeDatabase(t: TestContext): Promise<string> {
  const { place, stop } = await startVault(t, sqlite);
  await stop();
  await sqlite.run(place, 'create table filler (bytes blob)');
  await sqlite.run(place, 'insert into filler values (zeroblob(20000000))');
  return place.dataDir;
}

test('a backup ends although others commit after each of its parts', async (t) => {
  const dataDir = await largeDatabase(t);
  const writer = new DatabaseSync(join(dataDir, 'strongroom.db'));
  t.after(() => writer.close());
  const commitsMax = 50;
  let parts = 0;
  const directory = temporaryDirectory(t);
  await backUpSqlite({
    dataDir,
    directory,
    onPart: () => {
      parts += 1;
      if (parts <= commitsMax) writer.exec('insert into filler values (zeroblob(10))');
    },
  });
  assert.ok(parts > 2 && parts < commitsMax, `${parts} parts`);
  const copy = new DatabaseSync(join(directory, 'strongroom.db'), { readOnly: true });
  t.after(() => copy.close());
  assert.equal(copy.prepare('select count(*) as count from filler').get()?.['count'], 1);
});

test('a damaged database gives no backup, and leaves nothing behind', async (t) => {
  const dataDir = await largeDatabase(t);
  const damaged = temporaryDirectory(t);
  const file = join(damaged, 'strongroom.db');
  copyFileSync(join(dataDir, 'strongroom.db'), file);
  const pageBytes = 4096;
  const middle = Math.floor(statSync(file).size / pageBytes / 2) * pageBytes;
  const handle = openSync(file, 'r+');
  writeSync(handle, Buffer.alloc(pageBytes, 0xff), 0, pageBytes, middle);
  closeSync(handle);
  const directory = temporaryDirectory(t);
  const { code, stderr } = await runCommand(
    ['backup', directory],
    environmentOf({ databaseUrl: undefined, dataDir: damaged }),
  );
  assert.equal(code, 1);
  assert.match(stderr, /^strongroom backup: The database is damaged[^\n]*\n$/);
  assert.deepEqual(readdirSync(directory), []);
});

test('a backup replaces no file, and says what is wrong in one line', async (t) => {
  const dataDir = temporaryDirectory(t);
  const directory = temporaryDirectory(t);
  const environment = environmentOf({ databaseUrl: undefined, dataDir });
  const run = async (words: readonly string[], code: number, says: RegExp) => {
    const finished = await runCommand(['backup', ...words], environment);
    assert.equal(finished.code, code, finished.stderr);
    assert.match(finished.stderr, says);
    assert.equal(finished.stderr.split('\n').length, 2);
  };
  await run([], 2, /the DIR for the copy is required/);
  await run([directory], 1, /There is no database /);
  assert.equal(existsSync(join(directory, 'strongroom.db')), false);
  const { place, stop } = await startVault(t, sqlite, {
    place: { databaseUrl: undefined, dataDir },
  });
  await stop();
  await run([place.dataDir], 1, /strongroom\.db exists\. Name another directory\./);
  writeFileSync(join(directory, 'strongroom.db.partial'), '');
  await run([directory], 1, /strongroom\.db\.partial exists: .* was interrupted/);
  rmSync(join(directory, 'strongroom.db.partial'));
  writeFileSync(join(directory, 'manifest.json'), '');
  await run([directory], 1, /manifest\.json exists\. Name another directory\./);
});
