/** The keys of a public application work for pages of its listed origins, and only those show its fields. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { managementKey, revealEverything, startVault, type TestVault } from '../support/vault.ts';

const shop = 'https://shop.example.com';
const permissions = ['token:create'];

function create(vault: TestVault, origins: unknown, type = 'public') {
  const body = { name: 'page', type, permissions, origins };
  return vault.send('POST', '/applications', { key: managementKey, body });
}

function from(vault: TestVault, key: string, headers: Readonly<Record<string, string>>) {
  const body = { type: 'token', data: 'x' };
  return vault.send('POST', '/tokens', { key, headers, body });
}

onBothEngines('Origins of a public application', (engine) => {
  test('201, 200: they are stored, shown, and replaced', async (t) => {
    const vault = await startVault(t, engine);
    const origins = [shop, 'https://*.example.org:8443', 'http://localhost:3000'];
    const { status, body } = await create(vault, origins);
    assert.equal(status, 201);
    assert.deepEqual(body.origins, origins);
    const path = `/applications/${body.id}`;
    const shown = await vault.send('GET', path, { key: managementKey });
    assert.deepEqual(shown.body.origins, origins);
    const update = (changed: object) =>
      vault.send('PUT', path, {
        key: managementKey,
        body: { name: 'page', permissions, ...changed },
      });
    assert.deepEqual((await update({ origins: [shop] })).body.origins, [shop]);
    // A client that does not know them must not open the keys to every page.
    assert.deepEqual((await update({})).body.origins, [shop]);
    assert.equal((await update({ origins: null })).body.origins, undefined);
  });

  test('400: what is no origin, or could be more than was meant, is refused by its place', async (t) => {
    const vault = await startVault(t, engine);
    const wrong = [
      ...[
        'shop.example.com',
        'https://Shop.example.com',
        'https://shop.example.com/',
        'https://*',
        '*',
      ],
      ...[
        'https://shop.example.com:443',
        'http://shop.example.com',
        'https://a.*.example.com',
        'null',
      ],
      ...[
        'https://u@shop.example.com',
        'https://*.com',
        'http://*.localhost:1',
        "https://a';.example.com",
      ],
      ...['https://shop.example.com:70000', 'https://192.0.2.1'],
    ];
    const { status, body } = await create(vault, wrong);
    assert.equal(status, 400);
    assert.deepEqual(
      Object.keys(body.errors),
      wrong.map((_, at) => `origins[${at}]`),
    );
    const ofServer = await create(vault, [shop], 'private');
    assert.deepEqual([ofServer.status, Object.keys(ofServer.body.errors)], [400, ['origins']]);
    const many = Array.from({ length: 101 }, (_, at) => `https://s${at}.example.com`);
    assert.equal((await create(vault, many)).status, 400);
  });

  test('403: a page of another origin, with the key and with a session of it, and it is logged', async (t) => {
    const vault = await startVault(t, engine);
    const { key } = (await create(vault, [shop, 'https://*.example.org'])).body;
    const server = await vault.application({
      name: 's',
      type: 'private',
      rules: [revealEverything],
    });
    const { body: session } = await vault.send('POST', '/sessions', {
      key,
      headers: { origin: shop },
    });
    const rules = [revealEverything];
    const granted = { nonce: session.nonce, rules };
    assert.equal(
      (await vault.send('POST', '/sessions/authorize', { key: server, body: granted })).status,
      200,
    );
    for (const used of [key, session.session_key]) {
      for (const origin of [shop, 'https://a.example.org']) {
        const { status, headers } = await from(vault, used, { origin });
        assert.equal(status, 201, origin);
        assert.equal(headers.get('access-control-allow-origin'), '*');
      }
      for (const origin of [
        ...['https://evil.example.com', 'null', 'https://a.b.example.org', 'https://example.org'],
        ...[
          `${shop}.evil.com`,
          `${shop}:8443`,
          'http://shop.example.com',
          `https://evil.com/${shop}`,
        ],
      ]) {
        const { status, body } = await from(vault, used, { origin });
        assert.equal(status, 403, origin);
        assert.match(body.detail, /does not list the origin/);
      }
      // Frames of the vault, and programs that are no browsers.
      const own = { origin: 'https://vault.example.com', 'sec-fetch-site': 'same-origin' };
      assert.equal((await from(vault, used, own)).status, 201);
      assert.equal((await from(vault, used, {})).status, 201);
    }
    const { body: log } = await vault.send('GET', '/logs?entity_type=token&size=100', {
      key: managementKey,
    });
    const messages = log.data.map(({ message }: { message: string }) => message);
    assert.ok(messages.some((message: string) => /create denied/.test(message)));
  });

  test('200, 404: only listed origins may show the frame of a field, and only of a public key', async (t) => {
    const vault = await startVault(t, engine);
    const { key } = (await create(vault, [shop, 'https://*.example.org'])).body;
    const { status, headers, text } = await vault.send('GET', `/fields/v1/frame/${key}`);
    assert.equal(status, 200);
    assert.match(text, /data-origins="\^\(\?:https:\/\/shop\\\.example\\\.com\|/);
    const policy = headers.get('content-security-policy') ?? '';
    assert.match(
      policy,
      /; frame-ancestors https:\/\/shop\.example\.com https:\/\/\*\.example\.org;/,
    );
    assert.match(policy, /default-src 'none'; script-src 'sha384-[^ ;]+'; style-src/);
    assert.match(policy, /require-trusted-types-for 'script'; trusted-types 'none'/);
    const listsNone = await vault.send(
      'GET',
      `/fields/v1/frame/${(await create(vault, undefined)).body.key}`,
    );
    assert.match(listsNone.headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/);
    const server = await vault.application();
    for (const other of [server, `${key.slice(0, -1)}x`, managementKey]) {
      assert.equal((await vault.send('GET', `/fields/v1/frame/${other}`)).status, 404);
    }
  });
});
