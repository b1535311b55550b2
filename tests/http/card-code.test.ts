/** Card codes: readable for the CVC Retention quota and never again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { tenantsOf } from '../support/tenant.ts';
import { visa } from '../support/values.ts';
import { createStillClock, revealEverything } from '../support/vault.ts';

const hour = 3600 * 1000;
const { cvc, ...kept } = visa;
const showingCode = { number: '{{ data.number | last4 }}', code: '{{ data.cvc }}' };

onBothEngines('A card code', (engine) => {
  const tenants = tenantsOf(engine, { clock: createStillClock() });

  test('is gone from every answer one hour after it was sent, by default', async () => {
    const tenant = await tenants();
    const masked = await tenant.application({
      rules: [{ ...revealEverything, transform: 'mask' }],
    });
    const { id } = (await tenant.token({ type: 'card', data: visa, mask: showingCode })).body;
    const { id: network } = (await tenant.token({ type: 'network_token', data: visa })).body;
    const read = async (key?: string) =>
      (await tenant.send('GET', `/tokens/${id}`, key === undefined ? {} : { key })).body.data;
    tenant.vault.clock.advance(hour - 1);
    assert.deepEqual(await read(), visa);
    assert.deepEqual(await read(masked), { number: '4242', code: cvc });
    tenant.vault.clock.advance(1);
    assert.deepEqual(await read(), kept);
    assert.equal((await read(masked))?.code ?? null, null);
    assert.deepEqual((await tenant.send('GET', `/tokens/${network}`)).body.data, kept);
    const patched = await tenant.send('PATCH', `/tokens/${id}`, { body: { metadata: { a: 'b' } } });
    assert.deepEqual(patched.body.data, kept);
  });

  test('lives as long as the quota said when it was sent; 0 keeps none at all', async () => {
    const tenant = await tenants();
    await tenant.setQuotas({ cvc_retention: 60_000 });
    const { id } = (await tenant.token({ type: 'card', data: visa })).body;
    await tenant.setQuotas({ cvc_retention: 24 * hour });
    const later = (await tenant.token({ type: 'card', data: visa })).body;
    tenant.vault.clock.advance(61_000);
    assert.deepEqual((await tenant.send('GET', `/tokens/${id}`)).body.data, kept);
    assert.deepEqual((await tenant.send('GET', `/tokens/${later.id}`)).body.data, visa);
    await tenant.setQuotas({ cvc_retention: 0 });
    const never = await tenant.token({ type: 'card', data: visa });
    assert.deepEqual(never.body.data, kept);
    const row = (await tenant.rows('tokens')).find((one) => one.token_id === never.body.id);
    assert.equal(row?.code_expires_at, null);
    const indexed = { type: 'card', data: visa, search_indexes: ['{{ data.cvc }}'] };
    const refused = await tenant.send('POST', '/tokens', { body: indexed });
    assert.deepEqual(Object.keys(refused.body.errors), ['search_indexes[0]']);
  });

  test('is neither brought back nor prolonged by a patch, and a new one has a time of its own', async () => {
    const tenant = await tenants();
    const { id } = (await tenant.token({ type: 'card', data: visa })).body;
    const patch = (data: object) => tenant.send('PATCH', `/tokens/${id}`, { body: { data } });
    tenant.vault.clock.advance(hour / 2);
    assert.deepEqual((await patch({ expiration_year: 2031 })).body.data, {
      ...visa,
      expiration_year: 2031,
    });
    tenant.vault.clock.advance(hour / 2 + 1);
    assert.deepEqual((await patch({ expiration_year: 2032 })).body.data, {
      ...kept,
      expiration_year: 2032,
    });
    assert.equal((await patch({ cvc: '987' })).body.data.cvc, '987');
    tenant.vault.clock.advance(hour - 1);
    assert.equal((await tenant.send('GET', `/tokens/${id}`)).body.data.cvc, '987');
    tenant.vault.clock.advance(1);
    assert.equal('cvc' in (await tenant.send('GET', `/tokens/${id}`)).body.data, false);
    assert.equal('cvc' in (await patch({ cvc: null })).body.data, false);
  });

  test('is no part of what outlives it: neither of an id, nor of a fingerprint, nor of a term', async () => {
    const tenant = await tenants();
    const expression = '{{ data.number }}{{ data.cvc }}';
    const card = { type: 'card', fingerprint_expression: expression };
    const made = await tenant.token({ ...card, data: visa, id: 'id-{{ data.cvc }}' });
    assert.equal(made.body.id, 'id-');
    const { cvc, ...uncoded } = visa;
    const other = await tenant.token({ ...card, data: uncoded });
    assert.equal(other.body.fingerprint, made.body.fingerprint);
    const before = await tenant.counts();
    const refused = await tenant.send('POST', '/tokens', {
      body: { type: 'card', data: visa, search_indexes: ['{{ data.number }}', '{{ data.cvc }}'] },
    });
    assert.equal(refused.status, 400);
    assert.deepEqual(refused.body.errors, {
      'search_indexes[1]': ['must result in a value that is not empty'],
    });
    assert.deepEqual(await tenant.counts(), before);
  });

  test('leaves the fingerprint as it is', async () => {
    const tenant = await tenants();
    const made = await tenant.token({
      type: 'card',
      data: visa,
      fingerprint_expression: '{{ data.number }}{{ data.cvc }}',
      search_indexes: ['{{ data.number }}'],
      metadata: { a: 'b' },
    });
    const path = `/tokens/${made.body.id}`;
    tenant.vault.clock.advance(hour + 1);
    const read = await tenant.send('GET', path);
    assert.equal(read.body.fingerprint, made.body.fingerprint);
    const patched = await tenant.send('PATCH', path, { body: { metadata: { a: 'c' } } });
    assert.equal(patched.status, 200, patched.text);
    assert.equal(patched.body.fingerprint, made.body.fingerprint);
  });

  test('that a duplicate brings is merged with a time of its own, with update_existing', async () => {
    const tenant = await tenants();
    await tenant.set({ token_deduplication_behavior: 'update_existing' });
    const card = { type: 'card', data: visa, deduplicate_token: true };
    const { id } = (await tenant.token(card)).body;
    tenant.vault.clock.advance(hour + 1);
    const without = await tenant.token({ ...card, data: kept });
    assert.deepEqual([without.body.id, without.body.data], [id, kept]);
    assert.deepEqual((await tenant.token(card)).body.data, visa);
    tenant.vault.clock.advance(hour - 1);
    assert.deepEqual((await tenant.send('GET', `/tokens/${id}`)).body.data, visa);
    tenant.vault.clock.advance(1);
    assert.deepEqual((await tenant.send('GET', `/tokens/${id}`)).body.data, kept);
  });
});
