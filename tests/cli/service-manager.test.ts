/** A unit of Type=notify: systemd learns when the vault is ready, reloads, stops, and as long as it is alive. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { engineOf } from '../support/engines.ts';
import { environmentOf, spawnVault, untilOutput } from '../support/process.ts';
import { python } from '../support/python.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** Node opens no datagram socket of a file system, as systemd listens on, so a Python does it for the test. */
const listener = `
import json, socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
print(json.dumps("listening"), flush=True)
while True:
    text, descriptors, _, _ = socket.recv_fds(receiver, 65536, 8)
    for descriptor in descriptors:
        socket.close(descriptor)
    # What systemd-notify sends of itself, and waits for.
    if text != b"BARRIER=1":
        print(json.dumps(text.decode()), flush=True)
`;

const missing = [
  ['systemd-notify', ['--version']],
  [python, ['--version']],
].flatMap(([program, words]) =>
  spawnSync(program as string, words as string[]).status === 0 ? [] : [program],
);
const skip = missing.length > 0 && `not here: ${missing.join(', ')}`;

interface Notified {
  readonly socket: string;
  /** Resolves with the first notification from now on that matches. */
  until(form: RegExp): Promise<string>;
}

async function listen(t: TestContext): Promise<Notified> {
  const socket = join(temporaryDirectory(t), 'notify');
  const child = spawn(python, ['-c', listener, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const next = async (): Promise<string> => {
    const { value, done } = await lines.next();
    assert.ok(!done, 'the listener has ended');
    return JSON.parse(value);
  };
  assert.equal(await next(), 'listening');
  return {
    socket,
    until: async (form) => {
      for (;;) {
        const text = await next();
        if (form.test(text)) return text;
      }
    },
  };
}

test('READY, WATCHDOG, RELOADING with its time, READY again, STOPPING', { skip }, async (t) => {
  const { socket, until } = await listen(t);
  const place = await engineOf('sqlite').place(t);
  const vault = await spawnVault(
    t,
    environmentOf(place, {
      NOTIFY_SOCKET: socket,
      WATCHDOG_USEC: '200000',
      STRONGROOM_THREADS: '2',
    }),
  );
  assert.equal(await until(/READY=1/), `READY=1\nSTATUS=Listens on ${vault.url}`);
  await until(/^WATCHDOG=1$/);
  await until(/^WATCHDOG=1$/);

  const before = process.hrtime.bigint() / 1000n;
  process.kill(vault.pid, 'SIGHUP');
  const reloading = await until(/^RELOADING=1/);
  const at = BigInt(/^RELOADING=1\nMONOTONIC_USEC=(\d+)$/.exec(reloading)?.[1] ?? 0);
  assert.ok(at >= before && at <= process.hrtime.bigint() / 1000n);
  await until(/^READY=1\nSTATUS=Listens on /);

  vault.terminate();
  await until(/^STOPPING=1\n/);
  assert.equal((await vault.finished).code, 0);
});

test('without systemd-notify it serves as ever, and says once that nobody is notified', {
  skip,
}, async (t) => {
  const { socket } = await listen(t);
  const place = await engineOf('sqlite').place(t);
  const environment = environmentOf(place, { NOTIFY_SOCKET: socket, PATH: temporaryDirectory(t) });
  const vault = await spawnVault(t, environment);
  await untilOutput(
    vault,
    /"level":50,[^\n]*systemd cannot be notified: systemd-notify is missing/,
  );
  process.kill(vault.pid, 'SIGHUP');
  await untilOutput(vault, /reload: /);
  vault.terminate();
  const { code, stdout } = await vault.finished;
  assert.equal(code, 0);
  assert.equal(stdout.match(/systemd cannot be notified/g)?.length, 1);
});

test('another process is meant by WATCHDOG_PID: this one sends nothing of the kind', {
  skip,
}, async (t) => {
  const { socket, until } = await listen(t);
  const place = await engineOf('sqlite').place(t);
  const watchdog = { WATCHDOG_USEC: '1000', WATCHDOG_PID: '1' };
  const vault = await spawnVault(t, environmentOf(place, { NOTIFY_SOCKET: socket, ...watchdog }));
  await until(/^READY=1/);
  process.kill(vault.pid, 'SIGHUP');
  assert.match(await until(/=/), /^RELOADING=1/);
});
