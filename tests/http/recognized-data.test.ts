/**
 * Data that its caller did not bring in the clear is decided by what it is, whatever type the caller declares, and
 * wherever the caller wants its token to lie.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type EncryptionKey, encrypted } from '../support/client-encryption.ts';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { createProxy } from '../support/proxies.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import { visa } from '../support/values.ts';

const { destination, url, environment } = await startCalled({ after });
destination.behave(answer());

type Rule = readonly [container: string, permissions: readonly string[], transform?: string];

const rules = (...all: readonly Rule[]) =>
  all.map(([container, permissions, transform = 'redact'], at) => ({
    description: 'r',
    priority: at + 1,
    container,
    permissions,
    transform,
  }));

const reader = ['token:create', 'token:read'];

/** Passes the check of cards, and is as long as one. */
const accountLikeCard = '000000000018';

const asHeader = (json: object) => Buffer.from(JSON.stringify(json)).toString('base64');

async function keyOf(tenant: TestTenant): Promise<EncryptionKey> {
  const made = await tenant.send('POST', '/keys', { key: tenant.managementKey, body: {} });
  assert.equal(made.status, 201, made.text);
  return made.body;
}

onBothEngines('Data under a type that its caller declares', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  async function withKey() {
    const tenant = await newTenant();
    const encryptionKey = await keyOf(tenant);
    const seal = (value: unknown) => encrypted(encryptionKey, JSON.stringify(value));
    const uses = async () =>
      (await tenant.rows('logs'))
        .filter(({ entity_type, operation }) => entity_type === 'key' && operation === 'use')
        .map(({ entity_id, result }) => `${entity_id} ${result}`);
    return { tenant, encryptionKey, seal, uses };
  }

  test('goes to no host as an account where it is a card', async () => {
    const { tenant, encryptionKey, seal, uses } = await withKey();
    const proxy = await createProxy(tenant, { destination_url: url });
    const send = async (key: string, type: string, value: unknown) =>
      tenant.vault.send('POST', '/proxy', {
        key,
        body: { got: "{{ encrypted | json: '$.data' }}" },
        headers: {
          'svc-proxy-key': proxy.key,
          'svc-encrypted': asHeader({ type, encrypted: await seal(value) }),
        },
      });
    const accounts = await tenant.application({ rules: rules(['/bank/', ['proxy:invoke']]) });
    const general = await tenant.application({ rules: rules(['/general/', ['proxy:invoke']]) });
    const sent = destination.requests.length;
    for (const [key, type, value] of [
      [accounts, 'us_bank_account_number', visa.number],
      [accounts, 'us_bank_account_number', accountLikeCard],
      [general, 'token', '4242 4242 4242 4242'],
      [general, 'token', 4242424242424242],
      [general, 'token', { order: [{ paid: `with 4242-4242-4242-4242` }] }],
      [general, 'token', [{ routing_number: '021000021', account_number: '0001', x: 1 }]],
    ] as const) {
      const refused = await send(key, type, value);
      assert.equal(refused.status, 403, `${type} ${JSON.stringify(value)}: ${refused.text}`);
      assert.ok(!refused.text.includes('4242'));
    }
    assert.equal(destination.requests.length, sent);
    assert.deepEqual(new Set(await uses()), new Set([`${encryptionKey.id} denied`]));
    const both = await tenant.application({
      rules: rules(['/bank/', ['proxy:invoke']], ['/pci/', ['proxy:invoke']]),
    });
    for (const [key, type, value] of [
      [accounts, 'us_bank_account_number', '79927398713'],
      [accounts, 'us_bank_account_number', '000123456789'],
      [general, 'token', { at: 1_700_000_000_000, id: '0d1f2d7c-1c0f-4a3e-8d43-446655440000' }],
      [both, 'us_bank_account_number', accountLikeCard],
    ] as const) {
      const used = await send(key, type, value);
      assert.equal(used.status, 200, `${type} ${JSON.stringify(value)}: ${used.text}`);
    }
  });

  test('becomes no token where its caller sees more than where the data belongs', async () => {
    const { tenant, encryptionKey, seal, uses } = await withKey();
    const key = await tenant.application({
      permissions: ['token:create'],
      rules: rules(['/general/', reader, 'reveal'], ['/bank/', reader, 'reveal']),
    });
    const creator = await tenant.application({ rules: rules(['/general/', ['token:create']]) });
    const card = await seal(visa);
    const number = await seal(visa.number);
    const line = (body: object) => ({
      body: `${JSON.stringify(body)}\n`,
      headers: { 'content-type': 'application/x-ndjson' },
    });
    for (const [by, body] of [
      [key, { type: 'card', encrypted: card, containers: ['/general/high/'] }],
      [key, { type: 'token', encrypted: card }],
      [key, { type: 'us_bank_account_number', encrypted: number }],
      [key, { type: 'token', encrypted: number, fingerprint_expression: '{{ data }}' }],
      [creator, { type: 'token', encrypted: card }],
      [creator, { type: 'card', encrypted: card, containers: ['/general/high/'] }],
    ] as const) {
      const refused = await tenant.send('POST', '/tokens', { key: by, body });
      assert.equal(refused.status, 403, refused.text);
      assert.ok(!refused.text.includes('4242'));
      assert.equal((await tenant.send('POST', '/tokenize', { key: by, body: [body] })).status, 403);
      const imported = await tenant.send('POST', '/tokens/bulk', { key: by, ...line(body) });
      assert.equal(JSON.parse(imported.text).status, 403, imported.text);
    }
    assert.deepEqual(await tenant.rows('tokens'), []);
    assert.deepEqual(new Set(await uses()), new Set([`${encryptionKey.id} denied`]));

    const visitor = await tenant.application({ type: 'public', permissions: ['token:create'] });
    for (const body of [
      { type: 'card', encrypted: card, containers: ['/general/high/'] },
      { type: 'token', encrypted: card },
      { type: 'us_bank_account_number', encrypted: number },
    ]) {
      const made = await tenant.send('POST', '/tokens', { key: visitor, body });
      assert.equal(made.status, 201, made.text);
      assert.ok(!made.text.includes('4242'), made.text);
    }
    const holder = await tenant.application({ rules: rules(['/', reader, 'reveal']) });
    const body = { type: 'card', encrypted: card, containers: ['/general/high/'] };
    const shown = await tenant.send('POST', '/tokens', { key: holder, body });
    assert.deepEqual(shown.body.data, visa);
  });

  test('becomes no token there by way of an intent that another key makes', async () => {
    const { tenant, seal } = await withKey();
    const visitor = await tenant.application({
      type: 'public',
      permissions: ['token-intent:create'],
    });
    const key = await tenant.application({ rules: rules(['/', ['token:create']]) });
    const seeing = await tenant.application({
      permissions: ['token:create'],
      rules: rules(['/general/', reader, 'reveal']),
    });
    const intentOf = async (body: object) => {
      const made = await tenant.send('POST', '/token-intents', { key: visitor, body });
      assert.equal(made.status, 201, made.text);
      return { token_intent_id: made.body.id, containers: ['/general/high/'] };
    };
    const made = [
      await intentOf({ type: 'card', encrypted: await seal(visa) }),
      await intentOf({ type: 'token', encrypted: await seal(visa) }),
    ];
    for (const body of made) {
      const refused = await tenant.send('POST', '/tokens', { key: seeing, body });
      assert.equal(refused.status, 403, refused.text);
      assert.equal((await tenant.send('POST', '/tokens', { key, body })).status, 201);
    }
    // What its caller brought in the clear stays with whoever knows the id.
    const clear = await intentOf({ type: 'card', data: visa });
    assert.equal((await tenant.send('POST', '/tokens', { key: seeing, body: clear })).status, 201);
  });

  test('is seen in an intent as the rules for all that it is allow together', async () => {
    const { tenant } = await withKey();
    const visitor = await tenant.application({
      type: 'public',
      permissions: ['token-intent:create'],
    });
    const made = await tenant.send('POST', '/token-intents', {
      key: visitor,
      body: { type: 'us_bank_account_number', data: visa.number },
    });
    assert.equal(made.status, 201, made.text);
    const seenBy = async (...all: readonly Rule[]) => {
      const key = await tenant.application({
        permissions: ['token-intent:read'],
        rules: rules(...all),
      });
      const body = { seen: `{{ token_intent: ${made.body.id} }}` };
      const { status, body: found } = await tenant.send('POST', '/detokenize', { key, body });
      return [status, found.seen?.data];
    };
    const accounts = ['/bank/', ['token:read'], 'reveal'] as const;
    assert.deepEqual(await seenBy(accounts), [403, undefined]);
    const whole = await seenBy(accounts, ['/pci/', ['token:read'], 'reveal']);
    assert.deepEqual(whole, [200, visa.number]);
    const masked = await seenBy(accounts, ['/pci/', ['token:read'], 'mask']);
    assert.deepEqual(masked, [200, 'XXXXXXXXXXXX4242']);
  });
});
