/** What a proxy can be: every rule of POST /proxies, each at its limits, and the settings of the tenant. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { writeCertificate } from '../support/certificate.ts';
import { onBothEngines } from '../support/engines.ts';
import { createProxy, leastProxy, sendProxy } from '../support/proxies.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { type Given, tenantsOf } from '../support/tenant.ts';

/** Stands in refused values, and must not be heard of again. */
const marker = 'mArKeR';

const entries = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`name${at}`, 'value']));
const url = (length: number) => 'https://a.example/'.padEnd(length, 'x');
const label = 'a'.repeat(63);
const host253 = `${label}.${label}.${label}.${'a'.repeat(61)}`;
const wrongKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
  type: 'pkcs8',
  format: 'pem',
});
const lockedKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
  type: 'pkcs8',
  format: 'pem',
  cipher: 'aes-256-cbc',
  passphrase: 'x',
});

/** Over the least proxy, and the paths that the answer must name. */
const wrong: readonly (readonly [Given, ...string[]])[] = [
  [{ name: undefined }, 'name'],
  [{ name: '' }, 'name'],
  [{ name: marker.padEnd(201, 'x') }, 'name'],
  [{ name: `${marker}\n` }, 'name'],
  [{ destination_url: undefined }, 'destination_url'],
  [{ destination_url: url(401) }, 'destination_url'],
  [{ destination_url: marker }, 'destination_url'],
  [{ destination_url: `http://${marker}.example` }, 'destination_url'],
  [{ destination_url: 'https://' }, 'destination_url'],
  [{ destination_url: `https://a.example/${marker} x` }, 'destination_url'],
  [{ destination_url: `https://a.example\\${marker}` }, 'destination_url'],
  [{ destination_url: `https://${marker}@a.example` }, 'destination_url'],
  [{ destination_url: `https://a:${marker}@a.example` }, 'destination_url'],
  [{ destination_url: `https://a.example?q=${marker}` }, 'destination_url'],
  [{ destination_url: 'https://a.example/?' }, 'destination_url'],
  [{ destination_url: `https://a.example/#${marker}` }, 'destination_url'],
  [{ destination_url: 'https://127.0.0.1' }, 'destination_url'],
  [{ destination_url: 'https://8.8.8.8/x' }, 'destination_url'],
  [{ destination_url: 'https://0x7f.1' }, 'destination_url'],
  [{ destination_url: 'https://2130706433/' }, 'destination_url'],
  [{ destination_url: 'https://[::1]:8443/' }, 'destination_url'],
  [{ application: { id: marker } }, 'application.id'],
  [{ application: { id: '00000000-0000-4000-8000-000000000000' } }, 'application.id'],
  [{ application: {} }, 'application.id'],
  [{ application: marker }, 'application'],
  [{ application_id: marker }, 'application_id'],
  [{ configuration: entries(26) }, 'configuration'],
  [{ configuration: { [`a\n${marker}`]: 'x' } }, 'configuration'],
  [{ configuration: { '': marker } }, 'configuration'],
  [{ configuration: { ['n'.repeat(101)]: marker } }, 'configuration'],
  [{ configuration: { A: marker.padEnd(10_001, 'x') } }, 'configuration.A'],
  [{ configuration: { A: '\ud800' } }, 'configuration.A'],
  [{ configuration: { A: 1 } }, 'configuration.A'],
  [{ require_auth: 'true' }, 'require_auth'],
  [{ disable_detokenization: marker }, 'disable_detokenization'],
  [{ timeout: 0 }, 'timeout'],
  [{ timeout: 61 }, 'timeout'],
  [{ timeout: 1.5 }, 'timeout'],
  [{ proxy_host: marker }, 'proxy_host'],
  [{ proxy_host: 'localhost' }, 'proxy_host'],
  [{ proxy_host: '127.0.0.1' }, 'proxy_host'],
  [{ proxy_host: 'a.example:443' }, 'proxy_host'],
  [{ proxy_host: 'a.example.' }, 'proxy_host'],
  [{ proxy_host: '-a.example' }, 'proxy_host'],
  [{ proxy_host: `a${host253}` }, 'proxy_host'],
  [{ proxy_host: 'Vault.Example.com' }, 'proxy_host'],
  [{ proxy_host: 'never-given.example.com' }, 'proxy_host'],
  [{ allowed_paths: [] }, 'allowed_paths'],
  [{ allowed_paths: Array(101).fill('/') }, 'allowed_paths'],
  [{ allowed_paths: ['/a', marker] }, 'allowed_paths[1]'],
  [{ allowed_paths: ['/'.padEnd(401, 'x')] }, 'allowed_paths[0]'],
  [{ allowed_paths: ['/a?b'] }, 'allowed_paths[0]'],
  [{ allowed_methods: [] }, 'allowed_methods'],
  [{ allowed_methods: ['post'] }, 'allowed_methods'],
  [{ allowed_methods: ['POST', 'POST'] }, 'allowed_methods'],
  [{ allowed_methods: ['POST', 'CONNECT'] }, 'allowed_methods'],
  [{ client_certificate: marker, client_key: marker }, 'client_certificate', 'client_key'],
  [{ client_key: String(wrongKey) }, 'client_certificate'],
  [{ request_reactor_id: marker }, 'request_reactor_id'],
  [{ response_reactor_id: marker }, 'response_reactor_id'],
  [{ request_transforms: marker }, 'request_transforms'],
  [{ key: marker }, 'key'],
  [{ state: 'active' }, 'state'],
  [
    { timeout: 0, proxy_host: 'x', destination_url: 'x' },
    'proxy_host',
    'destination_url',
    'timeout',
  ],
];

onBothEngines('the rules of proxies', (engine) => {
  const newTenant = tenantsOf(engine, {
    environment: { STRONGROOM_PUBLIC_URL: 'https://vault.example.com:8443' },
  });

  test('400: each attribute that is wrong is named, no value is, and nothing is stored', async () => {
    const tenant = await newTenant();
    for (const [given, ...paths] of wrong) {
      const body = { ...leastProxy, ...given };
      const refused = await sendProxy(tenant, 'POST', '', { body });
      assert.equal(refused.status, 400, `${JSON.stringify(given).slice(0, 200)} ${refused.text}`);
      assert.deepEqual(Object.keys(refused.body.errors), paths);
      if (!JSON.stringify(paths).includes(marker)) assert.ok(!refused.text.includes(marker));
    }
    assert.deepEqual(await tenant.rows('proxies'), []);
    assert.deepEqual(await tenant.rows('proxy_addresses'), []);
    assert.equal(JSON.stringify(tenant.vault.logged).includes(marker), false);
  });

  test('400: a reactor’s id names what took its place', async () => {
    const tenant = await newTenant();
    for (const side of ['request', 'response']) {
      const body = { ...leastProxy, [`${side}_reactor_id`]: 'x' };
      const { errors } = (await sendProxy(tenant, 'POST', '', { body })).body;
      assert.match(errors[`${side}_reactor_id`][0], new RegExp(`${side}_transforms`));
    }
    await createProxy(tenant, { request_reactor_id: null, response_reactor_id: null });
  });

  test('400: a certificate and a key belong together, and the key opens without a passphrase', async (t) => {
    const tenant = await newTenant();
    const { cert, keyFile } = writeCertificate(temporaryDirectory(t));
    const key = readFileSync(keyFile, 'utf8');
    for (const [given, path] of [
      [{ client_certificate: cert }, 'client_key'],
      [{ client_certificate: cert, client_key: wrongKey }, 'client_key'],
      [{ client_certificate: cert, client_key: lockedKey }, 'client_key'],
      [{ client_certificate: cert, client_key: cert }, 'client_key'],
      [{ client_certificate: key, client_key: key }, 'client_certificate'],
      [{ client_certificate: `${cert}x`, client_key: key }, 'client_certificate'],
      [{ client_certificate: cert.padEnd(32_769), client_key: key }, 'client_certificate'],
      [{ client_certificate: cert, client_key: key.padEnd(16_385) }, 'client_key'],
    ] as const) {
      const refused = await sendProxy(tenant, 'POST', '', { body: { ...leastProxy, ...given } });
      assert.equal(refused.status, 400, refused.text);
      assert.deepEqual(Object.keys(refused.body.errors), [path]);
      assert.doesNotMatch(refused.text, /BEGIN/);
    }
    // A chain, the client's own certificate first.
    const { client_certificate } = await createProxy(tenant, {
      client_certificate: cert + writeCertificate(temporaryDirectory(t)).cert,
      client_key: key,
    });
    assert.equal(client_certificate.subject, 'strongroom test');
  });

  test('400: an application must be one of the tenant that can use tokens', async () => {
    const [tenant, other] = [await newTenant(), await newTenant()];
    const managing = await tenant.send('GET', '/applications/key', { key: tenant.managementKey });
    const foreign = await other.send('GET', '/applications/key');
    const texts = new Set<string>();
    for (const { id } of [managing.body, foreign.body]) {
      const body = { ...leastProxy, application: { id } };
      const refused = await sendProxy(tenant, 'POST', '', { body });
      assert.equal(refused.status, 400);
      assert.deepEqual(Object.keys(refused.body.errors), ['application.id']);
      texts.add(refused.text);
    }
    assert.equal(texts.size, 1);
    const key = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const { id } = (await tenant.send('GET', '/applications/key', { key })).body;
    const proxy = await createProxy(tenant, { application: { id } });
    // The proxy outlives its application.
    const path = `/applications/${id}`;
    assert.equal((await tenant.send('DELETE', path, { key: tenant.managementKey })).status, 204);
    const read = await sendProxy(tenant, 'GET', `/${proxy.id}`);
    assert.equal(read.body.application_id, id);
  });

  test('201: everything up to its limits', async () => {
    const tenant = await newTenant();
    for (const given of [
      { name: 'ü'.repeat(200) },
      { destination_url: url(400) },
      { destination_url: 'HTTPS://A.example:8443' },
      { destination_url: 'https://localhost/' },
      { configuration: { ...entries(25), gone: null } },
      { configuration: { ['n'.repeat(100)]: 'v'.repeat(10_000) } },
      { configuration: JSON.parse('{"__proto__":"x","constructor":"y"}') },
      { timeout: 1 },
      { timeout: 60 },
      { proxy_host: host253 },
      { allowed_paths: Array(100).fill('/'.padEnd(400, 'x')) },
      { allowed_paths: ['*', '/*/x'] },
      { allowed_methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] },
    ]) {
      const created = await createProxy(tenant, given);
      const read = await sendProxy(tenant, 'GET', `/${created.id}`);
      for (const [name, value] of Object.entries(given)) {
        const { gone: _gone, ...kept } = (name === 'configuration' ? value : {}) as Given;
        assert.deepEqual(read.body[name], name === 'configuration' ? kept : value);
      }
    }
  });

  test('destinations of the tenant are checked when they are written', async () => {
    const tenant = await newTenant();
    const set = (proxy_destinations: string) =>
      tenant.send('PUT', '/tenants/self', {
        key: tenant.managementKey,
        body: { name: 'n', settings: { proxy_destinations, disable_ephemeral_proxy: 'true' } },
      });
    for (const text of [
      '',
      '*',
      'a.example',
      '*.psp.example, API-*.example.com',
      `${'x,'.repeat(99)}x`,
    ]) {
      const { status, body } = await set(text);
      assert.equal(status, 200, text);
      assert.equal(body.settings.proxy_destinations, text);
    }
    for (const text of [
      'a.example:443',
      'https://a.example',
      'a.example/x',
      'a..example',
      ',',
      'a.example,',
      'a b',
      'a'.repeat(254),
      `${'x,'.repeat(100)}x`,
    ]) {
      const refused = await set(text);
      assert.equal(refused.status, 400, text);
      assert.deepEqual(Object.keys(refused.body.errors), ['settings.proxy_destinations']);
    }
  });
});
