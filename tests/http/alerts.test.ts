/** Alerts: what is unusual is in the log within seconds, and names the key. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { nextLook } from '../support/poll.ts';
import { environmentOf, runCommand } from '../support/process.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import { revealEverything } from '../support/vault.ts';
import { createWebhook, eventsOf, leastWebhook } from '../support/webhooks.ts';

const alertsOf = async (tenant: TestTenant) =>
  (await tenant.rows('logs')).filter(({ entity_type }) => entity_type === 'alert');

const kindsOf = async (tenant: TestTenant) =>
  (await alertsOf(tenant)).map(({ operation }) => operation).sort();

async function poll(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await nextLook();
}

onBothEngines('Alerts', (engine) => {
  const environment = { STRONGROOM_TRUSTED_PROXIES: '127.0.0.1' };
  const tenants = tenantsOf(engine, { environment });
  const from = (address: string) => ({ headers: { 'x-forwarded-for': address } });

  test('a new address of a server key: not the first one, and each only once', async () => {
    const tenant = await tenants();
    await tenant.token({ id: 'one', type: 'token', data: 'x' });
    const key = await tenant.application({ rules: [revealEverything] });
    const read = (address: string) => tenant.send('GET', '/tokens/one', { key, ...from(address) });
    await read('198.51.100.1');
    await poll(async () =>
      (await tenant.rows('alert_marks')).some(({ place }) => place === '198.51.100.1'),
    );
    assert.deepEqual(await kindsOf(tenant), []);
    await read('203.0.113.7');
    await poll(async () => (await kindsOf(tenant)).length === 1);
    const [alert] = await alertsOf(tenant);
    assert.equal(alert?.operation, 'new_address');
    assert.equal(alert?.origin, '203.0.113.7');
    assert.equal(alert?.entity_id, alert?.source?.key_id);
    for (const address of ['198.51.100.1', '203.0.113.7']) await read(address);
    assert.equal((await kindsOf(tenant)).length, 1);
  });

  test('50 refusals in a minute, and not 49', async () => {
    const tenant = await tenants();
    const refuse = () => tenant.send('GET', '/tokens/absent');
    for (let count = 0; count < 49; count++) await refuse();
    assert.deepEqual(await kindsOf(tenant), []);
    await refuse();
    await poll(async () => (await kindsOf(tenant)).includes('refusals'));
  });

  test('the use of a honey token, also where it is refused, and none by its removal', async () => {
    const tenant = await tenants();
    await tenant.token({ id: 'bait', type: 'token', data: 'x' });
    const words = ['token', 'honey', 'bait', '--tenant', tenant.id];
    const { code, stderr } = await runCommand(words, environmentOf(tenant.vault.place));
    assert.equal(code, 0, stderr);
    tenant.vault.clock.advance(3_000);
    const key = await tenant.holder({ container: '/nowhere/' });
    assert.equal((await tenant.send('GET', '/tokens/bait', { key })).status, 403);
    await poll(async () => (await kindsOf(tenant)).includes('honey_token'));
    const alert = (await alertsOf(tenant)).find(({ operation }) => operation === 'honey_token');
    assert.equal(alert?.entity_id, 'bait');
    assert.match(alert?.message ?? '', /read denied/);
  });

  test('a question about access to a honey token, which says that it exists', async () => {
    const tenant = await tenants();
    await tenant.token({ id: 'bait', type: 'token', data: 'x' });
    const words = ['token', 'honey', 'bait', '--tenant', tenant.id];
    const { code, stderr } = await runCommand(words, environmentOf(tenant.vault.place));
    assert.equal(code, 0, stderr);
    tenant.vault.clock.advance(3_000);
    const { body } = await tenant.send('GET', '/applications', { key: tenant.managementKey });
    const asked = { application_id: body.data[0].id, permission: 'token:read', token_id: 'bait' };
    const key = tenant.managementKey;
    assert.equal((await tenant.send('POST', '/access/explain', { key, body: asked })).status, 200);
    await poll(async () => (await kindsOf(tenant)).includes('honey_token'));
    const alert = (await alertsOf(tenant)).find(({ operation }) => operation === 'honey_token');
    assert.match(alert?.message ?? '', /explain success/);
    const named = (await tenant.rows('logs')).find(
      ({ entity_id, operation }) => entity_id === 'bait' && operation === 'explain',
    );
    assert.equal(named?.container, '/general/high/');
  });

  test('100 cards of one BIN, created or revealed in an hour by one key, and not 99', async () => {
    const tenant = await tenants();
    await tenant.setQuotas({ alert_bin: 4 });
    const card = { type: 'card', data: { number: '4242424242424242' } };
    const { body } = await tenant.token(card);
    await tenant.token(card);
    await tenant.token({ type: 'card', data: { number: '5555555555554444' } });
    await tenant.send('GET', `/tokens/${body.id}`);
    assert.equal((await tenant.send('GET', '/tokens/absent')).status, 404);
    assert.ok(!(await kindsOf(tenant)).includes('bin'));
    await tenant.send('GET', `/tokens/${body.id}`);
    await poll(async () => (await kindsOf(tenant)).includes('bin'));
    const alert = (await alertsOf(tenant)).find(({ operation }) => operation === 'bin');
    assert.doesNotMatch(JSON.stringify(alert), /424242/);
  });

  test('each is an event and a metric as well', async () => {
    const tenant = await tenants();
    await createWebhook(tenant, { ...leastWebhook, events: ['alert.export'] });
    tenant.vault.clock.advance(2000);
    await tenant.send('GET', '/tokens/export');
    await poll(async () => (await eventsOf(tenant)).some(({ type }) => type === 'alert.export'));
    const [event] = await eventsOf(tenant);
    const { alert } = (event?.body.data ?? {}) as { alert?: Record<string, string> };
    const [entry] = await alertsOf(tenant);
    assert.deepEqual(alert, {
      ...{ id: entry?.entity_id, detail: 'tokens', address: '127.0.0.1' },
      ...{ key_id: entry?.source?.key_id, actor_id: entry?.actor_id },
    });
    const { text } = await tenant.vault.send('GET', '/metrics');
    assert.match(text, /strongroom_alerts_total\{kind="export"\} [1-9]/);
  });

  test('an export, and far more reveals in an hour than before', async () => {
    const tenant = await tenants();
    await tenant.setQuotas({ alert_reveals: 5 });
    await tenant.token({ id: 'one', type: 'token', data: 'x' });
    await tenant.send('GET', '/tokens/export');
    await poll(async () => (await kindsOf(tenant)).includes('export'));
    for (let count = 0; count < 5; count++) await tenant.send('GET', '/tokens/one');
    await poll(async () => (await kindsOf(tenant)).includes('reveals'));
  });
});
