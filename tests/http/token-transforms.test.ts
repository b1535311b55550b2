/** What the three transforms show of a token, for each operation that answers with one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import { bank, visa } from '../support/values.ts';
import type { Received } from '../support/vault.ts';

const request = {
  type: 'card',
  data: visa,
  metadata: { k: 'v' },
  search_indexes: ['{{ data.number }}'],
};

const summary = {
  bin: '42424242',
  last4: '4242',
  expiration_month: 12,
  expiration_year: 2030,
  brand: 'visa',
};

/** Data and summary as each transform shows them; absent attributes are `undefined`. */
const shown = {
  reveal: { data: visa, card: summary },
  mask: {
    data: { number: 'XXXXXXXXXXXX4242', expiration_month: 12, expiration_year: 2030 },
    card: summary,
  },
  redact: { data: undefined, card: undefined },
} as const;

/** Each operation that answers with a token, done by the holder of a key. */
const operations: Readonly<Record<string, (tenant: TestTenant, key: string) => Promise<Received>>> =
  {
    'token:create': (tenant, key) => tenant.send('POST', '/tokens', { key, body: request }),
    'token:read': async (tenant, key) => {
      const { body } = await tenant.token(request);
      return tenant.send('GET', `/tokens/${body.id}`, { key });
    },
  };

onBothEngines('Transforms', (engine) => {
  const tenants = tenantsOf(engine);

  for (const [permission, operate] of Object.entries(operations)) {
    for (const [transform, { data, card }] of Object.entries(shown)) {
      test(`${permission} with ${transform}: data as it says, everything else in full`, async () => {
        const tenant = await tenants();
        const key = await tenant.holder({ permissions: [permission], transform });
        const { body } = await operate(tenant, key);
        assert.deepEqual(body.data, data);
        assert.deepEqual(body.card, card);
        assert.equal('data' in body, data !== undefined);
        assert.deepEqual(body.metadata, request.metadata);
        assert.deepEqual(body.search_indexes, request.search_indexes);
        assert.equal(body.mask.number, '{{ data.number | reveal_last: 4 }}');
        assert.equal(typeof body.fingerprint, 'string');
        assert.deepEqual(body.containers, ['/pci/high/']);
      });
    }

    test(`${permission} without a rule masks, and shows nothing without a mask`, async () => {
      const tenant = await tenants();
      const key = await tenant.application({ permissions: [permission] });
      assert.deepEqual((await operate(tenant, key)).body.data, shown.mask.data);
      const { body } = await tenant.token({ id: 'bare', type: 'token', data: 'x' });
      assert.equal(body.data, 'x');
      if (permission === 'token:read') {
        assert.equal('data' in (await tenant.send('GET', '/tokens/bare', { key })).body, false);
      }
    });
  }

  for (const transform of Object.keys(shown)) {
    test(`token:update answers as token:read with ${transform} does, whatever its own transform`, async () => {
      const tenant = await tenants();
      const rules = [
        { priority: 1, container: '/', permissions: ['token:update'], transform: 'reveal' },
        { priority: 2, container: '/', permissions: ['token:read'], transform },
      ];
      const key = await tenant.application({ rules });
      const { body } = await tenant.token({ ...request, data: { number: visa.number } });
      const path = `/tokens/${body.id}`;
      const patched = await tenant.send('PATCH', path, { key, body: { data: visa } });
      assert.deepEqual(patched.body, (await tenant.send('GET', path, { key })).body);
    });
  }

  test('token:update alone answers without data, mask, metadata, expressions, indexes and fingerprint', async () => {
    const tenant = await tenants();
    for (const key of [
      await tenant.holder({ permissions: ['token:update'] }),
      await tenant.application({ type: 'public', permissions: ['token:update'] }),
    ]) {
      const { body } = await tenant.token(request);
      const patched = await tenant.send('PATCH', `/tokens/${body.id}`, {
        key,
        body: { data: { cvc: '999' }, metadata: { k: 'w' } },
      });
      assert.equal(patched.status, 200, patched.text);
      assert.deepEqual(Object.keys(patched.body).sort(), [
        'containers',
        'created_at',
        'created_by',
        'id',
        'modified_at',
        'modified_by',
        'tenant_id',
        'type',
      ]);
    }
  });

  test('token:delete answers with nothing, whatever its transform', async () => {
    const tenant = await tenants();
    const key = await tenant.holder({ permissions: ['token:delete'], transform: 'reveal' });
    const { body } = await tenant.token(request);
    const deleted = await tenant.send('DELETE', `/tokens/${body.id}`, { key });
    assert.equal(deleted.status, 204);
    assert.equal(deleted.text, '');
  });

  test('each operation follows the rule of its own permission, in the container it is about', async () => {
    const tenant = await tenants();
    const rule = (priority: number, container: string, permission: string, transform: string) => ({
      priority,
      container,
      permissions: [permission],
      transform,
    });
    const key = await tenant.application({
      rules: [
        rule(3, '/', 'token:read', 'redact'),
        rule(1, '/pci/', 'token:read', 'reveal'),
        rule(2, '/', 'token:create', 'mask'),
        rule(4, '/pci/', 'token:update', 'redact'),
      ],
    });
    const created = await tenant.send('POST', '/tokens', { key, body: request });
    assert.deepEqual(created.body.data, shown.mask.data);
    const path = `/tokens/${created.body.id}`;
    assert.deepEqual((await tenant.send('GET', path, { key })).body.data, visa);
    const patched = await tenant.send('PATCH', path, { key, body: { data: { cvc: '999' } } });
    assert.deepEqual(patched.body.data, { ...visa, cvc: '999' });
    const { body: other } = await tenant.token({ type: 'bank', data: bank });
    const redacted = await tenant.send('GET', `/tokens/${other.id}`, { key });
    assert.equal('data' in redacted.body || 'bank' in redacted.body, false);
  });

  test('a mask of the caller hides the summary of the card too, and null shows nothing', async () => {
    const tenant = await tenants();
    const key = await tenant.application({ permissions: ['token:read'] });
    const read = async (mask: unknown) => {
      const { body } = await tenant.token({ ...request, mask });
      return (await tenant.send('GET', `/tokens/${body.id}`, { key })).body;
    };
    const own = await read({ year: '{{ data.expiration_year }}', none: '{{ data.nothing }}' });
    assert.deepEqual(own.data, { year: 2030 });
    assert.equal('card' in own, false);
    assert.deepEqual((await read('{{ data.nothing }}')).data, undefined);
    assert.deepEqual((await read('hidden')).data, 'hidden');
    assert.deepEqual((await read(['{{ data.cvc }}', 1, null])).data, ['123', 1, null]);
  });

  test('the comma form that public clients send as a mask is read as a pipe', async () => {
    const tenant = await tenants();
    const key = await tenant.application({ permissions: ['token:read'] });
    const mask = { number: '{{ data.number, reveal_last: 4 }}' };
    const { body } = await tenant.token({ ...request, mask });
    assert.deepEqual(body.mask, mask);
    const read = await tenant.send('GET', `/tokens/${body.id}`, { key });
    assert.deepEqual(read.body.data, { number: 'XXXXXXXXXXXX4242' });
  });

  test('a mask that cannot be evaluated leaves the data out and is counted, never a 500', async () => {
    const tenant = await tenants();
    const key = await tenant.application({ permissions: ['token:read', 'token:update'] });
    const text = 'not a number';
    const { body } = await tenant.token({
      type: 'token',
      data: text,
      mask: '{{ data | to_number }}',
    });
    const warnings = () =>
      tenant.vault.logged.filter(({ message }) => message.startsWith('a stored mask')).length;
    const before = warnings();
    const path = `/tokens/${body.id}`;
    const read = await tenant.send('GET', path, { key });
    assert.equal(read.status, 200);
    assert.equal('data' in read.body, false);
    assert.equal(warnings(), before + 1);
    const patched = await tenant.send('PATCH', path, { key, body: { metadata: { k: 'v' } } });
    assert.equal(patched.status, 200);
    assert.equal('data' in patched.body, false);
    assert.equal(warnings(), before + 2);
    assert.equal(JSON.stringify(tenant.vault.logged).includes(text), false);
    await tenant.send('PATCH', path, { body: { data: '42' } });
    assert.equal((await tenant.send('GET', path, { key })).body.data, 42);
  });

  test('the summary of a bank and of a network token goes with its data', async () => {
    const tenant = await tenants();
    const of = async (body: object) => (await tenant.token({ ...body })).body;
    assert.deepEqual((await of({ type: 'bank', data: bank })).bank, {
      routing_number: '021000021',
      account_number_last4: '6789',
    });
    const network = await of({ type: 'network_token', data: visa });
    assert.deepEqual(network.network_token, summary);
    assert.equal('card' in network, false);
  });
});
