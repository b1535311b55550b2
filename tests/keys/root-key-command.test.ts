/** A root key that a command prints: bounded in time and size, without a shell, and without a trace of its output. */
import assert from 'node:assert/strict';
import { createSecretKey, randomBytes } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { inspect } from 'node:util';
import { systemClock } from '../../src/base/clock.ts';
import { pooledRandom } from '../../src/base/random.ts';
import { localKeyId } from '../../src/keys/root/local-key.ts';
import { openRootKeys } from '../../src/keys/root/sources.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const text = randomBytes(32).toString('base64');

function load(command: string) {
  return openRootKeys({
    source: 'command',
    read: (name) => (name === 'ROOT_KEY_COMMAND' ? command : undefined),
    file: '/nowhere',
    environment: { PATH: process.env['PATH'], OWN: 'seen' },
    createIfMissing: false,
    clock: systemClock,
    random: pooledRandom(),
  });
}

const shell = (script: string) => JSON.stringify(['sh', '-c', script]);

suite('a root key that a command prints', () => {
  test('is the 32 bytes that its base64 says', async (t) => {
    const file = join(temporaryDirectory(t), 'key');
    writeFileSync(file, `${text}\n`);
    for (const command of [`cat ${file}`, `  cat   ${file}`, JSON.stringify(['cat', file])]) {
      const { chosen } = await load(command);
      assert.equal((await chosen.current()).keyId, localKeyId(createSecretKey(text, 'base64')));
    }
  });

  test('is read without a shell', async (t) => {
    const trap = join(temporaryDirectory(t), 'trap');
    for (const command of [`echo ${text}; touch ${trap}`, `echo $(touch ${trap})`, 'cat "a b"']) {
      await assert.rejects(load(command), { name: 'RootKeyError', message: /not read by a shell/ });
    }
    assert.equal(existsSync(trap), false);
  });

  test('gets the variables that are not the vault’s', async () => {
    const { chosen } = await load(shell(`[ "$OWN" = seen ] && echo ${text}`));
    assert.ok(chosen);
  });

  test('is refused, without its output, when the command fails, prints too much, or something else', async () => {
    const refused: readonly (readonly [string, RegExp])[] = [
      [shell(`echo ${text}; exit 3`), /ended with exit code 3/],
      [shell(`echo ${text} >&2; exit 1`), /ended with exit code 1/],
      [shell(`yes ${text}`), /printed more than 1024 bytes/],
      [shell(`echo ${text.slice(1)}`), /is not the base64 of 32 bytes/],
      [shell('true'), /is not the base64 of 32 bytes/],
      ['no-such-program-here', /cannot be run: ENOENT/],
      ['[', /must be words, or a JSON array of words/],
      ['["a", 1]', /must be words/],
    ];
    for (const [command, message] of refused) {
      await assert.rejects(load(command), (error) => {
        assert.ok(error instanceof Error);
        assert.equal(error.name, 'RootKeyError');
        assert.match(error.message, message);
        assert.ok(!inspect(error, { depth: 9 }).includes(text.slice(1, 20)));
        return true;
      });
    }
  });
});
