/** The root key: created once, never overwritten, and refused by name when it cannot be used. */
import assert from 'node:assert/strict';
import { createSecretKey, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { inspect } from 'node:util';
import { Worker } from 'node:worker_threads';
import { systemClock } from '../../src/base/clock.ts';
import { exposedMode } from '../../src/base/private-file.ts';
import { pooledRandom, type Random } from '../../src/base/random.ts';
import { localKeyId } from '../../src/keys/root/local-key.ts';
import { RootKeyError } from '../../src/keys/root/root-key.ts';
import { openRootKeys } from '../../src/keys/root/sources.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const random = pooledRandom();
const text = randomBytes(32).toString('base64');

function emptyPlace(t: TestContext): { directory: string; file: string } {
  const directory = temporaryDirectory(t);
  return { directory, file: join(directory, 'root.key') };
}

const idOf = (key: string) => localKeyId(createSecretKey(key, 'base64'));

interface Loading {
  readonly text?: string;
  readonly file: string;
  readonly createIfMissing: boolean;
  readonly random: Random;
}

/** As a start does, with a key in the environment or in a file. */
async function load({ text: given, ...settings }: Loading) {
  const { chosen } = await openRootKeys({
    ...settings,
    source: given === undefined ? 'file' : 'environment',
    read: () => given,
    environment: {},
    clock: systemClock,
  });
  const { keyId } = await chosen.current();
  return { keyId, origin: chosen.origin, created: chosen.created, chosen };
}

/** Asserts that loading fails with a message that matches, holds no content, and changes nothing. */
async function assertRefused(options: {
  text?: string;
  file: string;
  message: RegExp;
}): Promise<void> {
  const { message, ...source } = options;
  await assert.rejects(
    () => load({ ...source, createIfMissing: false, random }),
    (error) => {
      assert(error instanceof RootKeyError);
      assert.match(error.message, message);
      const content = (options.text ?? text).trim();
      if (content !== '') assert(!inspect(error, { depth: 9 }).includes(content));
      return true;
    },
  );
}

suite('a root key from the environment', () => {
  test('is the 32 bytes that its base64 says, and no file is touched', async (t) => {
    const { directory, file } = emptyPlace(t);
    const loaded = await load({ text: `${text}\n`, file, createIfMissing: true, random });
    assert.equal(loaded.keyId, idOf(text));
    assert.equal(loaded.origin, 'environment');
    assert.equal(loaded.created, false);
    assert.deepEqual(readdirSync(directory), []);
  });

  test('is refused, without its content, when it is not the base64 of 32 bytes', async (t) => {
    const { file } = emptyPlace(t);
    const malformed = [
      '',
      'secret-passphrase',
      randomBytes(31).toString('base64'),
      randomBytes(33).toString('base64'),
      randomBytes(32).toString('hex'),
      `${text.slice(0, 20)} ${text.slice(20)}`,
      text.slice(0, -1),
      `${text}${text}`,
      `${Buffer.alloc(32).toString('base64').slice(0, -2)}B=`,
    ];
    for (const each of malformed) {
      await assertRefused({
        text: each,
        file,
        message: /\(environment\) is not the base64 of 32 bytes/,
      });
    }
  });

  test('prints and serializes as nothing', async (t) => {
    const { file } = emptyPlace(t);
    const loaded = await load({ text, file, createIfMissing: false, random });
    const printed = inspect(loaded, { depth: 9, showHidden: true }) + JSON.stringify(loaded);
    assert(!printed.includes(text));
    assert(!printed.includes(Buffer.from(text, 'base64').toString('hex')));
  });
});

suite('a root key file', () => {
  test('is created once, with mode 0600, and read from then on', async (t) => {
    const { directory, file } = emptyPlace(t);
    const first = await load({ file, createIfMissing: true, random });
    assert.equal(first.created, true);
    assert.equal(first.origin, `file ${file}`);
    assert.equal(statSync(file).mode & 0o7777, 0o600);
    assert.equal(statSync(file).nlink, 1);
    assert.deepEqual(readdirSync(directory), ['root.key']);
    for (const createIfMissing of [true, false]) {
      const again = await load({ file, createIfMissing, random });
      assert.equal(again.created, false);
      assert.equal(again.keyId, first.keyId);
    }
  });

  test('has mode 0600 whatever the umask', async (t) => {
    for (const umask of [0o000, 0o777]) {
      const { file } = emptyPlace(t);
      const before = process.umask(umask);
      try {
        await load({ file, createIfMissing: true, random });
      } finally {
        process.umask(before);
      }
      assert.equal(statSync(file).mode & 0o7777, 0o600);
    }
  });

  test('is not overwritten by a creator that saw it missing', async (t) => {
    const { directory, file } = emptyPlace(t);
    const outrun: Random = (length) => {
      if (length === 32) writeFileSync(file, text, { mode: 0o600 });
      return random(length);
    };
    const loaded = await load({ file, createIfMissing: true, random: outrun });
    assert.equal(loaded.created, false);
    assert.equal(loaded.keyId, idOf(text));
    assert.equal(readFileSync(file, 'utf8'), text);
    assert.deepEqual(readdirSync(directory), ['root.key']);
  });

  test('is one and the same for eight creators at once', async (t) => {
    const { directory, file } = emptyPlace(t);
    const threads = 8;
    const gate = new Int32Array(new SharedArrayBuffer(8));
    const answers = Array.from({ length: threads }, async () => {
      const url = new URL('./root-key-creator.ts', import.meta.url);
      const [answer] = await once(
        new Worker(url, { workerData: { file, gate, threads } }),
        'message',
      );
      return answer as { key: string; created: boolean };
    });
    const loaded = await Promise.all(answers);
    assert.equal(new Set(loaded.map(({ key }) => key)).size, 1);
    assert.equal(loaded.filter(({ created }) => created).length, 1);
    assert.deepEqual(readdirSync(directory), ['root.key']);
  });

  test('is not created over existing data', async (t) => {
    const { directory, file } = emptyPlace(t);
    await assertRefused({ file, message: /root\.key\) is missing/ });
    assert.deepEqual(readdirSync(directory), []);
  });

  test('is refused when others than its owner have access', async (t) => {
    const { file } = emptyPlace(t);
    writeFileSync(file, text);
    for (const mode of [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o644, 0o777]) {
      chmodSync(file, mode);
      await assertRefused({ file, message: new RegExp(`has mode 0${mode.toString(8)}`) });
    }
    for (const mode of [0o600, 0o400]) {
      chmodSync(file, mode);
      assert.ok(await load({ file, createIfMissing: false, random }));
    }
  });

  test('of root may be lent to the group of a service, to read and nothing else, but not to the group of root', () => {
    const [root, service] = [0, 10_001];
    assert.equal(exposedMode({ uid: root, mode: 0o100440 }, service), undefined);
    assert.equal(exposedMode({ uid: root, mode: 0o100444 }, service), '0444');
    assert.equal(exposedMode({ uid: root, mode: 0o100460 }, service), '0460');
    assert.equal(exposedMode({ uid: service, mode: 0o100440 }, service), '0440');
    assert.equal(exposedMode({ uid: root, mode: 0o100440 }, root), '0440');
  });

  test('is refused, and left as it is, when it is malformed', async (t) => {
    const { file } = emptyPlace(t);
    for (const content of ['', '\n', 'x', text.slice(1), ' '.repeat(5000)]) {
      writeFileSync(file, content, { mode: 0o600 });
      await assertRefused({ file, message: /is not the base64 of 32 bytes/ });
      assert.equal(readFileSync(file, 'utf8'), content);
    }
  });

  test('is refused when it is a directory, or its directory is missing', async (t) => {
    const { directory, file } = emptyPlace(t);
    mkdirSync(file, { mode: 0o700 });
    await assertRefused({ file, message: /is not a file/ });
    const nowhere = join(directory, 'nowhere', 'root.key');
    await assert.rejects(load({ file: nowhere, createIfMissing: true, random }), {
      name: 'RootKeyError',
      message: `the root key (file ${nowhere}) cannot be created: ENOENT`,
    });
  });
});
