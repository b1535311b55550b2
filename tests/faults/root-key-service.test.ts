/** A service that holds the root key and cannot be reached stops no tenant whose keys are open. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { isCitus } from '../support/citus-cluster.ts';
import { onBothEngines } from '../support/engines.ts';
import { rootToken, startOpenBao, withoutOpenBao } from '../support/openbao.ts';
import { untilSo } from '../support/poll.ts';
import { environmentOf, runCommand, spawnVault } from '../support/process.ts';
import { keyFileOf, keysInFile, openedWith } from '../support/root-keys.ts';
import { freePort } from '../support/temporary.ts';
import { createApplication, request } from '../support/vault.ts';

const readers = 4;

async function bytesOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Passes requests on, and records the bodies of those that unwrapped a key. */
async function recordUnwrapping(t: TestContext, address: string) {
  const unwrapped: string[] = [];
  const server = createServer(async (incoming, outgoing) => {
    const body = await bytesOf(incoming);
    const { method, headers, url = '' } = incoming;
    const passed = httpRequest(`${address}${url}`, { method, headers }, async (response) => {
      const bytes = await bytesOf(response);
      if (url.includes('/decrypt/') && response.statusCode === 200) unwrapped.push(`${body}`);
      outgoing.writeHead(response.statusCode ?? 500, response.headers).end(bytes);
    });
    passed.on('error', () => outgoing.destroy());
    outgoing.on('close', () => passed.destroy());
    passed.end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, unwrapped };
}

onBothEngines('a service that holds the root key', (engine) => {
  test('may stop and start under load, and is asked once for each tenant', {
    skip: withoutOpenBao,
  }, async (t) => {
    const bao = await startOpenBao(t);
    const proxy = await recordUnwrapping(t, bao.address);
    const place = await engine.place(t);
    const service = {
      STRONGROOM_VAULT_ADDRESS: proxy.url,
      STRONGROOM_VAULT_TOKEN: rootToken,
      STRONGROOM_ROOT_KEY_FILE: keyFileOf(place),
    };
    const before = environmentOf(place, service, { STRONGROOM_ROOT_KEY_SOURCE: 'file' });
    const chosen = { STRONGROOM_ROOT_KEY_SOURCE: 'vault-transit' };
    const after = environmentOf(place, service, chosen);
    const first = await spawnVault(t, before);
    const key = await createApplication(first.url);
    const body = { type: 'token', data: 'kept', id: 'kept' };
    await request(`${first.url}/tokens`, 'POST', { key, body });
    const made = await runCommand(['tenant', 'create', '--name', 'other', '--json'], before);
    const other: string = JSON.parse(made.stdout).key;
    const [old] = keysInFile(place);
    assert.ok(old);

    const moved = await runCommand(['keys', 'rotate', 'root', '--to', 'vault-transit'], before);
    assert.equal(moved.code, 0, moved.stderr);
    const read = async (url: string) => await request(`${url}/tokens/kept`, 'GET', { key });
    assert.equal((await read(first.url)).body.data, 'kept');
    assert.deepEqual(await openedWith(engine, place, old), []);
    await first.kill();

    proxy.unwrapped.length = 0;
    const server = await spawnVault(t, after);
    assert.equal((await read(server.url)).status, 200);
    let isOver = false;
    let reads = 0;
    const reading = Promise.all(
      Array.from({ length: readers }, async () => {
        while (!isOver) {
          assert.equal((await read(server.url)).status, 200);
          reads += 1;
        }
      }),
    );
    const askOther = () => request(`${server.url}/tenants/self`, 'GET', { key: other });
    const { status, body: self } = await askOther();
    assert.equal(status, 200, JSON.stringify(self));
    const late = await runCommand(['tenant', 'create', '--name', 'late', '--json'], {
      ...after,
      // What this command unwraps is not counted.
      STRONGROOM_VAULT_ADDRESS: bao.address,
    });
    const lateKey: string = JSON.parse(late.stdout).key;
    const askLate = () => request(`${server.url}/tenants/self`, 'GET', { key: lateKey });
    await bao.suspend();
    const refused = await askLate();
    assert.equal(refused.status, 503);
    assert.ok(Number(refused.headers.get('retry-after')) > 0);
    assert.equal((await askOther()).status, 200);
    bao.resume();
    await untilSo(
      async () => (await askLate()).status === 200,
      () => 'it does not go on by itself',
    );
    isOver = true;
    await reading;
    assert.ok(reads > 0);
    const repeated = proxy.unwrapped.filter((one, at) => proxy.unwrapped.indexOf(one) !== at);
    // A start proves the vault's own key, and then opens it.
    const [own] = proxy.unwrapped;
    assert.deepEqual(repeated, [own], 'the server asks once for each tenant');

    const gone = { ...after, STRONGROOM_VAULT_ADDRESS: `http://127.0.0.1:${await freePort()}` };
    const report = await runCommand(['doctor'], gone);
    assert.equal(report.code, 1);
    assert.match(report.stdout, /root key +.*vault-transit/);
    await server.kill();
    const start = await runCommand(['serve'], gone);
    assert.equal(start.code, 1);
    assert.match(
      start.stderr,
      /root key \(vault-transit .* cannot be reached \(ECONNREFUSED\); tried 4 times/,
    );

    const again = await spawnVault(t, after);
    const back = await runCommand(['keys', 'rotate', 'root', '--to', 'file'], after);
    assert.equal(back.code, 0, back.stderr);
    assert.equal((await read(again.url)).body.data, 'kept');
    await again.kill();
    const local = await spawnVault(
      t,
      environmentOf(place, { STRONGROOM_ROOT_KEY_FILE: keyFileOf(place) }),
    );
    assert.equal((await read(local.url)).body.data, 'kept');
  });

  test('is asked by a command for the keys that it needs, once for each tenant', {
    skip: withoutOpenBao,
  }, async (t) => {
    const bao = await startOpenBao(t);
    const proxy = await recordUnwrapping(t, bao.address);
    const place = await engine.place(t);
    const environment = environmentOf(place, {
      STRONGROOM_ROOT_KEY_SOURCE: 'vault-transit',
      STRONGROOM_VAULT_ADDRESS: proxy.url,
      STRONGROOM_VAULT_TOKEN: rootToken,
    });
    const server = await spawnVault(t, environment);
    const key = await createApplication(server.url);
    await request(`${server.url}/tokens`, 'POST', { key, body: { type: 'token', data: 'kept' } });
    for (const name of ['second', 'third']) {
      const made = await runCommand(['tenant', 'create', '--name', name], environment);
      assert.equal(made.code, 0, made.stderr);
    }
    server.terminate();
    await server.finished;
    for (const words of commandsOverTenants(`${place.dataDir}-backup`)) {
      proxy.unwrapped.length = 0;
      const { code, stderr } = await runCommand(words, environment);
      // Of this PostgreSQL doctor says that a crash can lose what was acknowledged.
      if (words[0] !== 'doctor') assert.equal(code, 0, stderr);
      const [own] = proxy.unwrapped;
      const repeated = proxy.unwrapped.filter((one, at) => proxy.unwrapped.indexOf(one) !== at);
      assert.ok(
        repeated.every((one) => one === own),
        `${words.join(' ')} asks once for each tenant`,
      );
      if (words[0] === 'keys') assert.ok(new Set(proxy.unwrapped).size > 1, 'it opens keys');
    }
  });
});

const commandsOverTenants = (backup: string) => [
  ['tenant', 'list'],
  ['doctor'],
  ['keys', 'list'],
  ['logs', 'verify', '--state'],
  // The vault makes no backups of distributed tables.
  ...(isCitus() ? [] : [['backup', backup]]),
  ['keys', 'rotate', 'data', '--tenant', 'second'],
];
