/** Making directories: all that is missing, for their owner alone, and never without an end. */
import assert from 'node:assert/strict';
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makePrivateDirectory } from '../../src/store/private-directory.ts';
import { temporaryDirectory } from '../support/temporary.ts';

test('what is missing of a path is made, for its owner alone, and made again it stays', (t) => {
  const path = join(temporaryDirectory(t), 'a', 'b');
  makePrivateDirectory(path);
  makePrivateDirectory(path);
  for (const one of [path, join(path, '..')]) assert.equal(statSync(one).mode & 0o777, 0o700);
});

test('what is there and is no directory is an error', (t) => {
  const path = join(temporaryDirectory(t), 'file');
  writeFileSync(path, '');
  assert.throws(() => makePrivateDirectory(path), { code: 'EEXIST' });
  assert.throws(() => makePrivateDirectory(join(path, 'below')), { code: 'ENOTDIR' });
});

const skip = existsSync('/proc/self') ? false : 'there is no file system of this kind';

test('where nobody can make a directory, it fails at once', { skip }, () => {
  assert.throws(() => makePrivateDirectory('/proc/strongroom/data'), { code: 'ENOENT' });
});
