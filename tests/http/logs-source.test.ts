/** The log says who asked, with which key, from where, and what about; and it is found by each of these facts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import type { Received } from '../support/vault.ts';

interface Entry {
  readonly [name: string]: string | undefined;
}

const list = (tenant: TestTenant, query: string): Promise<Received> =>
  tenant.send('GET', `/logs?size=100&${query}`, { key: tenant.managementKey });

async function found(tenant: TestTenant, query: string): Promise<readonly Entry[]> {
  const response = await list(tenant, query);
  assert.equal(response.status, 200, response.text);
  return response.body.data;
}

const namesOf = (entries: readonly Entry[]) =>
  entries.map(({ operation, entity_id }) => `${operation} ${entity_id}`).sort();

onBothEngines('The log says who asked', (engine) => {
  const environment = { STRONGROOM_TRUSTED_PROXIES: '127.0.0.1,10.0.0.0/8' };
  const tenants = tenantsOf(engine, { environment });

  /** Two keys of different applications, one token in each of two containers. */
  async function traces() {
    const tenant = await tenants();
    const other = await tenant.application();
    const headers = {
      'x-forwarded-for': '198.51.100.66, 203.0.113.7, 10.0.0.2',
      'user-agent': 'Mozilla/5.0 (X11; 4242424242424242) payments/2.1.0 evil/4242424242424242',
      'svc-trace-id': 'checkout-17',
    };
    await tenant.token({ id: 'low', type: 'token', data: 'x', containers: ['/general/low/'] });
    await tenant.token({ id: 'high', type: 'token', data: 'x', containers: ['/pci/high/'] });
    await tenant.send('GET', '/tokens/high', { headers });
    await tenant.send('GET', '/tokens/low', { key: other });
    await tenant.send('GET', '/tokens/absent', { key: other });
    await tenant.send('DELETE', '/tokens/low');
    return tenant;
  }

  test('200: an entry names key, address, proxies that are trusted, products, container and trace', async () => {
    const tenant = await traces();
    const [entry] = await found(tenant, 'entity_id=high&operation=read');
    const { key_id, actor_id, created_at: _, tenant_id: __, ...said } = entry ?? {};
    assert.deepEqual(said, {
      actor_type: 'application',
      application_id: actor_id,
      entity_type: 'token',
      entity_id: 'high',
      operation: 'read',
      message: 'Token retrieved',
      result: 'success',
      shown: 'revealed',
      through: 'get',
      container: '/pci/high/',
      address: '203.0.113.7',
      forwarded: '10.0.0.2, 127.0.0.1',
      user_agent: 'Mozilla/5.0 payments/2.1.0',
      trace_id: 'checkout-17',
    });
    const [row] = (await tenant.rows('api_keys')).filter((one) => one.key_id === key_id);
    assert.equal(row?.application_id, actor_id);
  });

  test('200: each fact finds what has it, alone and together with others, and nothing else', async () => {
    const tenant = await traces();
    const [mine] = await found(tenant, 'entity_id=high&operation=read');
    const [theirs] = await found(tenant, 'entity_id=low&operation=read');
    assert.notEqual(mine?.['key_id'], theirs?.['key_id']);
    const cases: Readonly<Record<string, readonly string[]>> = {
      [`key_id=${theirs?.['key_id']}&entity_type=token`]: ['read *', 'read low'],
      [`actor_id=${theirs?.['actor_id']}&result=failed`]: ['read *'],
      [`actor_id=${mine?.['actor_id']}&entity_type=token`]: [
        'create high',
        'create low',
        'delete low',
        'read high',
      ],
      'operation=delete': ['delete low'],
      'operation=delete&container=/GENERAL/low/': ['delete low'],
      'container=/pci/high/&entity_type=token': ['create high', 'read high'],
      'container=/pci/': [],
      'trace_id=checkout-17&entity_type=token': ['read high'],
      'trace_id=checkout-1': [],
      'address=203.0.113.7&shown=revealed': ['read high'],
      'address=198.51.100.66': [],
      'address=10.0.0.2': [],
      'session_id=none': [],
      [`actor_id=${mine?.['actor_id']}&key_id=${theirs?.['key_id']}`]: [],
    };
    for (const [query, expected] of Object.entries(cases)) {
      assert.deepEqual(namesOf(await found(tenant, query)), expected, query);
    }
  });

  test('200: a session names itself, the application that created it, and its key', async () => {
    const tenant = await tenants();
    const publicKey = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const { body: session } = await tenant.send('POST', '/sessions', { key: publicKey });
    const authorize = { nonce: session.nonce, permissions: ['token:create'] };
    await tenant.send('POST', '/sessions/authorize', { body: authorize });
    const body = { id: 'made', type: 'token', data: 'x' };
    await tenant.send('POST', '/tokens', { key: session.session_key, body });
    const [made] = await found(tenant, 'entity_id=made');
    const [opened] = await found(tenant, 'entity_type=session&operation=create');
    assert.equal(made?.['session_id'], opened?.['entity_id']);
    assert.equal(made?.['actor_id'], opened?.['entity_id']);
    assert.equal(made?.['application_id'], opened?.['actor_id']);
    assert.notEqual(made?.['key_id'], opened?.['key_id']);
    const bySession = await found(tenant, `session_id=${made?.['session_id']}`);
    assert.deepEqual(namesOf(bySession), ['create made']);
  });

  test('200: a cursor goes on within its filter, and belongs to no other', async () => {
    const tenant = await traces();
    const [mine] = await found(tenant, 'entity_id=high&operation=read');
    const query = `key_id=${mine?.['key_id']}&entity_type=token`;
    const all = await found(tenant, query);
    const walked: Entry[] = [];
    for (let start = ''; ; ) {
      const page = await tenant.send('GET', `/logs?${query}&size=1${start}`, {
        key: tenant.managementKey,
      });
      walked.push(...page.body.data);
      const { next } = page.body.pagination;
      if (next === undefined) break;
      start = `&start=${encodeURIComponent(next)}`;
      assert.equal((await list(tenant, `operation=read${start}`)).status, 400);
    }
    assert.deepEqual(walked, all);
  });

  test('400: an unknown filter, result, container and time zone are named', async () => {
    const tenant = await tenants();
    for (const [query, name] of [
      ['actor=x', 'actor'],
      ['result=ok', 'result'],
      ['container=pci', 'container'],
      ['start_date=2026-11-01T00:00:00%20CET', 'start_date'],
      ['end_date=2026-11-01T00:00:00%2B99:00', 'end_date'],
    ] as const) {
      const { status, body } = await list(tenant, query);
      assert.equal(status, 400, query);
      assert.deepEqual(Object.keys(body.errors), [name], query);
    }
  });

  test('a trace id that may be a card number is not taken, and no other header reaches the log', async () => {
    const tenant = await tenants();
    const refused = ['4242424242424242', 'order-4242-4242-4242-4242', 'a b', 'x'.repeat(101)];
    for (const sent of refused) {
      const headers = {
        'svc-trace-id': sent,
        'user-agent': `x/${'1'.repeat(400)} ${'y'.repeat(9000)}`,
      };
      const { headers: received } = await tenant.send('GET', '/tokens/absent', { headers });
      assert.notEqual(received.get('svc-trace-id'), sent);
    }
    const text = JSON.stringify(await tenant.rows('logs'));
    for (const sent of [...refused, '4242', 'yyy', '111111']) assert.ok(!text.includes(sent), sent);
  });
});
