/** PATCH /tokens/{id}: what changes, what stays, and who may. Merging is in update-token-merge. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refusalWindowMs } from '../../src/audit/refusals.ts';
import { onBothEngines } from '../support/engines.ts';
import { newTenant, tenantsOf } from '../support/tenant.ts';
import { mastercard, visa } from '../support/values.ts';

const request = {
  id: 'own',
  type: 'card',
  data: visa,
  metadata: { k: 'v' },
  search_indexes: ['{{ data.number }}', '{{ data.expiration_year }}'],
};

onBothEngines('PATCH /tokens/{id}', (engine) => {
  const tenants = tenantsOf(engine);

  test('200: what is patched changes, the rest stays, and the token shows who changed it and when', async () => {
    const tenant = await tenants();
    const { _extras, ...created } = (await tenant.token(request)).body;
    const body = { data: { expiration_year: 2031 } };
    const updater = await tenant.holder({ permissions: ['token:update', 'token:read'] });
    const patched = await tenant.send('PATCH', '/tokens/own', { key: updater, body });
    assert.equal(patched.status, 200);
    const { modified_by, modified_at, ...rest } = patched.body;
    assert.deepEqual(rest, {
      ...created,
      data: { ...visa, expiration_year: 2031 },
      card: { ...created.card, expiration_year: 2031 },
    });
    assert.notEqual(modified_by, created.created_by);
    assert.match(modified_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/);
    assert.deepEqual((await tenant.send('GET', '/tokens/own')).body, patched.body);
    assert.deepEqual(await tenant.logged(), ['create', 'read', 'update']);
  });

  test('200: an empty patch, a null, or the legacy privacy alone change nothing but modified_*', async () => {
    const tenant = await tenants();
    const { _extras, ...created } = (await tenant.token({ ...request, metadata: null })).body;
    const bodies = [{}, { metadata: null }, { deduplicate_token: null }, { privacy: 'any' }];
    for (const body of bodies) {
      const patched = await tenant.send('PATCH', '/tokens/own', { body });
      const { modified_by, modified_at, ...rest } = patched.body;
      assert.deepEqual(rest, created);
    }
  });

  test('200: the other attributes replace, and null takes back what was given', async () => {
    const tenant = await tenants();
    const { body: created } = await tenant.token(request);
    const given = {
      containers: ['/Other/'],
      search_indexes: ['{{ data.number | last4 }}'],
      fingerprint_expression: '{{ data.number }}-{{ data.expiration_month }}',
    };
    const { body } = await tenant.send('PATCH', '/tokens/own', { body: given });
    assert.deepEqual(body.containers, ['/other/']);
    assert.deepEqual(body.search_indexes, given.search_indexes);
    assert.equal(body.fingerprint_expression, given.fingerprint_expression);
    assert.notEqual(body.fingerprint, created.fingerprint);
    const nothing = { search_indexes: null, fingerprint_expression: null, containers: null };
    const { body: back } = await tenant.send('PATCH', '/tokens/own', { body: nothing });
    assert.equal('search_indexes' in back, false);
    assert.equal(back.fingerprint, created.fingerprint);
    assert.deepEqual(back.containers, ['/other/']);
  });

  test('200: fingerprint and search terms follow the data, in the same commit', async () => {
    const tenant = await tenants();
    const { body: created } = await tenant.token({ ...request, metadata: null });
    const terms = async () => (await tenant.rows('search_terms')).map(({ term }) => term).sort();
    const before = await terms();
    const body = { data: { number: mastercard.number } };
    const patched = await tenant.send('PATCH', '/tokens/own', { body });
    assert.notEqual(patched.body.fingerprint, created.fingerprint);
    const after = await terms();
    assert.equal(after.length, 2);
    assert.equal(after.filter((term) => before.includes(term)).length, 1);
    await tenant.send('PATCH', '/tokens/own', { body: { data: { number: visa.number } } });
    assert.deepEqual(await terms(), before);
    await tenant.send('PATCH', '/tokens/own', { body: { search_indexes: [] } });
    assert.deepEqual(await terms(), []);
    // Two expressions of one value are one term.
    const twice = { search_indexes: ['{{ data.number }}', '{{data.number}}'] };
    await tenant.send('PATCH', '/tokens/own', { body: twice });
    assert.equal((await terms()).length, 1);
  });

  test('200: a mask is evaluated against the data as it is now', async () => {
    const tenant = await tenants();
    const reader = await tenant.application({ permissions: ['token:read'] });
    const shown = async () => (await tenant.send('GET', '/tokens/own', { key: reader })).body.data;
    await tenant.token(request);
    await tenant.send('PATCH', '/tokens/own', { body: { data: { number: mastercard.number } } });
    assert.equal((await shown()).number, 'XXXXXXXXXXXX4444');
    const added = { mask: { cvc: '{{ data.cvc | reveal_last: 1 }}', expiration_month: null } };
    await tenant.send('PATCH', '/tokens/own', { body: added });
    assert.deepEqual(await shown(), {
      number: 'XXXXXXXXXXXX4444',
      expiration_year: 2030,
      cvc: 'XX3',
    });
    const removed = await tenant.send('PATCH', '/tokens/own', { body: { mask: null } });
    assert.equal('mask' in removed.body, false);
    assert.equal(await shown(), undefined);
  });

  test('200: equal to another token it stays itself; who may not read that one sees no contents', async () => {
    const tenant = await tenants();
    await tenant.token({ ...request, id: 'hidden', containers: ['/hidden/'] });
    const rules = [
      { priority: 1, container: '/', permissions: ['token:update'], transform: 'reveal' },
      { priority: 2, container: '/pci/', permissions: ['token:read'], transform: 'reveal' },
    ];
    const key = await tenant.application({ rules });
    await tenant.token({ ...request, data: mastercard, metadata: { k: 'v' } });
    const body = { data: { number: visa.number }, deduplicate_token: true };
    const patched = await tenant.send('PATCH', '/tokens/own', { key, body });
    assert.equal(patched.status, 200);
    const hidden = ['data', 'mask', 'metadata', 'fingerprint_expression', 'search_indexes', 'card'];
    for (const name of hidden) assert.equal(name in patched.body, false, name);
    assert.equal(patched.body.id, 'own');
    assert.deepEqual((await tenant.send('GET', '/tokens/own', { key })).body.data, visa);
    assert.equal((await tenant.counts())['tokens'], 2);

    await tenant.send('PATCH', '/tokens/own', { body: { data: { number: mastercard.number } } });
    const seen = await tenant.send('PATCH', '/tokens/own', { body });
    assert.deepEqual(seen.body.data, visa);
  });

  test('403: without token:update where the token lies; logged as denied, nothing changes', async () => {
    const tenant = await tenants();
    await tenant.token(request);
    const before = await tenant.rows('tokens');
    for (const rule of [{ container: '/general/' }, { permissions: ['token:read'] }]) {
      const key = await tenant.holder(rule);
      const body = { metadata: { k: 'changed' } };
      const denied = await tenant.send('PATCH', '/tokens/own', { key, body });
      assert.equal(denied.status, 403);
      assert.equal(denied.body.detail, 'The key lacks the permission token:update here.');
    }
    assert.deepEqual(await tenant.rows('tokens'), before);
    assert.deepEqual(await tenant.logged(), ['create', 'update denied', 'update denied']);
  });

  test('403: moving a token needs token:update where it lies and where it goes', async () => {
    const tenant = await tenants();
    await tenant.token(request);
    const from = await tenant.holder({ container: '/pci/' });
    const to = await tenant.holder({ container: '/goal/' });
    const both = await tenant.application({
      rules: ['/pci/high/', '/goal/'].map((container, index) => ({
        priority: index + 1,
        container,
        permissions: ['token:update'],
        transform: 'reveal',
      })),
    });
    const body = { containers: ['/goal/'] };
    for (const key of [from, to]) {
      assert.equal((await tenant.send('PATCH', '/tokens/own', { key, body })).status, 403);
    }
    assert.deepEqual((await tenant.send('GET', '/tokens/own')).body.containers, ['/pci/high/']);
    const moved = await tenant.send('PATCH', '/tokens/own', { key: both, body });
    assert.deepEqual(moved.body.containers, ['/goal/']);
    assert.deepEqual(await tenant.logged(), [
      'create',
      'read',
      'update',
      'update denied',
      'update denied',
    ]);
  });

  test("404: a missing, an expired, and another tenant's token; logged as failed", async () => {
    const tenant = await tenants();
    const other = await newTenant(tenant.vault);
    await other.token(request);
    const { clock } = tenant.vault;
    const expires_at = new Date(clock.now() + 60_000).toISOString();
    await tenant.token({ ...request, id: 'expired', expires_at });
    clock.advance(60_001);
    const before = await tenant.rows('tokens');
    const body = { metadata: { k: 'changed' }, expires_at: null };
    for (const id of ['missing', 'own', 'expired']) {
      assert.equal((await tenant.send('PATCH', `/tokens/${id}`, { body })).status, 404, id);
      clock.advance(refusalWindowMs);
    }
    assert.deepEqual(await tenant.rows('tokens'), before);
    const failed = (await tenant.logged()).filter((entry) => entry === 'update failed');
    assert.equal(failed.length, 3);
    assert.deepEqual((await other.send('GET', '/tokens/own')).body.metadata, { k: 'v' });
  });

  test('415: any media type but application/merge-patch+json; Accept-Patch names it', async () => {
    const tenant = await tenants();
    await tenant.token(request);
    const before = await tenant.counts();
    const body = '{"metadata":{"k":"changed"}}';
    for (const type of ['application/json', 'application/json-patch+json', 'text/plain']) {
      const headers = { 'content-type': type };
      const refused = await tenant.send('PATCH', '/tokens/own', { body, headers });
      assert.equal(refused.status, 415, type);
      assert.equal(refused.headers.get('accept-patch'), 'application/merge-patch+json');
      assert.equal(refused.body.type, 'urn:strongroom:problem:unsupported_media_type');
    }
    assert.deepEqual(await tenant.counts(), before);
    const headers = { 'content-type': 'Application/Merge-Patch+JSON; charset=utf-8' };
    assert.equal((await tenant.send('PATCH', '/tokens/own', { body, headers })).status, 200);
  });
});
