/** /keys, and opening what a client encrypted with one of them. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOpenEncrypted } from '../../src/access/client-keys/open-encrypted.ts';
import { refusalWindowMs } from '../../src/audit/refusals.ts';
import { day, hour } from '../../src/base/clock.ts';
import { VaultError } from '../../src/base/errors.ts';
import { clientKeyAlgorithms } from '../../src/keys/client-key.ts';
import { encrypted, publicKeyOf } from '../support/client-encryption.ts';
import { onBothEngines } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import { testGrant } from '../support/openings.ts';
import { type TestTenant, newTenant as tenantIn, tenantsOf } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

const missing = '00000000-0000-4000-8000-000000000000';
const card = { data: { number: '4242424242424242' } };

const manage = (tenant: TestTenant, method: string, path = '', body?: unknown) =>
  tenant.send(method, `/keys${path}`, { key: tenant.managementKey, body });

async function createKey(tenant: TestTenant, body?: unknown) {
  const created = await manage(tenant, 'POST', '', body);
  assert.equal(created.status, 201, created.text);
  return created.body;
}

async function opening(tenant: TestTenant) {
  const { vault } = tenant.vault.running;
  const open = createOpenEncrypted(vault);
  const found = await vault.tenants.find(tenant.id);
  assert.ok(found);
  const opener = { tenant: found, grant: testGrant, membersMax: 10 };
  return async (jwe: string) => (await open(opener, { jwe, path: 'encrypted' })).data;
}

onBothEngines('keys by which clients encrypt', (engine) => {
  const newTenant = tenantsOf(engine);

  test('POST 201: with its public half this once, and valid for half a year', async () => {
    const tenant = await newTenant();
    const made = await manage(tenant, 'POST');
    assert.equal(made.status, 201, made.text);
    const { public_key_pem, ...shown } = made.body;
    assert.equal(shown.key_id, shown.id);
    assert.equal(made.headers.get('location'), `/keys/${shown.id}`);
    assert.match(public_key_pem, /^-----BEGIN PUBLIC KEY-----\n/);
    const life = Date.parse(shown.expires_at) - Date.parse(shown.created_at);
    assert.equal(Math.round(life / day), 182);
    assert.deepEqual((await manage(tenant, 'GET', `/${shown.id}`)).body, shown);
    assert.deepEqual((await manage(tenant, 'GET')).body, [shown]);
    const soon = new Date(tenant.vault.clock.now() + day).toISOString();
    for (const body of [{ expires_at: soon }, { expires_at: null }, {}]) {
      const one = await tenant.send('POST', '/keys', {
        key: tenant.managementKey,
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json-patch+json' },
      });
      assert.equal(one.status, 201, one.text);
      if (body.expires_at) assert.equal(Date.parse(one.body.expires_at), Date.parse(soon));
    }
    const operations = await tenant.logged('key');
    assert.deepEqual(operations, ['create', 'create', 'create', 'create', 'list', 'read']);
  });

  test('POST 201: an X25519 key of 32 bytes unless the request names RSA-OAEP-256', async () => {
    const tenant = await newTenant();
    for (const body of [undefined, {}, { algorithm: null }, { algorithm: 'ECDH-ES' }]) {
      const { public_key_pem } = await createKey(tenant, body);
      const [, base64 = ''] =
        /^-----BEGIN PUBLIC KEY-----\n(.+)\n-----END PUBLIC KEY-----\n$/.exec(public_key_pem) ?? [];
      assert.equal(Buffer.from(base64, 'base64').length, 32);
    }
    const rsa = await createKey(tenant, { algorithm: 'RSA-OAEP-256' });
    const key = await publicKeyOf(rsa, 'RSA-OAEP-256');
    assert.equal((key as CryptoKey).algorithm.name, 'RSA-OAEP');
  });

  test('POST 400: an expiry that is none, is over, or is more than a year away', async () => {
    const tenant = await newTenant();
    const at = (ms: number) => new Date(tenant.vault.clock.now() + ms).toISOString();
    for (const [body, attribute] of [
      [{ expires_at: 'tomorrow' }, 'expires_at'],
      [{ expires_at: at(-1000) }, 'expires_at'],
      [{ expires_at: at(367 * day) }, 'expires_at'],
      [{ expires_at: 1 }, 'expires_at'],
      [{ expires: at(day) }, 'expires'],
      [{ algorithm: 'RSA-OAEP' }, 'algorithm'],
      [{ algorithm: 1 }, 'algorithm'],
    ] as const) {
      const refused = await manage(tenant, 'POST', '', body);
      assert.equal(refused.status, 400, refused.text);
      assert.deepEqual(Object.keys(refused.body.errors), [attribute]);
    }
    assert.deepEqual(await tenant.rows('client_keys'), []);
  });

  test('401, 403, 404: no key, no permission, and what is missing or of another tenant', async () => {
    const tenant = await newTenant();
    const { id } = await createKey(tenant);
    const foreign = await createKey(await newTenant());
    for (const [method, path, needed] of [
      ['POST', '', 'keys:create'],
      ['GET', '', 'keys:read'],
      ['GET', `/${id}`, 'keys:read'],
      ['DELETE', `/${id}`, 'keys:delete'],
    ] as const) {
      assert.equal((await tenant.vault.send(method, `/keys${path}`)).status, 401);
      const others = ['keys:create', 'keys:read', 'keys:delete'].filter((one) => one !== needed);
      const key = await tenant.application({ type: 'management', permissions: others });
      const refused = await tenant.send(method, `/keys${path}`, { key });
      assert.equal(refused.status, 403);
      assert.match(refused.body.detail, new RegExp(needed));
      tenant.vault.clock.advance(refusalWindowMs);
    }
    for (const method of ['GET', 'DELETE']) {
      const texts = new Set<string>();
      for (const other of [missing, 'none', foreign.id]) {
        const answer = await manage(tenant, method, `/${other}`);
        assert.equal(answer.status, 404);
        texts.add(answer.text);
      }
      assert.equal(texts.size, 1);
    }
  });

  for (const algorithm of clientKeyAlgorithms)
    test(`what was encrypted for a key is opened, and nothing else: ${algorithm}`, async () => {
      const [tenant, other] = [await newTenant(), await newTenant()];
      const key = await createKey(tenant, { algorithm });
      const foreign = await createKey(other, { algorithm });
      const another = await createKey(tenant, {
        algorithm: clientKeyAlgorithms.find((one) => one !== algorithm),
      });
      const open = await opening(tenant);
      const text = JSON.stringify(card);
      const jwe = await encrypted(key, text);
      assert.deepEqual((await open(jwe)).reveal(), card);
      assert.equal(JSON.stringify(await open(jwe)), '"[secret]"');
      const exp = tenant.vault.clock.now() / 1000 + 1;
      assert.deepEqual((await open(await encrypted(key, text, { exp }))).reveal(), card);
      const parts = jwe.split('.');
      const altered = parts.with(3, Buffer.from('x'.repeat(50)).toString('base64url')).join('.');
      const plain = Buffer.from(JSON.stringify({ alg: 'none', kid: key.id })).toString('base64url');
      for (const wrong of [
        '',
        'a.b.c.d.e',
        altered,
        parts.slice(0, 4).join('.'),
        [plain, ...parts.slice(1)].join('.'),
        'x'.repeat(1_000_001),
        await encrypted(key, text, { kid: foreign.id }),
        await encrypted(key, text, { kid: missing }),
        await encrypted(foreign, text),
        await encrypted(foreign, text, { kid: key.id }),
        await encrypted(key, text, {
          alg: algorithm === 'ECDH-ES' ? 'ECDH-ES+A256KW' : 'RSA-OAEP',
        }),
        await encrypted(another, text, { kid: key.id }),
        await encrypted(key, text, { exp: 'soon' }),
        await encrypted(key, text, { exp: tenant.vault.clock.now() / 1000 }),
        await encrypted(key, text, { jti: '' }),
        await encrypted(key, text, { jti: 7 }),
        await encrypted(key, text, { jti: 'x'.repeat(257) }),
        await encrypted(key, text, { enc: 'A256CBC-HS512' }),
        await encrypted(key, 'not JSON 4242'),
      ]) {
        await assert.rejects(open(wrong), (error) => {
          assert.ok(error instanceof VaultError && error.code === 'validation_failed');
          assert.deepEqual(Object.keys(error.errors ?? {}), ['encrypted']);
          assert.doesNotMatch(JSON.stringify(error.errors), /4242/);
          return true;
        });
      }
    });

  test('DELETE 204: nothing is opened with it any more, at once', async () => {
    const tenant = await newTenant();
    const key = await createKey(tenant);
    const open = await opening(tenant);
    const jwe = await encrypted(key, '1');
    assert.equal((await open(jwe)).reveal(), 1);
    assert.equal((await manage(tenant, 'DELETE', `/${key.id}`)).status, 204);
    await assert.rejects(open(jwe), { code: 'validation_failed' });
    assert.equal((await manage(tenant, 'GET', `/${key.id}`)).status, 404);
    assert.deepEqual(await tenant.rows('client_keys'), []);
  });

  test('an expired key opens nothing, is gone for readers at once, and soon from the disk', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await tenantIn(vault);
    const expires_at = new Date(vault.clock.now() + day).toISOString();
    const key = await createKey(tenant, { expires_at });
    const kept = await createKey(tenant);
    const open = await opening(tenant);
    const jwe = await encrypted(key, '1');
    assert.equal((await open(jwe)).reveal(), 1);
    vault.clock.advance(day);
    await assert.rejects(open(jwe), { code: 'validation_failed' });
    assert.equal((await manage(tenant, 'GET', `/${key.id}`)).status, 404);
    const ids = (rows: readonly { id: string }[]) => rows.map(({ id }) => id);
    assert.deepEqual(ids((await manage(tenant, 'GET')).body), [kept.id]);
    vault.clock.advance(hour);
    assert.equal(await runJob(vault, 'remove expired encryption keys'), 1);
    assert.deepEqual(
      (await tenant.rows('client_keys')).map(({ client_key_id }) => client_key_id),
      [kept.id],
    );
    assert.ok((await tenant.logged('key')).includes('expire'));
  });

  test('GET 200: a key that was altered is left out and reported, and can be removed', async () => {
    const tenant = await newTenant();
    const [one, other] = [await createKey(tenant), await createKey(tenant)];
    const altering = `update client_keys set created_at = created_at + 1 where client_key_id = '${one.id}'`;
    await engine.run(tenant.vault.place, altering);
    const list = await manage(tenant, 'GET');
    assert.equal(list.status, 200, list.text);
    assert.deepEqual(
      list.body.map(({ id }: { id: string }) => id),
      [other.id],
    );
    const alerts = (await tenant.rows('logs')).filter(({ message }) => message.includes('altered'));
    assert.deepEqual(
      alerts.map(({ entity_type, entity_id, operation }) => [entity_type, entity_id, operation]),
      [['key', one.id, 'list']],
    );
    const { text } = await tenant.vault.send('GET', '/metrics');
    assert.match(text, /^strongroom_integrity_failures_total 1$/m);
    assert.equal((await manage(tenant, 'GET', `/${one.id}`)).status, 500);
    assert.equal((await manage(tenant, 'DELETE', `/${one.id}`)).status, 204);
    assert.equal((await manage(tenant, 'GET', `/${one.id}`)).status, 404);
  });

  test('500: a key that was altered in the database opens nothing; its expiry destroys nothing', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await tenantIn(vault);
    const key = await createKey(tenant);
    const jwe = await encrypted(key, '1');
    for (const sets of ['expires_at = 9999999999999', 'created_at = 1', "created_by = 'x'"]) {
      await engine.run(vault.place, `update client_keys set ${sets}`);
      vault.clock.advance(1001);
      await new Promise((resolve) => setImmediate(resolve));
      const open = await opening(tenant);
      await assert.rejects(open(jwe), { code: 'integrity' });
      assert.equal((await manage(tenant, 'GET', `/${key.id}`)).status, 500);
      // A list leaves out what was altered, and an entry names it.
      assert.deepEqual((await manage(tenant, 'GET')).body, []);
    }
    await engine.run(vault.place, 'update client_keys set expires_at = 1');
    await new Promise((resolve) => setImmediate(resolve));
    await assert.rejects(runJob(vault, 'remove expired encryption keys'), { code: 'integrity' });
    assert.equal((await tenant.rows('client_keys')).length, 1);
  });
});
