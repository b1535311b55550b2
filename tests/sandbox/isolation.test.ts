/**
 * The process of a tenant's code, as its attacker finds it who got out of the engine: these scripts are not
 * under Node's permission model, as machine code would not be.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { isolations } from '../../src/sandbox/isolation.ts';
import { openSandbox } from '../../src/sandbox/open.ts';
import { callOf, returnedBy } from '../support/code-calls.ts';
import { descendants, isRunning } from '../support/running.ts';

const ways = isolations();

function wordsOf(name: string, script: string): readonly string[] | undefined {
  const words = ways.find((way) => way.name === name)?.words ?? [];
  const begin = words.lastIndexOf(process.execPath);
  if (begin === -1) return undefined;
  return [...words.slice(0, begin + 1), '--disable-sigusr1', '-e', script];
}

/** What the script prints as JSON, or `undefined` where the machine does not permit this way. */
function found(name: string, script: string): unknown {
  const [command = '', ...args] = wordsOf(name, script) ?? [];
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

test('the environment is empty', () => {
  for (const { name } of ways) {
    const environment = found(name, `${attempt} print(Object.keys(process.env))`);
    if (environment !== undefined && name !== 'limits') assert.deepEqual(environment, [], name);
  }
});

test('nothing is inherited but the channel', () => {
  const script = `${attempt} print([3, 4, 5, 6, 7, 8, 9, 10, 11,
    12].filter((fd) => attempt(() => fs.readSync(fd, Buffer.alloc(1), 0, 1,
    0)) !== 'EBADF' && fs.fstatSync(fd).isSocket()))`;
  for (const { name } of ways) {
    const open = found(name, script);
    if (open !== undefined) assert.deepEqual(open, [], name);
  }
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
      join(process.cwd(), 'src/sandbox/x'),
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
import { openSandbox } from ${JSON.stringify(new URL('../../src/sandbox/open.ts', import.meta.url).href)};
import { callOf } from ${JSON.stringify(new URL('../support/code-calls.ts', import.meta.url).href)};
const sandbox = openSandbox();
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

test('code runs under the strongest way that this machine permits, which is said once', async () => {
  const ways: string[] = [];
  const sandbox = openSandbox({}, (name) => ways.push(name));
  try {
    await returnedBy(sandbox, callOf('module.exports = () => 1'));
    await returnedBy(sandbox, callOf('module.exports = () => 1', { tenant: 'another' }));
    assert.deepEqual(ways, [sandbox.state().isolation]);
    const lines = descendants().map((pid) => readFileSync(`/proc/${pid}/cmdline`, 'latin1'));
    assert.equal(
      lines.some((line) => line.includes('unshare')),
      apart !== undefined,
    );
  } finally {
    await sandbox.close();
  }
});
