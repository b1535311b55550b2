/**
 * Nothing that a client encrypted is opened but for a caller who may use or create it, with an entry that
 * names the key, once where it has a `jti`, and never after its `exp`.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type EncryptionKey, encrypted, type JweHeader } from '../support/client-encryption.ts';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { createProxy, sendProxy } from '../support/proxies.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import { visa } from '../support/values.ts';

const { destination, url, environment } = await startCalled({ after });
destination.behave(answer());
const last = () => JSON.parse(destination.requests.at(-1)?.body.toString() ?? 'null');

const base64 = (json: object) => Buffer.from(JSON.stringify(json)).toString('base64');
const missing = '00000000-0000-4000-8000-000000000000';

async function keyOf(tenant: TestTenant, body: object = {}): Promise<EncryptionKey> {
  const made = await tenant.send('POST', '/keys', { key: tenant.managementKey, body });
  assert.equal(made.status, 201, made.text);
  return made.body;
}

const seal = (key: EncryptionKey, value: unknown, header?: JweHeader) =>
  encrypted(key, JSON.stringify(value), header);

onBothEngines('What clients encrypted', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  /** A tenant with a key by which clients encrypt, and what calls a proxy with encrypted data. */
  async function withProxy(more: object = {}) {
    const tenant = await newTenant();
    const proxy = await createProxy(tenant, { destination_url: url, ...more });
    const encryptionKey = await keyOf(tenant);
    const send = (given: object, key?: string) =>
      tenant.vault.send('POST', '/proxy', {
        ...(key !== undefined && { key }),
        body: { got: "{{ encrypted | json: '$.data' }}" },
        headers: { 'svc-proxy-key': proxy.key, 'svc-encrypted': base64(given) },
      });
    const entries = async () =>
      (await tenant.rows('logs'))
        .filter(({ entity_type, operation }) => entity_type === 'key' && operation === 'use')
        .map(({ entity_id, result, message }) => ({ entity_id, result, message }));
    return { tenant, proxy, encryptionKey, send, entries };
  }

  const rule = (container: string, permissions: readonly string[], transform = 'redact') => ({
    rules: [{ description: 'r', priority: 1, container, permissions, transform }],
  });

  test('a call opens data only of types in whose containers its key may invoke proxies', async () => {
    const { tenant, proxy, encryptionKey, send, entries } = await withProxy();
    const jwe = await seal(encryptionKey, visa);
    const elsewhere = await tenant.application(rule('/general/', ['proxy:invoke']));
    const cards = await tenant.application(rule('/pci/', ['proxy:invoke']));
    const sent = destination.requests.length;
    for (const type of ['card', 'token']) {
      const refused = await send({ type, encrypted: jwe }, elsewhere);
      assert.equal(refused.status, 403, refused.text);
      assert.ok(!refused.text.includes(visa.number));
    }
    assert.equal(destination.requests.length, sent);
    const used = await send({ type: 'card', encrypted: jwe }, cards);
    assert.equal(used.status, 200, used.text);
    assert.deepEqual(last(), { got: visa });
    const text = await send(
      { type: 'token', encrypted: await seal(encryptionKey, 'x') },
      elsewhere,
    );
    assert.equal(text.status, 200, text.text);
    const logged = await entries();
    assert.ok(logged.every(({ entity_id }) => entity_id === encryptionKey.id));
    assert.deepEqual(new Set(logged.map(({ result }) => result)), new Set(['denied', 'success']));
    const { message } = logged.find(({ result }) => result === 'success') ?? {};
    assert.match(message ?? '', /in a proxy call: POST to localhost:\d+, proxy /);
    assert.ok(message?.endsWith(proxy.id));
  });

  test('no call opens data under the rules of another type than that of the data', async () => {
    const { tenant, encryptionKey, send, entries } = await withProxy();
    const card = { ...visa, cardholder: 'A. Visitor' };
    const account = { routing_number: '021000021', account_number: '0001', holder: 'A. Visitor' };
    const sent = destination.requests.length;
    for (const [container, type, value, status] of [
      ['/pii/', 'social_security_number', visa, 400],
      ['/pii/', 'employer_id_number', visa.number, 400],
      ['/bank/low/', 'us_bank_routing_number', visa, 400],
      ['/bank/', 'bank', visa, 400],
      ['/bank/', 'us_bank_account_number', [visa.number], 400],
      ['/pci/', 'card', '078-05-1120', 400],
      ['/general/', 'token', card, 403],
      ['/general/', 'token', account, 403],
    ] as const) {
      const key = await tenant.application(rule(container, ['proxy:invoke']));
      const given = { type, encrypted: await seal(encryptionKey, value) };
      for (const one of [given, { named: given }]) {
        const refused = await send(one, key);
        assert.equal(refused.status, status, `${type}: ${refused.text}`);
        assert.ok(!refused.text.includes('4242') && !refused.text.includes('1120'));
      }
    }
    assert.equal(destination.requests.length, sent);
    const logged = await entries();
    assert.deepEqual(new Set(logged.map(({ result }) => result)), new Set(['failed', 'denied']));
    assert.ok(logged.every(({ entity_id }) => entity_id === encryptionKey.id));
  });

  test('no token shows a card number that stands next to other numbers in its data', async () => {
    const tenant = await newTenant();
    const encryptionKey = await keyOf(tenant);
    const key = await tenant.application(
      rule('/general/', ['token:create', 'token:read'], 'reveal'),
    );
    const create = async (value: unknown) => {
      const body = { type: 'token', encrypted: await seal(encryptionKey, value) };
      return (await tenant.send('POST', '/tokens', { key, body })).status;
    };
    const grouped = '4242 4242 4242 4242';
    for (const text of [
      `${visa.number} 12/30`,
      `12 ${grouped} 30 123`,
      '3782-822463-10005 1234',
      `4242 ${grouped}`,
      grouped.replaceAll(' ', '\u00a0'),
      `%B${visa.number}^VISITOR/A^3012101`,
    ]) {
      assert.equal(await create(text), 403, JSON.stringify(text));
    }
    const uuid = '550e8400-e29b-41d4-a716-424242424242';
    for (const text of [uuid, `${visa.number}x`, '4242 4242 12/30', '1 '.repeat(1000)]) {
      assert.equal(await create(text), 201, text);
    }
  });

  test('without a key only where the proxy allows it, with the rights of its application', async () => {
    const { tenant, proxy, encryptionKey, send } = await withProxy({ require_auth: false });
    const jwe = await seal(encryptionKey, visa);
    const given = { type: 'card', encrypted: jwe };
    const set = async (patch: object) => {
      const patched = await sendProxy(tenant, 'PATCH', `/${proxy.id}`, { body: patch });
      assert.equal(patched.status, 204, patched.text);
    };
    const applicationWith = async (body: object) => {
      const created = await tenant.send('POST', '/applications', {
        key: tenant.managementKey,
        body: { name: 'a', type: 'private', ...body },
      });
      assert.equal(created.status, 201, created.text);
      return { application: { id: created.body.id } };
    };
    assert.equal((await send(given)).status, 403);
    await set(await applicationWith(rule('/pci/', ['token:use'], 'reveal')));
    const refused = await send(given);
    assert.equal(refused.status, 403, refused.text);
    assert.match(refused.text, /allow_encrypted/);
    await set({ allow_encrypted: true });
    assert.equal((await send(given)).status, 200);
    await set(await applicationWith(rule('/general/', ['token:use'], 'reveal')));
    assert.equal((await send(given)).status, 403);
    const shown = await sendProxy(tenant, 'GET', `/${proxy.id}`);
    assert.equal(shown.body.allow_encrypted, true);
    assert.equal((await createProxy(tenant)).allow_encrypted, false);
  });

  test('what cannot be opened has an entry with the key that it names', async () => {
    const { tenant, encryptionKey, send, entries } = await withProxy();
    const key = await tenant.application({ permissions: ['proxy:invoke'] });
    const now = () => tenant.vault.clock.now();
    for (const jwe of [
      await seal(encryptionKey, visa, { kid: missing }),
      await seal(encryptionKey, visa, { exp: now() / 1000 - 1 }),
      await seal(encryptionKey, visa, { kid: visa.number }),
    ]) {
      const refused = await send({ type: 'card', encrypted: jwe }, key);
      assert.equal(refused.status, 400, refused.text);
      assert.ok(!refused.text.includes(visa.number));
    }
    const logged = await entries();
    assert.deepEqual(
      new Set(logged.map(({ entity_id, result }) => `${result} ${entity_id}`)),
      new Set([`failed ${missing}`, `failed ${encryptionKey.id}`, 'failed *']),
    );
  });

  test('a second use of one jti is refused while its key lives, also at the same moment', async () => {
    const { tenant, encryptionKey, send } = await withProxy();
    const key = await tenant.application({ permissions: ['proxy:invoke'] });
    const other = await keyOf(tenant);
    const jwe = await seal(encryptionKey, visa, { jti: 'one' });
    const given = { type: 'card', encrypted: jwe };
    const sent = destination.requests.length;
    const statuses = (await Promise.all([1, 2, 3, 4].map(() => send(given, key)))).map(
      ({ status }) => status,
    );
    assert.deepEqual(statuses.toSorted(), [200, 400, 400, 400]);
    assert.equal(destination.requests.length, sent + 1);
    const byOther = { type: 'card', encrypted: await seal(other, visa, { jti: 'one' }) };
    assert.equal((await send(byOther, key)).status, 200);
    const twice = await seal(encryptionKey, visa, { jti: 'two' });
    const both = { a: { type: 'card', encrypted: twice }, b: { type: 'card', encrypted: twice } };
    assert.equal((await send(both, key)).status, 400);
    const created = (body: object) => tenant.send('POST', '/tokens', { body });
    assert.equal((await created({ type: 'card', encrypted: jwe })).status, 400);
    assert.equal((await created({ type: 'card', encrypted: twice })).status, 201);
    assert.equal((await created({ type: 'card', encrypted: twice })).status, 400);
    assert.equal((await tenant.rows('client_key_uses')).length, 3);
    const removed = await tenant.send('DELETE', `/keys/${encryptionKey.id}`, {
      key: tenant.managementKey,
    });
    assert.equal(removed.status, 204);
    assert.equal((await tenant.rows('client_key_uses')).length, 1);
  });

  test('a use that the vault did not write is not believed, and one of an earlier release is', async () => {
    const tenant = await newTenant();
    const encryptionKey = await keyOf(tenant);
    const { place, clock } = tenant.vault;
    const create = async () => {
      const encrypted = await seal(encryptionKey, visa, { jti: 'one' });
      return tenant.send('POST', '/tokens', { body: { type: 'card', encrypted } });
    };
    const alter = (sets: string) => engine.run(place, `update client_key_uses set ${sets}`);
    assert.equal((await create()).status, 201);
    const again = await create();
    assert.equal(again.status, 400);
    assert.match(again.text, /must not have been used before/);
    await alter('used_at = used_at + 1');
    const altered = await create();
    assert.equal(altered.status, 500, altered.text);
    assert.equal(altered.body.type, 'urn:strongroom:problem:integrity');
    clock.advance(1001);
    const alerts = (await tenant.rows('logs')).filter(({ message }) => message.includes('altered'));
    assert.deepEqual(
      alerts.map(({ entity_type }) => entity_type),
      ['key_use'],
    );
    await alter('used_at = used_at - 1, use_id = null, proof = null');
    assert.equal((await create()).status, 400);
  });

  test('tokens and token intents are made of it, and shown as their caller may read them', async () => {
    const tenant = await newTenant();
    const encryptionKey = await keyOf(tenant, { algorithm: 'RSA-OAEP-256' });
    const jwe = await seal(encryptionKey, visa);
    const body = { type: 'card', encrypted: jwe };
    const whole = await tenant.send('POST', '/tokens', { body });
    assert.equal(whole.status, 201, whole.text);
    assert.deepEqual(whole.body.data, visa);
    const creator = await tenant.application(rule('/pci/', ['token:create'], 'reveal'));
    const unread = await tenant.send('POST', '/tokens', { key: creator, body });
    assert.equal(unread.status, 201, unread.text);
    assert.ok(!unread.text.includes('4242'), unread.text);
    assert.deepEqual((await tenant.send('GET', `/tokens/${unread.body.id}`)).body.data, visa);
    const masked = { ...body, mask: '{{ data.number }}' };
    assert.equal(
      (await tenant.send('POST', '/tokens', { key: creator, body: masked })).status,
      403,
    );
    const outside = { ...body, containers: ['/general/'] };
    const refused = await tenant.send('POST', '/tokens', { key: creator, body: outside });
    assert.equal(refused.status, 403, refused.text);

    const list = await tenant.send('POST', '/tokenize', { body: { a: [body], b: 1 } });
    assert.equal(list.status, 200, list.text);
    assert.deepEqual(list.body.a[0].data, visa);
    const intent = await tenant.send('POST', '/token-intents', {
      key: await tenant.application({ permissions: ['token-intent:create', 'token-intent:read'] }),
      body,
    });
    assert.equal(intent.status, 201, intent.text);
    assert.equal(intent.body.card.last4, '4242');
    const blind = await tenant.send('POST', '/token-intents', {
      key: await tenant.application({ type: 'public', permissions: ['token-intent:create'] }),
      body,
    });
    assert.equal(blind.status, 201, blind.text);
    assert.ok(!blind.text.includes('4242') && blind.body.fingerprint === undefined, blind.text);
    const made = await tenant.send('POST', '/tokens', { body: { token_intent_id: blind.body.id } });
    assert.equal(made.body.data.number, visa.number);

    const entries = (await tenant.rows('logs')).filter(({ entity_type }) => entity_type === 'key');
    const used = entries.filter(({ operation }) => operation === 'use');
    assert.ok(used.every(({ entity_id }) => entity_id === encryptionKey.id));
    const results = used.map(({ result }) => result);
    assert.equal(results.filter((result) => result === 'success').length, 5);
    assert.ok(results.includes('denied'));
  });

  /** A creation that is sent again, once its application is as `later` says, shows nothing of what it showed before. */
  async function assertNarrowed(
    tenant: TestTenant,
    { before, later }: { readonly before: object; readonly later: object },
  ) {
    const encrypted = await seal(await keyOf(tenant), visa);
    const manage = (method: string, path: string, body: object) =>
      tenant.send(method, path, { key: tenant.managementKey, body });
    const { body: made } = await manage('POST', '/applications', before);
    const create = () =>
      tenant.send('POST', '/token-intents', {
        key: made.key,
        body: { type: 'card', encrypted },
        headers: { 'svc-idempotency-key': 'once' },
      });
    const first = await create();
    assert.equal(first.body.card?.last4, '4242', first.text);
    assert.equal((await create()).body.card?.last4, '4242');
    assert.equal((await manage('PUT', `/applications/${made.id}`, later)).status, 200);
    const again = await create();
    assert.equal(again.body.id, first.body.id, again.text);
    assert.ok(!again.text.includes('4242') && again.body.fingerprint === undefined, again.text);
  }

  test('an intent that is sent again shows nothing to who may not read it any more', async () => {
    const tenant = await newTenant();
    const creating = { name: 'a', permissions: ['token-intent:create'] };
    for (const permission of ['token-intent:read', 'token:read']) {
      const permissions = [...creating.permissions, permission];
      const holding = { ...creating, type: 'private', permissions };
      await assertNarrowed(tenant, { before: holding, later: creating });
    }
  });

  test('an intent that is sent again shows nothing to who may read only elsewhere, or nothing of it', async () => {
    const tenant = await newTenant();
    const reading = (container: string, transform: string) => ({
      name: 'a',
      permissions: ['token-intent:create'],
      ...rule(container, ['token:read'], transform),
    });
    for (const later of [reading('/general/', 'mask'), reading('/pci/', 'redact')]) {
      const before = { ...reading('/', 'mask'), type: 'private' };
      await assertNarrowed(tenant, { before, later });
    }
  });

  test('400 and 403 of creations name the attribute, and nothing is stored', async () => {
    const tenant = await newTenant();
    const encryptionKey = await keyOf(tenant);
    const jwe = await seal(encryptionKey, visa);
    const number = await seal(encryptionKey, { number: '4242424242424241' });
    for (const [path, body, attribute] of [
      ['/tokens', { type: 'card', encrypted: 'x' }, 'encrypted'],
      ['/tokens', { type: 'card', encrypted: jwe, data: visa }, 'encrypted'],
      ['/tokens', { type: 'card', encrypted: jwe, token_intent_id: missing }, 'token_intent_id'],
      ['/tokens', { encrypted: jwe }, 'type'],
      ['/tokens', { type: 'card', encrypted: number }, 'data.number'],
      ['/token-intents', { type: 'card', encrypted: 'x' }, 'encrypted'],
      ['/token-intents', { type: 'card', encrypted: jwe, data: visa }, 'encrypted'],
      ['/token-intents', { type: 'card', encrypted: number }, 'data.number'],
      ['/tokenize', [{ type: 'card', encrypted: 'x' }], '[0].encrypted'],
    ] as const) {
      const key = path === '/token-intents' ? { key: await intents(tenant) } : {};
      const refused = await tenant.send('POST', path, { ...key, body });
      assert.equal(refused.status, 400, refused.text);
      assert.deepEqual(Object.keys(refused.body.errors), [attribute]);
      assert.ok(!refused.text.includes('4242'));
    }
    assert.deepEqual(await tenant.rows('tokens'), []);
    assert.deepEqual(await tenant.rows('token_intents'), []);
  });

  test('400 for headers that no client writes', async () => {
    const { tenant, encryptionKey, send } = await withProxy();
    const unnamed = { ...encryptionKey, id: [encryptionKey.id] as never };
    const padded = { typ: 'x'.repeat(8_192) } as JweHeader;
    for (const jwe of [
      await seal(unnamed, 'x'),
      await seal(encryptionKey, 'x', padded),
      '['.repeat(500_000),
    ]) {
      const refused = await tenant.send('POST', '/tokens', {
        body: { type: 'token', encrypted: jwe },
      });
      assert.equal(refused.status, 400, refused.text);
      assert.deepEqual(Object.keys(refused.body.errors), ['encrypted']);
    }
    const called = await send({ type: 'token', encrypted: await seal(unnamed, 'x') }, tenant.key);
    assert.equal(called.status, 400, called.text);
  });

  const intents = (tenant: TestTenant) =>
    tenant.application({ permissions: ['token-intent:create'] });

  test('lines of an import are made of it, each use of a jti once', async () => {
    const tenant = await newTenant();
    const encryptionKey = await keyOf(tenant);
    const jwe = await seal(encryptionKey, visa, { jti: 'line' });
    const lines = [
      { type: 'card', encrypted: jwe },
      { type: 'card', encrypted: jwe },
    ];
    const answered = await tenant.send('POST', '/tokens/bulk', {
      body: lines.map((line) => JSON.stringify(line)).join('\n'),
      headers: { 'content-type': 'application/x-ndjson' },
    });
    const results = answered.text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.deepEqual(
      results.map(({ token }) => token?.data?.number),
      [visa.number, undefined],
    );
  });
});
