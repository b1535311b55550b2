/**
 * No call ever runs with less isolation than was found at the start, whatever makes starts of processes fail: the test
 * looks at every process that ran code, and knows nothing of the cause.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { spawnVault, type VaultProcess } from '../support/process.ts';
import { echo } from '../support/reactors.ts';
import { descendants, killIfAlive } from '../support/running.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { createApplication, managementKey, request } from '../support/vault.ts';

const isLinux = process.platform === 'linux';
const isRoot = process.getuid?.() === 0;
const needsRoot = 'only root can put failing programs in place of those of the system';
const needsOverlay = 'no overlay may be mounted here';
const skip = isLinux ? false : 'isolation is a matter of Linux';

function start(t: TestContext, command?: readonly string[]): Promise<VaultProcess> {
  const environment = {
    STRONGROOM_PORT: '0',
    STRONGROOM_DATA_DIR: temporaryDirectory(t),
    STRONGROOM_BOOTSTRAP_KEY: managementKey,
    STRONGROOM_THREADS: '1',
    STRONGROOM_RATE_LIMITS: 'off',
  };
  return spawnVault(t, environment, command);
}

/** As a vault without trouble keeps code apart. */
async function usualIsolation(t: TestContext, command?: readonly string[]): Promise<object> {
  const vault = await start(t, command);
  const { status, seen } = await observed(vault, await caller(vault.url));
  assert.equal(status, 200);
  const [isolation] = seen;
  assert.ok(isolation);
  await vault.kill();
  return isolation;
}

/** Creating the reactor starts the first process, to check the code. */
async function caller(url: string) {
  const body = { name: 'echo', code: echo };
  const created = await request(`${url}/reactors`, 'POST', { key: managementKey, body });
  assert.equal(created.status, 201, created.text);
  const key = await createApplication(url, { permissions: ['reactor:invoke'] });
  return () =>
    request(`${url}/reactors/${created.body.id}/react`, 'POST', { key, body: { args: {} } });
}

/** The processes in which code runs; those before them only start them. */
function codeProcesses(vault: VaultProcess): readonly number[] {
  return descendants(vault.pid).filter((pid) => {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0');
      return words[0]?.endsWith('node') && words.some((word) => /sandbox\/child\/main/.test(word));
    } catch {
      return false;
    }
  });
}

const namespaces = ['pid', 'net', 'mnt', 'user', 'ipc', 'uts'];

/** All that keeps a process apart, as the system says it. */
function isolationOf(pid: number, vault: VaultProcess): object {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  const line = (name: string) => new RegExp(`^${name}:\\s+(.*)$`, 'm').exec(status)?.[1];
  const lines = ['Uid', 'Gid', 'CapEff', 'CapBnd', 'NoNewPrivs', 'Seccomp', 'Seccomp_filters'];
  const link = (of: number, name: string) => readlinkSync(`/proc/${of}/ns/${name}`);
  return {
    ...Object.fromEntries(lines.map((name) => [name, line(name)])),
    apart: namespaces.filter((name) => link(pid, name) !== link(vault.pid, name)),
    root: readdirSync(`/proc/${pid}/root`).length,
  };
}

/** The descriptor that the system would give next. */
function lowestFree(pid: number): number {
  const used = new Set(readdirSync(`/proc/${pid}/fd`).map(Number));
  let descriptor = 0;
  while (used.has(descriptor)) descriptor += 1;
  return descriptor;
}

/** Calls, looks at whatever process there is then, and ends it, so that the next call starts another. */
async function observed(vault: VaultProcess, call: () => ReturnType<typeof request>) {
  const { status } = await call();
  const seen = codeProcesses(vault).map((pid) => isolationOf(pid, vault));
  for (const pid of codeProcesses(vault)) killIfAlive(pid);
  return { status, seen };
}

test('without free descriptors calls are refused, and never run with less', { skip }, async (t) => {
  const isolation = await usualIsolation(t);
  const vault = await start(t);
  await createApplication(vault.url);
  // Connections without a key, as an attacker holds them.
  const { port } = new URL(vault.url);
  const idle = Array.from({ length: 20 }, () => connect(Number(port), '127.0.0.1'));
  t.after(() => {
    for (const socket of idle) socket.destroy();
  });
  for (const socket of idle) socket.on('error', () => undefined);
  await Promise.all(idle.map((socket) => new Promise((done) => socket.once('connect', done))));
  const setLimit = (most: number) =>
    execFileSync('/usr/bin/prlimit', ['--pid', String(vault.pid), `--nofile=${most}:`]);
  const limits = readFileSync(`/proc/${vault.pid}/limits`, 'latin1');
  const usual = Number(/^Max open files +(\d+)/m.exec(limits)?.[1]);
  const ends: number[] = [];
  setLimit(lowestFree(vault.pid));
  const call = await caller(vault.url);
  for (const free of [0, 2, 4, 6, 8]) {
    setLimit(lowestFree(vault.pid) + free);
    const { status, seen } = await observed(vault, call);
    setLimit(usual);
    ends.push(status);
    assert.ok([200, 429, 503].includes(status), String(status));
    for (const one of seen) assert.deepEqual(one, isolation);
  }
  assert.ok(ends.includes(503), ends.join());
  const after = await observed(vault, call);
  assert.equal(after.status, 200);
  assert.deepEqual(after.seen, [isolation]);
});

const main = join(import.meta.dirname, '..', '..', 'bin', 'strongroom.js');
/** Other tests may start a copy that only its owner can read, for which a machine permits less. */
const serve = [process.execPath, main, 'serve'];

const overlaid = (folder: string) => `mount -t overlay -o lowerdir=${folder}:/usr overlay /usr`;

function skipWithoutOverlay(): string | false {
  if (!isLinux || !isRoot) return isRoot ? skip : needsRoot;
  const { status } = spawnSync('unshare', ['--mount', 'sh', '-c', overlaid('/mnt')]);
  return status === 0 ? false : needsOverlay;
}

const skipReplaced = skipWithoutOverlay();

interface Replacing {
  /** Programs below /usr/bin that do something else first, and then what they always do. */
  readonly programs: readonly string[];
  readonly first: string;
  /** Links below /usr/bin, by their names. */
  readonly links?: Readonly<Record<string, string>>;
  /** Other files that are seen in place of the system's, by their paths. */
  readonly files?: Readonly<Record<string, string>>;
}

/**
 * Starts a vault that sees other programs. They are in one file system with the rest of /usr: code is shown /usr, and
 * a new user namespace may not show it without what is mounted below it.
 */
function replacing(
  t: TestContext,
  { programs, first, links = {}, files = {} }: Replacing,
): readonly string[] {
  const folder = openDirectory(t);
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  chmodSync(bin, 0o755);
  for (const name of programs) {
    copyFileSync(join('/usr/bin', name), join(bin, `real-${name}`));
    const text = `#!/bin/sh\n${first}\nexec /usr/bin/real-${name} "$@"\n`;
    writeFileSync(join(bin, name), text, { mode: 0o755 });
  }
  for (const [name, target] of Object.entries(links)) symlinkSync(target, join(bin, name));
  const bound = Object.entries(files).map(([path, file]) => `mount --bind ${file} ${path}`);
  const script = [overlaid(folder), ...bound, 'exec "$@"'].join(' && ');
  return ['unshare', '--mount', 'sh', '-c', script, 'sh', ...serve];
}

function openDirectory(t: TestContext): string {
  const folder = temporaryDirectory(t);
  chmodSync(folder, 0o755);
  return folder;
}

const noNamespaceLeft = "echo 'unshare: unshare failed: No space left on device' >&2; exit 1";

test('namespaces that are used up while the vault starts are waited for', {
  skip: skipReplaced,
}, async (t) => {
  const isolation = await usualIsolation(t, serve);
  const starts = openDirectory(t);
  // Nobody, whom code runs as, starts the program.
  chmodSync(starts, 0o777);
  // It fails as often as a machine that refuses is asked, and once more.
  const count = `$(ls ${starts} | wc -l)`;
  // It may write no byte to a file.
  const first = `: > ${starts}/$$; if [ ${count} -le 3 ]; then ${noNamespaceLeft}; fi`;
  const vault = await start(t, replacing(t, { programs: ['unshare'], first }));
  const { seen } = await observed(vault, await caller(vault.url));
  assert.ok(seen.length > 0);
  for (const one of seen) assert.deepEqual(one, isolation);
});

test('a machine that allows no namespaces at all is not waited for', {
  skip: skipReplaced,
}, async (t) => {
  const none = join(openDirectory(t), 'none');
  writeFileSync(none, '0\n');
  const files = { '/proc/sys/user/max_user_namespaces': none };
  const without = { programs: ['unshare'], first: noNamespaceLeft, files };
  const vault = await start(t, replacing(t, without));
  const { status, seen } = await observed(vault, await caller(vault.url));
  assert.equal(status, 200);
  assert.ok(seen.length > 0);
  for (const one of seen) assert.deepEqual((one as { apart: unknown }).apart, []);
});

test('starts that fail at random never lead to a process with less', {
  skip: skipReplaced,
}, async (t) => {
  const isFailing = join(openDirectory(t), 'failing');
  const first = `if [ -e ${isFailing} ]; then
  case $(cat /proc/sys/kernel/random/uuid) in
    [0-3]*) exit 1;; [4-6]*) kill -9 $$;; 7*) echo 'Operation not permitted' >&2; exit 1;;
    8*) ${noNamespaceLeft};;
  esac
fi`;
  const command = replacing(t, { programs: ['setpriv', 'unshare', 'perl'], first });
  const isolation = await usualIsolation(t, serve);
  const vault = await start(t, command);
  writeFileSync(isFailing, '');
  const call = await caller(vault.url);
  let ran = 0;
  for (let calls = 0; calls < 6; calls += 1) {
    const { status, seen } = await observed(vault, call);
    assert.ok(status === 200 || status === 503, String(status));
    for (const one of seen) assert.deepEqual(one, isolation);
    ran += seen.length;
  }
  assert.ok(ran > 0);
  t.diagnostic(`${ran} processes ran code`);
});

test('a start that throws at once refuses its call', { skip: skipReplaced }, async (t) => {
  const isolation = await usualIsolation(t, serve);
  const folder = openDirectory(t);
  const programs = join(folder, 'programs');
  mkdirSync(programs);
  chmodSync(programs, 0o755);
  copyFileSync('/usr/bin/sh', join(programs, 'sh'));
  const link = join(folder, 'link');
  symlinkSync(programs, link);
  const links = { sh: join(link, 'sh') };
  const vault = await start(t, replacing(t, { programs: [], first: '', links }));
  const call = await caller(vault.url);
  assert.deepEqual((await observed(vault, call)).seen.at(0), isolation);
  // A link that leads to itself: node reports the ELOOP of exec by an exception, not by an event.
  rmSync(link);
  symlinkSync(link, link);
  const refused = await observed(vault, call);
  assert.deepEqual(refused, { status: 503, seen: [] });
  rmSync(link);
  symlinkSync(programs, link);
  const after = await observed(vault, call);
  assert.equal(after.status, 200);
  assert.deepEqual(after.seen, [isolation]);
});
