/** What the command line says when it fails: what an operator can act on, and never a value. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { environmentOf, runCommand } from '../support/process.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { startVault } from '../support/vault.ts';

test('what the operating system refuses is said in its words', async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'file');
  writeFileSync(file, '');
  const environment = { STRONGROOM_DATA_DIR: join(file, 'data') };
  const { code, stderr } = await runCommand(['tenant', 'list'], environment);
  assert.equal(code, 1);
  assert.match(stderr, /^strongroom tenant list: ENOTDIR: /);
});

test('what the database refuses is said in its words', async (t) => {
  const directory = temporaryDirectory(t);
  mkdirSync(join(directory, 'strongroom.db'));
  const environment = { STRONGROOM_DATA_DIR: directory };
  const { code, stderr } = await runCommand(['tenant', 'list'], environment);
  assert.equal(code, 1);
  assert.match(stderr, /^strongroom tenant list: unable to open database file$/m);
});

test('a start that cannot lock its data directory says what SQLite says', async (t) => {
  const directory = temporaryDirectory(t);
  mkdirSync(join(directory, 'strongroom.lock'));
  const environment = { STRONGROOM_DATA_DIR: directory, STRONGROOM_PORT: '0' };
  const { code, stderr } = await runCommand(['serve'], environment);
  assert.equal(code, 1);
  assert.equal(stderr, 'strongroom serve: unable to open database file\n');
});

onBothEngines('what nobody foresaw', (engine) => {
  test('is reported by its place, because its message may quote what is stored', async (t) => {
    const { place } = await startVault(t, engine);
    const value = 'a value in the wrong place';
    await engine.run(place, `update tenants set quotas = '${value}'`);
    const words = ['tenant', 'list'];
    const { code, stderr } = await runCommand(words, environmentOf(place));
    assert.equal(code, 1);
    assert.match(stderr, /^strongroom tenant list: SyntaxError at /m);
    assert.equal(stderr.includes('value'), false, stderr);
  });
});
