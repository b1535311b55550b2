/** `STRONGROOM_REACTOR_ISOLATION`: one way and no other, or no start. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { runCommand, spawnVault } from '../support/process.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { managementKey } from '../support/vault.ts';

function environmentWith(t: TestContext, isolation: string) {
  return {
    STRONGROOM_PORT: '0',
    STRONGROOM_DATA_DIR: temporaryDirectory(t),
    STRONGROOM_BOOTSTRAP_KEY: managementKey,
    STRONGROOM_THREADS: '1',
    STRONGROOM_REACTOR_ISOLATION: isolation,
  };
}

test('a start and doctor say that there is no isolation where that was asked for', async (t) => {
  const environment = environmentWith(t, 'none');
  const vault = await spawnVault(t, environment);
  const lines = vault.output().split('\n');
  const line = lines.find((one) => one.includes('without any isolation'));
  assert.match(line ?? '', /"level":40/);
  const { stdout } = await runCommand(['doctor', '--json'], environment);
  const { findings } = JSON.parse(stdout);
  const code = findings.filter((one: { readonly check: string }) => one.check === 'code');
  assert.equal(code[0].status, 'warning');
  assert.match(code[0].advice, /STRONGROOM_REACTOR_ISOLATION=none/);
});

test('a way that does not exist refuses the start', async (t) => {
  const refused = await runCommand(['serve'], environmentWith(t, 'everything'));
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /STRONGROOM_REACTOR_ISOLATION/);
});

/** Runs the words where new namespaces are refused, as in a container with the usual profile. */
const withoutNamespaces = [
  ...['/usr/bin/unshare', '--user', '--map-root-user', '/bin/sh', '-c'],
  ...['echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"', 'sh'],
];
const main = join(import.meta.dirname, '..', '..', 'bin', 'strongroom.js');
const isPermitted = spawnSync(withoutNamespaces[0] ?? '', [...withoutNamespaces.slice(1), 'true']);
const skip = isPermitted.status === 0 ? false : 'this machine lets nobody refuse namespaces';

test('a start is refused where the machine does not permit what was asked for', { skip }, (t) => {
  const environment = environmentWith(t, 'namespaces');
  const serve = [process.execPath, main, 'serve'];
  const [program = '', ...words] = [...withoutNamespaces, ...serve];
  const refused = spawnSync(program, words, { env: environment, encoding: 'utf8' });
  assert.equal(refused.status, 1, refused.stdout);
  assert.match(refused.stderr, /STRONGROOM_REACTOR_ISOLATION=namespaces is set, but this machine/);
  assert.doesNotMatch(refused.stdout, /listens on/);
});
