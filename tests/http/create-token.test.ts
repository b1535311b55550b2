/** POST /tokens. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { startVault } from '../support/vault.ts';

const visa = {
  number: '4242424242424242',
  expiration_month: 12,
  expiration_year: 2030,
  cvc: '123',
};

onBothEngines('POST /tokens', (engine) => {
  test('201: the token comes back as the transform of the rule shows it', async (t) => {
    const vault = await startVault(t, engine);
    const key = await vault.application();
    const created = await vault.send('POST', '/tokens', {
      key,
      body: { type: 'card', data: visa },
    });
    assert.equal(created.status, 201);
    assert.deepEqual(created.body.data, visa);
    assert.deepEqual(created.body.containers, ['/pci/high/']);
    assert.deepEqual(created.body._extras, { deduplicated: false });
    assert.equal(created.headers.get('location'), `${vault.url}/tokens/${created.body.id}`);
  });

  test('201: an expired token that still holds the id or the fingerprint makes way', async (t) => {
    const vault = await startVault(t, engine);
    const key = await vault.application();
    const body = {
      id: 'own id',
      type: 'card',
      data: visa,
      deduplicate_token: true,
      search_indexes: ['{{ data.number }}'],
      expires_at: new Date(vault.clock.now() + 60_000).toISOString(),
    };
    const first = await vault.send('POST', '/tokens', { key, body });
    assert.equal(first.status, 201);
    vault.clock.advance(61_000);
    assert.equal((await vault.send('GET', '/tokens/own%20id', { key })).status, 404);
    const later = new Date(vault.clock.now() + 60_000).toISOString();
    const second = await vault.send('POST', '/tokens', {
      key,
      body: { ...body, expires_at: later },
    });
    assert.equal(second.status, 201, second.text);
    assert.deepEqual(second.body._extras, { deduplicated: false });
    vault.clock.advance(61_000);
    const { id: _own, ...unnamed } = body;
    const third = await vault.send('POST', '/tokens', {
      key,
      body: { ...unnamed, expires_at: null },
    });
    assert.equal(third.status, 201, third.text);
    assert.deepEqual(third.body._extras, { deduplicated: false });
  });

  test('201: any number of concurrent creates of one value yield one token', async (t) => {
    const vault = await startVault(t, engine);
    const key = await vault.application();
    const body = { type: 'card', data: visa, deduplicate_token: true };
    const created = await Promise.all(
      Array.from({ length: 40 }, () => vault.send('POST', '/tokens', { key, body })),
    );
    assert.deepEqual(new Set(created.map(({ status }) => status)), new Set([201]));
    assert.equal(new Set(created.map((answer) => answer.body.id)).size, 1);
    assert.equal(created.filter((answer) => !answer.body._extras.deduplicated).length, 1);
  });

  test('201: one idempotency key has one effect under 100 concurrent retries', async (t) => {
    const vault = await startVault(t, engine);
    const key = await vault.application();
    const sent = {
      key,
      body: { type: 'card', data: visa },
      headers: { 'svc-idempotency-key': 'k-1' },
    };
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => vault.send('POST', '/tokens', sent)),
    );
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201, 409]));
    const again = await vault.send('POST', '/tokens', sent);
    const ids = [...answers, again]
      .filter(({ status }) => status === 201)
      .map(({ body }) => body.id);
    assert.equal(new Set(ids).size, 1);
    vault.clock.advance(24 * 3600 * 1000 + 1);
    const nextDay = await vault.send('POST', '/tokens', sent);
    assert.equal(nextDay.status, 201);
    assert.ok(!ids.includes(nextDay.body.id));
  });
});
