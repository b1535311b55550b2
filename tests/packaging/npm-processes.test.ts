/** A server that npm, npx or an older Node started ends with it: whichever process ends, nothing holds the data. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { DirectoryLockedError, lockDirectory } from '../../src/store/sqlite/directory-lock.ts';
import { findOldNode } from '../support/old-node.ts';
import { type Environment, spawnVault } from '../support/process.ts';
import { descendants, killIfAlive } from '../support/running.ts';
import { committedPaths, root } from '../support/source.ts';
import { type Lender, temporaryDirectory } from '../support/temporary.ts';
import { managementKey } from '../support/vault.ts';

/** Each attempt to lock waits for a second. */
const attemptsMax = 30;

const gives: (() => void | Promise<void>)[] = [];
const file: Lender = { after: (give) => void gives.push(give) };
let checkout = '';

before(() => {
  checkout = temporaryDirectory(file);
  const needed = /^(?:src|bin)\/|^package|^\.npmrc$/;
  for (const path of committedPaths().filter((one) => needed.test(one))) {
    cpSync(join(root, path), join(checkout, path));
  }
  symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'));
});

after(async () => {
  for (const give of gives) await give();
});

/** Without the folders that `npm test` puts before those of the user. */
const userPath = (process.env['PATH'] ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(delimiter);

const inCheckout = (...words: readonly string[]) => [
  ...['/bin/sh', '-c', 'cd "$0" && exec "$@"', checkout],
  ...words,
];

const oldNode = findOldNode();
const noOldNode = oldNode === undefined && 'this machine has no Node before version 24';

/** The command, and which of its processes lead to the server, itself included. */
const starts = [
  {
    title: 'npx strongroom serve',
    words: () => inCheckout('npx', 'strongroom', 'serve'),
    depths: [0, 1, 2],
  },
  {
    title: 'npx node',
    words: () => inCheckout('npx', 'node', 'bin/strongroom.js', 'serve'),
    depths: [0, 1, 2],
  },
  { title: 'npm start', words: () => inCheckout('npm', 'start'), depths: [0, 1] },
  {
    title: 'an older Node, which starts the installed one',
    words: () => [oldNode ?? '', join(checkout, 'bin', 'strongroom.js'), 'serve'],
    depths: [0, 1],
    skip: noOldNode,
  },
];

for (const { title, words, depths, skip = false } of starts) {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    for (const depth of depths) {
      test(`${title}: after ${signal} of process ${depth} nothing holds the data`, {
        skip,
      }, async (t) => {
        const environment = environmentIn(temporaryDirectory(t));
        const vault = await spawnVault(t, environment, words());
        const { STRONGROOM_DATA_DIR: dataDir = '' } = environment;
        assert.throws(() => lockDirectory(dataDir), DirectoryLockedError);
        const chain = chainFrom(vault.pid);
        assert.ok(depth < chain.length, `${chain}`);
        killIfAlive(chain[depth] ?? 0, signal);
        untilLocked(dataDir);
        await vault.finished;
      });
    }
  }
}

test('the exit code of the installed Node is that of the older one, and signals reach it', {
  skip: noOldNode,
}, async (t) => {
  const environment = environmentIn(temporaryDirectory(t));
  const command = [oldNode ?? '', join(checkout, 'bin', 'strongroom.js'), 'serve'];
  const vault = await spawnVault(t, environment, command);
  const refused = spawnVault(t, environment, command);
  await assert.rejects(refused, /ended with 1 before it listened:\n.*Another server is running/s);
  vault.terminate();
  assert.equal((await vault.finished).code, 0);
});

const noScript =
  spawnSync('script', ['--version']).error !== undefined && 'this machine has no `script`';

test('a server in a terminal goes on after SIGHUP, and ends when the terminal is closed', {
  skip: noScript,
}, async (t) => {
  const environment = environmentIn(temporaryDirectory(t));
  const { STRONGROOM_DATA_DIR: dataDir = '' } = environment;
  const command = `'${process.execPath}' '${join(checkout, 'bin', 'strongroom.js')}' serve`;
  // It has the other end of the terminal in which the command runs.
  const terminal = spawn('script', ['--quiet', '--command', command, '/dev/null'], {
    env: environment,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.after(() => terminal.kill('SIGKILL'));
  const lines = createInterface({ input: terminal.stdout })[Symbol.asyncIterator]();
  const untilLine = async (form: RegExp) => {
    for (;;) {
      const { value, done } = await lines.next();
      assert.ok(!done, `${form} was not written`);
      if (form.test(value)) return;
    }
  };
  await untilLine(/^Strongroom listens on /);
  const server = descendants(terminal.pid).find((pid) =>
    readFileSync(`/proc/${pid}/cmdline`, 'latin1').startsWith(process.execPath),
  );
  killIfAlive(server ?? 0, 'SIGHUP');
  await untilLine(/^reload: what was read again is in use/);
  assert.throws(() => lockDirectory(dataDir), DirectoryLockedError);
  terminal.kill('SIGKILL');
  untilLocked(dataDir);
});

/** Of a user who has npm, and nothing of ours. */
function environmentIn(directory: string): Environment {
  return {
    PATH: userPath,
    HOME: directory,
    // It proves that nothing is fetched.
    npm_config_offline: 'true',
    npm_config_update_notifier: 'false',
    STRONGROOM_PORT: '0',
    STRONGROOM_DATA_DIR: join(directory, 'data'),
    STRONGROOM_BOOTSTRAP_KEY: managementKey,
    STRONGROOM_THREADS: '1',
    STRONGROOM_REACTORS: 'off',
  };
}

/** The first process below each, from the one that was started. */
function chainFrom(pid: number): readonly number[] {
  return [pid, ...descendants(pid)];
}

/** Takes the lock that a server has, and lets go of it. */
function untilLocked(dataDir: string): void {
  for (let attempt = 0; ; attempt += 1) {
    try {
      lockDirectory(dataDir).release();
      return;
    } catch (error) {
      if (!(error instanceof DirectoryLockedError) || attempt === attemptsMax) throw error;
    }
  }
}
