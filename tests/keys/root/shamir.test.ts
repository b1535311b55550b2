/** A vault whose root key people hold in shares serves nothing until enough of them were given. */
import assert from 'node:assert/strict';
import { createSecretKey, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { get } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { splitRootKey } from '../../../src/keys/root/shares.ts';
import { notOnCitus } from '../../support/citus-cluster.ts';
import { type Engine, engineOf, onBothEngines, type Place } from '../../support/engines.ts';
import { nextLook } from '../../support/poll.ts';
import {
  type Environment,
  environmentOf,
  runCommand,
  runWithInput,
  spawnVault,
} from '../../support/process.ts';
import { keyFileOf, keysInFile, openedWith } from '../../support/root-keys.ts';
import { freePort, temporaryDirectory } from '../../support/temporary.ts';
import { createApplication, request } from '../../support/vault.ts';

const program = join(import.meta.dirname, '..', '..', '..', 'bin', 'strongroom.js');

const shamir: Environment = { STRONGROOM_ROOT_KEY_SOURCE: 'shamir' };
const toShares = ['keys', 'rotate', 'root', '--to', 'shamir', '--json'];

const give = (place: Place, share: string) =>
  runWithInput(['unseal', '--json'], environmentOf(place, shamir), `${share}\n`);

async function accepted(place: Place, share: string) {
  const { code, stdout, stderr } = await give(place, share);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

async function refused(place: Place, share: string): Promise<string> {
  const { code, stdout, stderr } = await give(place, share);
  assert.equal(code, 1);
  assert.equal(stdout, '');
  assert.ok(share === '' || !stderr.includes(share), 'the message has no share');
  return stderr;
}

interface Shared {
  readonly place: Place;
  readonly key: string;
  readonly shares: readonly string[];
}

/** A vault with a token, whose root key has moved from its file to shares. */
async function moved(
  t: TestContext,
  engine: Engine,
  [shares, threshold]: readonly [number, number],
): Promise<Shared> {
  const place = await engine.place(t);
  const server = await spawnVault(t, environmentOf(place));
  const key = await createApplication(server.url);
  const body = { type: 'token', data: 'kept', id: 'kept' };
  assert.equal((await request(`${server.url}/tokens`, 'POST', { key, body })).status, 201);
  const [old] = keysInFile(place);
  assert.ok(old);
  const count = ['--shares', `${shares}`, '--threshold', `${threshold}`];
  const { code, stdout, stderr } = await runCommand([...toShares, ...count], environmentOf(place));
  assert.equal(code, 0, stderr);
  const printed = JSON.parse(stdout);
  assert.deepEqual(Object.keys(printed), ['shares']);
  assert.equal(printed.shares.length, shares);
  assert.equal((await request(`${server.url}/tokens/kept`, 'GET', { key })).body.data, 'kept');
  const made = await runCommand(['tenant', 'create', '--name', 'later'], environmentOf(place));
  assert.equal(made.code, 0, made.stderr);
  assert.deepEqual(await openedWith(engine, place, old), []);
  assert.ok(!printed.shares.some((share: string) => server.output().includes(share)));
  await server.kill();
  return { place, key, shares: printed.shares };
}

async function read(url: string, key: string): Promise<unknown> {
  return (await request(`${url}/tokens/kept`, 'GET', { key })).body.data;
}

/** Over a connection from another address of this machine than that of the crowd. */
async function statusFrom(localAddress: string, url: string): Promise<number | undefined> {
  const asking = get(url, { localAddress, agent: false });
  const [response] = await once(asking, 'response');
  response.resume();
  return response.statusCode;
}

test('connections without a key keep nobody from unsealing a vault', {
  skip: process.platform !== 'linux',
}, async (t) => {
  const { place, key, shares } = await moved(t, engineOf('sqlite'), [3, 2]);
  const port = await freePort();
  const server = await spawnVault(
    t,
    environmentOf(place, shamir, { STRONGROOM_PORT: String(port) }),
    ['bash', '-c', 'ulimit -n 512; exec "$0" "$1" serve', process.execPath, program],
  );
  const [one = '', two = ''] = shares;
  await accepted(place, one);
  let ended = 0;
  const crowd = Array.from({ length: 400 }, () => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.on('close', () => {
      ended += 1;
    });
    return socket;
  });
  t.after(() => crowd.map((socket) => socket.destroy()));
  while (ended < 300) await nextLook();
  assert.equal(await statusFrom('127.0.0.2', `${server.url}/healthz`), 200);
  assert.deepEqual(await accepted(place, two), { sealed: false, given: 2, needed: 2 });
  for (const socket of crowd) socket.destroy();
  assert.equal(await read(server.url, key), 'kept');
});

onBothEngines('a root key in shares', (engine) => {
  test('keeps the vault sealed until enough were given, on the same port', async (t) => {
    const { place, key, shares } = await moved(t, engine, [5, 3]);
    const [one = '', two = '', three = ''] = shares;
    const port = { STRONGROOM_PORT: String(await freePort()) };
    const server = await spawnVault(t, environmentOf(place, shamir, port));
    const socket = join(place.dataDir, 'strongroom.sock');
    assert.equal(statSync(socket).mode & 0o777, 0o600);

    assert.equal((await request(`${server.url}/healthz`, 'GET')).status, 200);
    const missing = async (count: number) => {
      const { status, body } = await request(`${server.url}/readyz`, 'GET');
      assert.equal(status, 503);
      assert.deepEqual(body, {
        status: 'sealed',
        shares_given: 3 - count,
        shares_needed: 3,
        shares_missing: count,
      });
    };
    await missing(3);
    for (const path of ['/tokens/kept', '/ping', '/docs', '/metrics', '/none']) {
      const { status, body } = await request(`${server.url}${path}`, 'GET', { key });
      assert.equal(status, 503, path);
      assert.equal(body.type, 'urn:strongroom:problem:unavailable');
      assert.match(body.detail, /sealed: 3 of 3 shares/);
    }
    for (const words of [
      ['tenant', 'create', '--name', 'sealed'],
      ['keys', 'rotate', 'root', '--shares', '3', '--threshold', '2'],
      ['logs', 'verify', '--state'],
    ]) {
      const { code, stderr } = await runCommand(words, environmentOf(place, shamir));
      assert.equal(code, 1);
      assert.match(stderr, /sealed: 3 of 3 shares are missing/);
    }

    assert.deepEqual(await accepted(place, one), { sealed: true, given: 1, needed: 3 });
    await missing(2);
    assert.match(await refused(place, one), /given before/);
    const middle = Math.floor(one.length / 2);
    const mistyped = `${one.slice(0, middle)}${one[middle] === 'A' ? 'B' : 'A'}${one.slice(middle + 1)}`;
    assert.match(await refused(place, mistyped), /typing error/);
    const foreign = await splitRootKey(createSecretKey(randomBytes(32)), {
      shares: 3,
      threshold: 3,
    });
    assert.match(await refused(place, foreign[0] ?? ''), /another root key/);
    assert.equal((await give(place, '')).code, 2);
    await missing(2);
    assert.deepEqual(await accepted(place, two), { sealed: true, given: 2, needed: 3 });
    assert.deepEqual(await accepted(place, three), { sealed: false, given: 3, needed: 3 });

    assert.equal(await read(server.url, key), 'kept');
    assert.equal((await request(`${server.url}/readyz`, 'GET')).status, 200);
    assert.match(await refused(place, one), /not sealed/);
    const made = await runCommand(
      ['tenant', 'create', '--name', 'new'],
      environmentOf(place, shamir),
    );
    assert.equal(made.code, 0, made.stderr);
    const verified = await runCommand(['logs', 'verify', '--state'], environmentOf(place, shamir));
    assert.equal(verified.code, 0, verified.stdout + verified.stderr);
    assert.ok(!shares.some((share) => server.output().includes(share)));

    server.terminate();
    assert.equal((await server.finished).code, 0);
    const { code, stderr } = await runCommand(['tenant', 'list'], environmentOf(place, shamir));
    assert.equal(code, 1);
    assert.match(stderr, /no server of this vault runs .* unseal/);
  });

  test('is replaced by another one, and moves back to a file', async (t) => {
    const { place, key, shares } = await moved(t, engine, [2, 2]);
    const file = { STRONGROOM_ROOT_KEY_FILE: `${keyFileOf(place)}.next` };
    const environment = environmentOf(place, shamir, file);
    const server = await spawnVault(t, environment);
    for (const share of shares) await accepted(place, share);

    const unsaid = await runCommand(['keys', 'rotate', 'root'], environment);
    assert.equal(unsaid.code, 2);
    assert.match(unsaid.stderr, /--shares 5 --threshold 3/);
    const words = ['keys', 'rotate', 'root', '--shares', '3', '--threshold', '2', '--json'];
    const again = await runCommand(words, environment);
    assert.equal(again.code, 0, again.stderr);
    assert.equal(await read(server.url, key), 'kept');
    await server.kill();

    const sealed = await spawnVault(t, environment);
    assert.match(await refused(place, shares[0] ?? ''), /another root key/);
    const [one, , three] = JSON.parse(again.stdout).shares;
    await accepted(place, one);
    assert.equal((await accepted(place, three)).sealed, false);
    assert.equal(await read(sealed.url, key), 'kept');
    const back = await runCommand(
      ['keys', 'rotate', 'root', '--to', 'file', '--json'],
      environment,
    );
    assert.equal(back.code, 0, back.stderr);
    assert.equal(await read(sealed.url, key), 'kept');
    await sealed.kill();
    const last = await spawnVault(t, environmentOf(place, file));
    assert.equal(await read(last.url, key), 'kept');
  });

  test('opens a backup of a vault that is lost', {
    skip: notOnCitus('the vault makes no backups of distributed tables'),
  }, async (t) => {
    const { place, key, shares } = await moved(t, engine, [3, 2]);
    const directory = join(temporaryDirectory(t), 'backup');
    const made = await runCommand(['backup', directory], environmentOf(place, shamir));
    assert.equal(made.code, 0, made.stderr);
    const other = await engine.place(t);
    const unlike = await runCommand(['restore', directory], environmentOf(other));
    assert.equal(unlike.code, 1);
    assert.match(
      unlike.stderr,
      /of the source shamir, and STRONGROOM_ROOT_KEY_SOURCE is file\. Set .*=shamir/,
    );
    const restore = (words: readonly string[], input: readonly string[]) =>
      runWithInput(
        ['restore', directory, ...words],
        environmentOf(other, shamir),
        input.map((line) => `${line}\n`).join(''),
      );
    assert.equal((await restore(['--dry-run'], [])).code, 0);
    const [one = '', two = ''] = shares;
    const few = await restore([], [one, one, 'no share']);
    assert.equal(few.code, 1);
    assert.match(few.stderr, /given before.*typing error.*1 of 2 were given.*Nothing was changed/s);
    assert.ok(!few.stderr.includes(one));
    const whole = await restore([], [one, two]);
    assert.equal(whole.code, 0, whole.stderr);
    const server = await spawnVault(t, environmentOf(other, shamir));
    await accepted(other, two);
    await accepted(other, one);
    assert.equal(await read(server.url, key), 'kept');
  });

  test('cannot be that of a new vault, which says how to begin', async (t) => {
    const place = await engine.place(t);
    const { code, stderr } = await runCommand(['serve'], environmentOf(place, shamir));
    assert.equal(code, 1);
    assert.match(stderr, /Begin with another source.*keys rotate root --to shamir/);
  });

  test('is not what wraps a vault of another source, which says so', async (t) => {
    const place = await engine.place(t);
    const server = await spawnVault(t, environmentOf(place));
    await server.kill();
    const { code, stderr } = await runCommand(['serve'], environmentOf(place, shamir));
    assert.equal(code, 1);
    assert.match(stderr, /wrapped by the source file/);
  });

  test('is not what opens a backup of another source, which names both', {
    skip: notOnCitus('the vault makes no backups of distributed tables'),
  }, async (t) => {
    const place = await engine.place(t);
    const server = await spawnVault(t, environmentOf(place));
    await server.kill();
    const directory = join(temporaryDirectory(t), 'backup');
    assert.equal((await runCommand(['backup', directory], environmentOf(place))).code, 0);
    const other = await engine.place(t);
    for (const words of [[], ['--dry-run']]) {
      const { code, stderr } = await runCommand(
        ['restore', directory, ...words],
        environmentOf(other, shamir),
      );
      assert.equal(code, 1);
      assert.match(
        stderr,
        /of the source file, and STRONGROOM_ROOT_KEY_SOURCE is shamir\. Set STRONGROOM_ROOT_KEY_SOURCE=file/,
      );
    }
    const taken = await runCommand(['restore', directory], environmentOf(place, shamir));
    assert.match(taken.stderr, /not empty/, 'before shares are asked for');
  });
});
