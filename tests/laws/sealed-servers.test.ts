/** Servers that wait for shares of the root key: with threads, over TLS, and on several machines. */
import assert from 'node:assert/strict';
import { get } from 'node:https';
import { type TestContext, test } from 'node:test';
import { writeCertificate } from '../support/certificate.ts';
import {
  type Engine,
  engineOf,
  onBothEngines,
  onPostgres,
  type Place,
} from '../support/engines.ts';
import { untilSo } from '../support/poll.ts';
import {
  type Environment,
  environmentOf,
  runCommand,
  runWithInput,
  spawnVault,
} from '../support/process.ts';
import { keyFileOf } from '../support/root-keys.ts';
import { freePort, temporaryDirectory } from '../support/temporary.ts';
import { createApplication, request } from '../support/vault.ts';

const shamir: Environment = { STRONGROOM_ROOT_KEY_SOURCE: 'shamir' };

async function move(environment: Environment): Promise<readonly string[]> {
  const words = ['--to', 'shamir', '--shares', '3', '--threshold', '2', '--json'];
  const moved = await runCommand(['keys', 'rotate', 'root', ...words], environment);
  assert.equal(moved.code, 0, moved.stderr);
  return JSON.parse(moved.stdout).shares;
}

async function give(environment: Environment, share = ''): Promise<void> {
  const { code, stderr } = await runWithInput(['unseal'], environment, `${share}\n`);
  assert.equal(code, 0, stderr);
}

/** A vault whose root key is in shares. */
async function sealedPlace(t: TestContext, engine: Engine) {
  const place = await engine.place(t);
  const server = await spawnVault(t, environmentOf(place));
  const key = await createApplication(server.url);
  const body = { type: 'token', data: 'kept', id: 'kept' };
  assert.equal((await request(`${server.url}/tokens`, 'POST', { key, body })).status, 201);
  const shares = await move(environmentOf(place));
  await server.kill();
  return { place, key, shares };
}

onBothEngines('a sealed server', (engine) => {
  test('with several threads serves from all of them once it has its shares', async (t) => {
    const { place, key, shares } = await sealedPlace(t, engine);
    const port = { STRONGROOM_PORT: String(await freePort()), STRONGROOM_THREADS: '2' };
    const environment = environmentOf(place, shamir, port);
    const server = await spawnVault(t, environment);
    const read = () =>
      request(`${server.url}/tokens/kept`, 'GET', { key, headers: { connection: 'close' } });
    assert.equal((await read()).status, 503);
    assert.equal((await request(`${server.url}/readyz`, 'GET')).status, 503);
    await give(environment, shares[0]);
    await give(environment, shares[2]);
    for (let connection = 0; connection < 20; connection += 1) {
      const { status, body } = await read();
      assert.equal(status, 200);
      assert.equal(body.data, 'kept');
    }
    const body = { type: 'token', data: 'new' };
    assert.equal((await request(`${server.url}/tokens`, 'POST', { key, body })).status, 201);
    const made = await runCommand(['tenant', 'create', '--name', 'new', '--json'], environment);
    const self = { key: JSON.parse(made.stdout).key };
    assert.equal((await request(`${server.url}/tenants/self`, 'GET', self)).status, 200);
    server.terminate();
    assert.equal((await server.finished).code, 0);
  });

  test('with a certificate serves TLS before and after', async (t) => {
    const { place, key, shares } = await sealedPlace(t, engine);
    const { certFile, keyFile, cert } = writeCertificate(place.dataDir);
    const tls = { STRONGROOM_TLS_CERT: certFile, STRONGROOM_TLS_KEY: keyFile };
    const environment = environmentOf(place, shamir, tls);
    const server = await spawnVault(t, environment);
    assert.match(server.url, /^https:/);
    const statusOf = (path: string) =>
      new Promise((resolve, reject) => {
        const headers = { 'svc-api-key': key };
        get(`${server.url}${path}`, { ca: cert, agent: false, headers }, (response) => {
          response.resume();
          resolve(response.statusCode);
        }).once('error', reject);
      });
    assert.equal(await statusOf('/healthz'), 200);
    assert.equal(await statusOf('/readyz'), 503);
    assert.equal(await statusOf('/tokens/kept'), 503);
    for (const share of shares.slice(1)) await give(environment, share);
    assert.equal(await statusOf('/readyz'), 200);
    assert.equal(await statusOf('/tokens/kept'), 200);
  });
});

onPostgres(
  'a server on another machine goes on when the root key moves to shares, and takes them',
  async (t) => {
    const place = await engineOf('postgres').place(t);
    const first = await spawnVault(t, environmentOf(place));
    const key = await createApplication(first.url);
    const body = { type: 'token', data: 'kept', id: 'kept' };
    assert.equal((await request(`${first.url}/tokens`, 'POST', { key, body })).status, 201);
    const other = { ...place, dataDir: temporaryDirectory(t) } satisfies Place;
    const file = { STRONGROOM_ROOT_KEY_FILE: keyFileOf(place) };
    const elsewhere = environmentOf(other, file);
    const second = await spawnVault(t, elsewhere);
    const read = (url: string) => request(`${url}/tokens/kept`, 'GET', { key });
    assert.equal((await read(second.url)).status, 200);

    const shares = await move(environmentOf(place));
    assert.equal((await read(second.url)).body.data, 'kept', 'it has the key of the tenant');
    const made = await runCommand(
      ['tenant', 'create', '--name', 'new', '--json'],
      environmentOf(place),
    );
    const self = { key: JSON.parse(made.stdout).key };
    assert.equal((await request(`${first.url}/tenants/self`, 'GET', self)).status, 200);
    assert.equal((await request(`${second.url}/tenants/self`, 'GET', self)).status, 503);
    await give(elsewhere, shares[0]);
    await give(elsewhere, shares[1]);
    await untilSo(
      async () => (await request(`${second.url}/tenants/self`, 'GET', self)).status === 200,
      () => 'it does not open keys under the new root key',
    );
    const later = await runCommand(['tenant', 'create', '--name', 'later'], elsewhere);
    assert.equal(later.code, 0, later.stderr);
    await first.kill();
    assert.equal((await read(second.url)).status, 200);
  },
);
