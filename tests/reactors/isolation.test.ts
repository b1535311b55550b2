/**
 * The process of a tenant's code, as its attacker finds it who got out of the engine: these scripts are not
 * under Node's permission model, as machine code would not be.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { filterCommand, isolations } from '../../src/reactors/sandbox/isolation.ts';
import { openSandbox } from '../../src/reactors/sandbox/open.ts';
import { findIsolation } from '../../src/reactors/sandbox/probe.ts';
import { deniedCalls, systemCallFilter } from '../../src/reactors/sandbox/system-calls.ts';
import { callOf, returnedBy } from '../support/code-calls.ts';
import { descendants, isRunning } from '../support/running.ts';

const ways = isolations(false);
const filteredWays = isolations(true).filter(({ isFiltered }) => isFiltered);

function isFilterPermitted(): boolean {
  const [command = '', ...args] = filterCommand() ?? [];
  return command !== '' && spawnSync(command, args, { env: {} }).status === 0;
}

const noFilter = isFilterPermitted()
  ? false
  : 'no program on this machine installs a seccomp filter, or it is not permitted';

function wordsOf(
  name: string,
  script: string,
  of: typeof ways = ways,
): readonly string[] | undefined {
  const words = of.find((way) => way.name === name)?.words ?? [];
  const begin = words.lastIndexOf(process.execPath);
  if (begin === -1) return undefined;
  return [...words.slice(0, begin + 1), '--disable-sigusr1', '-e', script];
}

/** What the script prints as JSON, or `undefined` where the machine does not permit this way. */
function found(name: string, script: string, of: typeof ways = ways): unknown {
  const [command = '', ...args] = wordsOf(name, script, of) ?? [];
  if (command === '') return undefined;
  const { status, stdout } = spawnSync(command, args, { env: {}, cwd: '/', encoding: 'utf8' });
  return status === 0 ? JSON.parse(stdout) : undefined;
}

const attempt = `
const fs = require('node:fs');
const attempt = (f) => { try { return f() ?? 'done' } catch (error) { return error.code ?? error.message } };
const print = (value) => fs.writeSync(1, JSON.stringify(value));
`;

const apart = ['namespaces and user', 'namespaces'].find((name) =>
  found(name, `${attempt} print(1)`),
);

test('this machine permits what the tests below need, or they could not fail', () => {
  if (apart === undefined) {
    // Where there are no namespaces, the weaker ways have to work.
    assert.equal(found('limits', `${attempt} print(1)`), 1);
  } else assert.match(apart, /namespaces/);
});

test('the environment says nothing but that io_uring is off', () => {
  for (const { name } of ways.filter((way) => way.name !== 'none')) {
    const environment = found(name, `${attempt} print(process.env)`);
    if (environment === undefined) continue;
    const { PWD: _pwd, ...more } = environment as Record<string, string>;
    assert.deepEqual(more, { UV_USE_IO_URING: '0' }, name);
  }
});

test('nothing is inherited but the channel', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const file = openSync(import.meta.filename, 'r');
  try {
    for (const way of [...ways, ...filteredWays]) {
      if (found(way.name, `${attempt} print(1)`, [way]) === undefined) continue;
      const sandbox = openSandbox(way);
      try {
        await returnedBy(sandbox, callOf('module.exports = () => 1'));
        assert.deepEqual(inheritedBy(codeProcess()), [], way.name);
      } finally {
        await sandbox.close();
      }
    }
  } finally {
    closeSync(file);
    server.close();
  }
});

/** Descriptors of the program that started the vault, such as that of a lock, are open in all that the vault starts. */
test('what the vault itself inherited is closed', { skip: noFilter }, () => {
  const inherited = 30;
  const directory = openSync('/', 'r');
  try {
    for (const { name } of filteredWays) {
      const script = `${attempt} print(attempt(() => fs.fstatSync(${inherited}).isDirectory()))`;
      const [command = '', ...args] = wordsOf(name, script, filteredWays) ?? [];
      const between = Array<'ignore'>(inherited - 3).fill('ignore');
      const { status, stdout } = spawnSync(command, args, {
        env: {},
        cwd: '/',
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore', ...between, directory],
      });
      if (status === 0) assert.equal(stdout, '"EBADF"', name);
    }
  } finally {
    closeSync(directory);
  }
});

/** The process that runs Node; those before it only started it. */
function codeProcess(): number {
  const pid = descendants().find((one) =>
    readFileSync(`/proc/${one}/cmdline`, 'latin1').startsWith(process.execPath),
  );
  assert(pid, 'a process of code runs');
  return pid;
}

/** Descriptors that are neither the channel nor what Node opens itself. */
function inheritedBy(pid: number): readonly string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    const link = readlinkSync(`/proc/${pid}/fd/${fd}`);
    const own = Number(fd) <= 2 ? /^socket:|^pipe:|^\/dev\/null$/ : /^anon_inode:|^pipe:/;
    return own.test(link) || link === '/dev/null' ? [] : [`${fd} ${link}`];
  });
}

for (const { name } of filteredWays) {
  test(`${name}: Node runs under the filter, and finds what it denies`, { skip: noFilter }, () => {
    const denied = found(
      name,
      `${attempt} const { spawnSync } = require('node:child_process');
       const done = (code) => { print([attempt(() => process.kill(${process.pid}, 0)),
         attempt(() => process.kill(process.pid, 0)), spawnSync('/bin/true').error?.code,
         attempt(() => require('node:os').setPriority(0, 5)), code]); process.exit() };
       require('node:net').connect(1, '127.0.0.1').on('error', (error) => done(error.code));`,
      filteredWays,
    );
    if (denied === undefined) return;
    assert.deepEqual(denied, ['EPERM', 'EPERM', 'EPERM', 'ERR_SYSTEM_ERROR', 'EPERM']);
  });
}

/** Machine code makes system calls; Perl can make any, too. Without a filter these fail in another way. */
test('each denied system call fails with EPERM', { skip: noFilter }, () => {
  const [command = '', ...args] = filterCommand() ?? [];
  const isX86 = process.arch === 'x64';
  const [clone, prlimit64] = isX86 ? [56, 302] : [220, 261];
  const numbers = Object.entries(deniedCalls).flatMap(([name, of]) => {
    const number = of[isX86 ? 0 : 1];
    return number === undefined ? [] : [[name, number] as const];
  });
  const script = `
    sub attempt { my $name = shift; $! = 0; syscall(shift, @_); print $name, " ", 0 + $!, ","; }
    attempt($_, $_, -1, -1, -1, -1, -1, -1) for (@ARGV);
    attempt("clone3", 435, 0, 0);
    attempt("process", ${clone}, 17, 0, 0, 0, 0);
    attempt("namespace", ${clone}, 0x10010000, 0, 0, 0, 0);
    attempt("limits of another", ${prlimit64}, getppid(), 7, 0, 0);
    attempt("limits", ${prlimit64}, 0, 7, 0, 0);`;
  const words = [...args.slice(0, -1), '/usr/bin/perl', '-e', script];
  const { stdout } = spawnSync(command, [...words, ...numbers.map((one) => String(one[1]))], {
    env: {},
    encoding: 'latin1',
  });
  const errors = new Map(
    stdout.split(',').map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), line.slice(at + 1)] as const;
    }),
  );
  const eperm = '1';
  for (const [name, number] of numbers) assert.equal(errors.get(String(number)), eperm, name);
  for (const name of ['process', 'namespace', 'limits of another']) {
    assert.equal(errors.get(name), eperm, name);
  }
  const enosys = '38';
  assert.deepEqual([errors.get('clone3'), errors.get('limits')], [enosys, '0']);
});

test('the filter is a valid program for each architecture, and there is none for others', () => {
  for (const name of ['x64', 'arm64']) {
    const bytes = systemCallFilter(name)?.program ?? Buffer.alloc(0);
    const length = bytes.length / 8;
    assert.ok(length > 100 && length <= 4096 && Number.isInteger(length));
    const responds = 0x06;
    assert.equal(bytes.readUInt16LE((length - 1) * 8), responds);
    for (let at = 0; at < length; at += 1) {
      const isJump = (bytes.readUInt16LE(at * 8) & 0x07) === 0x05;
      const furthest = Math.max(bytes.readUInt8(at * 8 + 2), bytes.readUInt8(at * 8 + 3));
      if (isJump) assert.ok(at + 1 + furthest < length);
    }
  }
  assert.equal(systemCallFilter('s390x'), undefined);
});

if (apart !== undefined) {
  test('no file of the vault can be read, and no process be seen', () => {
    const folder = mkdtempSync(join(tmpdir(), 'vault-'));
    try {
      const key = join(folder, 'root.key');
      writeFileSync(key, 'secret', { mode: 0o644 });
      const paths = [
        key,
        `/proc/${process.pid}/environ`,
        `/proc/${process.pid}/mem`,
        '/proc/1/environ',
        '/proc/self/environ',
        '/etc/passwd',
        `${process.cwd()}/README.md`,
        '/.old/etc/passwd',
        '/dev/mem',
        '/../etc/passwd',
      ];
      const script = `
        ${attempt} print(${JSON.stringify(paths)}.map((path) => attempt(() => fs.readFileSync(path,
        'latin1').slice(0, 20))))`;
      const missing = paths.map(() => 'ENOENT');
      assert.deepEqual(found(apart, script), missing);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('nothing can be written', () => {
    const places = [
      '/x',
      '/tmp/x',
      '/usr/x',
      '/proc/x',
      join(process.cwd(), 'src/reactors/sandbox/x'),
      '/mnt/x',
      process.execPath,
    ];
    const script = `
      ${attempt} print(${JSON.stringify(places)}.map((path) => attempt(() => fs.writeFileSync(path,
      'x'))).filter((code) => code === 'done'))`;
    assert.deepEqual(found(apart, script), []);
  });

  test('no process outside can be signalled', () => {
    const script = `${attempt} print([${process.pid},
      ${process.ppid}].map((pid) => attempt(() => process.kill(pid, 0))))`;
    assert.deepEqual(found(apart, script), ['ESRCH', 'ESRCH']);
  });

  test('no privileges can be had', () => {
    const commands = [
      'mount -t proc proc /proc',
      'mount -o remount,rw /',
      'unshare --user true',
      'chroot / true',
    ];
    const script = `${attempt} const { spawnSync } = require('node:child_process');
      print(${JSON.stringify(commands)}.map((line) => spawnSync('/bin/sh', ['-c', line]).status === 0))`;
    const results = found(apart, script) as boolean[];
    assert.deepEqual([results[0], results[1], results[3]], [false, false, false]);
  });

  test('no address can be reached', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const { port } = server.address() as { port: number };
      const script = `${attempt} const done = (value) => { print(value); process.exit() };
        require('node:net').connect(${port}, '127.0.0.1').on('connect',
        () => done('connected')).on('error', (error) => done(error.code))`;
      assert.equal(found(apart, script), 'ENETUNREACH');
    } finally {
      server.close();
    }
  });

  test('processes that it starts end with it', async () => {
    const script = `const { spawn } = require('node:child_process'); for (let i = 0; i < 5;
      i += 1) spawn('/bin/sh', ['-c', 'while :; do :; done'], { detached: true,
      stdio: 'inherit' }).unref(); require('node:fs').writeSync(1, 'x'); for (;;);`;
    const [command = '', ...args] = wordsOf(apart, script) ?? [];
    const child = spawn(command, args, {
      env: {},
      cwd: '/',
      stdio: ['pipe', 'pipe', 'ignore'],
      detached: true,
    });
    await once(child.stdout, 'data');
    assert.ok(descendants(child.pid).length >= 6);
    const closed = once(child, 'close');
    child.kill('SIGKILL');
    await closed;
    assert.deepEqual(descendants(), []);
  });
}

test('a process ends with the one that started it, also in a loop', async () => {
  const script = `
import { openTestSandbox } from ${JSON.stringify(new URL('../support/sandboxes.ts', import.meta.url).href)};
import { callOf } from ${JSON.stringify(new URL('../support/code-calls.ts', import.meta.url).href)};
const sandbox = openTestSandbox();
await sandbox.run(callOf('module.exports = () => 1'));
sandbox.run(callOf('module.exports = () => { console.log("begun"); for (;;); }', { timeoutMs: 600_000 }));
process.stdout.write('ready');
`;
  const parent = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(parent.stdout, 'data');
  const children = descendants(parent.pid);
  assert.ok(children.length > 0);
  parent.kill('SIGKILL');
  await once(parent, 'exit');
  await untilGone(children);
});

/** A process that was killed may be seen until its parent, init by then, has been notified. */
async function untilGone(pids: readonly number[]): Promise<void> {
  while (pids.some(isRunning)) await new Promise((turn) => setImmediate(turn));
}

test('the strongest way that this machine permits is found, and the filter', async () => {
  const isolation = await findIsolation();
  const strongest = ways.find(({ name }) => found(name, `${attempt} print(1)`) === 1);
  assert.equal(isolation?.name, strongest?.name);
  assert.equal(isolation?.isFiltered, noFilter === false);
  const { words: _words, ...none } = (await findIsolation('none')) ?? {};
  assert.deepEqual(none, { name: 'none', isFiltered: false });
});

test('a process has the limits, and the filter, that were promised', async () => {
  const isolation = await findIsolation();
  assert(isolation);
  const sandbox = openSandbox(isolation);
  try {
    await returnedBy(sandbox, callOf('module.exports = () => 1'));
    const pid = codeProcess();
    const limits = readFileSync(`/proc/${pid}/limits`, 'latin1');
    assert.match(limits, /^Max data size +805306368 +805306368 /m);
    assert.match(limits, /^Max core file size +0 +0 /m);
    assert.equal(readFileSync(`/proc/${pid}/oom_score_adj`, 'latin1'), '1000\n');
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    assert.match(status, /^NoNewPrivs:\t1$/m);
    if (isolation.isFiltered) assert.match(status, /^Seccomp:\t2$/m);
  } finally {
    await sandbox.close();
  }
});
