/** A table in a file: what the start refuses, and what a change does. */
import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { DamagedFileError } from '../../src/tokens/enrichments/damaged-file.ts';
import { openOperatorFile } from '../../src/tokens/enrichments/operator-file.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { createTestClock } from '../support/vault.ts';

const second = 1000;

async function fileOf(t: TestContext, text: string) {
  const path = join(temporaryDirectory(t), 'table');
  const clock = createTestClock();
  const refused: string[] = [];
  const loads: string[] = [];
  await writeFile(path, text);
  const open = () =>
    openOperatorFile({
      path,
      variable: 'STRONGROOM_TABLE',
      clock,
      onRefused: (problem) => refused.push(problem),
      parse: (bytes) => {
        const read = bytes.toString();
        loads.push(read);
        if (read.startsWith('bad')) throw new DamagedFileError(17, 'has no sense');
        return read;
      },
    });
  return { path, clock, refused, loads, open };
}

test('a change is in force within a second, and an unchanged file is not read again', async (t) => {
  const { path, clock, refused, loads, open } = await fileOf(t, 'one');
  const table = await open();
  assert.equal(await table(), 'one');
  // Of another length: two writes within a tick of the file system's clock have one time.
  await writeFile(path, 'other');
  clock.advance(second);
  assert.deepEqual(await Promise.all([table(), table(), table()]), ['other', 'one', 'one']);
  clock.advance(second);
  assert.equal(await table(), 'other');
  assert.deepEqual(loads, ['one', 'other']);
  assert.deepEqual(refused, []);
});

test('a damaged or missing file is reported once with its line, and the old table stays', async (t) => {
  const { path, clock, refused, open } = await fileOf(t, 'good');
  const table = await open();
  await writeFile(path, 'bad now');
  clock.advance(second);
  assert.equal(await table(), 'good');
  clock.advance(second);
  assert.equal(await table(), 'good');
  assert.deepEqual(refused, ['STRONGROOM_TABLE: line 17 has no sense']);
  await rm(path);
  clock.advance(second);
  assert.equal(await table(), 'good');
  clock.advance(second);
  assert.equal(await table(), 'good');
  assert.deepEqual(refused.slice(1), ['STRONGROOM_TABLE: it gives ENOENT']);
  await writeFile(path, 'better');
  clock.advance(second);
  assert.equal(await table(), 'better');
});

test('the start refuses a file that is damaged or missing, and names the variable', async (t) => {
  const { path, open } = await fileOf(t, 'bad');
  await assert.rejects(open(), {
    name: 'OperatorFileError',
    message: 'STRONGROOM_TABLE names a file that cannot be used: line 17 has no sense.',
  });
  await rm(path);
  await assert.rejects(open(), /STRONGROOM_TABLE names a file .*: it gives ENOENT\./);
});
