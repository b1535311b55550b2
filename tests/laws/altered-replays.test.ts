/**
 * A response that is given again believes no row that was altered outside the vault: what `altered-rows.test.ts` does
 * not say for each column of a row.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { equations, having, insertion } from '../support/sql.ts';
import { type Given, newTenant, type TestTenant, tenantsOf } from '../support/tenant.ts';
import { type Received, startVault, type TestVault } from '../support/vault.ts';

const secret = 'a secret value 71c3';
/** Not read with others. */
const largeSecret = `${secret} ${'x'.repeat(10_000)}`;
/** Longer than any row is remembered, and than equal refusals are counted together. */
const laterMs = 4000;

const under = (key: string) => ({ headers: { 'svc-idempotency-key': key } });

onBothEngines('a response given again, of a row that was altered outside the vault', (engine) => {
  const tenants = tenantsOf(engine);

  async function write(tenant: TestTenant, statement: string): Promise<void> {
    await engine.run(tenant.vault.place, statement);
    tenant.vault.clock.advance(laterMs);
  }

  const place = (tenant: TestTenant, id: string) =>
    having(engine, 'tokens', { tenant_id: tenant.id, token_id: id });

  async function rowOf(tenant: TestTenant, id: string) {
    const row = (await tenant.rows('tokens')).find(({ token_id }) => token_id === id);
    assert.ok(row);
    return row;
  }

  async function alertsOf(tenant: TestTenant): Promise<readonly string[]> {
    const alerts = (await tenant.rows('logs')).filter(({ message }) => message.includes('altered'));
    return alerts.map((entry) => `${entry.entity_type} ${entry.entity_id} ${entry.result}`);
  }

  interface Refused {
    readonly tenant: TestTenant;
    readonly row: string;
    readonly ask: () => Promise<Received>;
  }

  /** As reading the row is refused. */
  async function assertRefused({ tenant, row, ask }: Refused): Promise<void> {
    const before = await alertsOf(tenant);
    const answer = await ask();
    assert.equal(answer.status, 500);
    assert.equal(answer.body.type, 'urn:strongroom:problem:integrity');
    assert.equal(answer.text.includes(secret), false);
    assert.deepEqual(await alertsOf(tenant), [...before, `${row} denied`]);
  }

  /** A key that sees only what is in one container, and a token there that others have made. */
  async function reader(tenant: TestTenant, rule: Given = {}) {
    await tenant.token({ id: 'own', type: 'token', data: secret, containers: ['/low/'] });
    const key = await tenant.holder({ container: '/low/', ...rule });
    return (path: string, body: unknown) =>
      tenant.send('POST', path, { key, body, ...under('once') });
  }

  test('500: the container that a token had is set back', async () => {
    const tenant = await tenants();
    const send = await reader(tenant);
    const ask = () => send('/detokenize', { value: '{{ own }}' });
    const first = await ask();
    assert.equal(first.body.value, secret);
    assert.equal((await ask()).text, first.text);
    await tenant.send('PATCH', '/tokens/own', { body: { containers: ['/high/'] } });
    assert.equal((await ask()).status, 403);
    const setTo = (container: string) =>
      write(tenant, `update tokens set container = '${container}' where ${place(tenant, 'own')}`);
    await setTo('/low/');
    await assertRefused({ tenant, row: 'token own', ask });
    await setTo('/high/');
    assert.equal((await ask()).status, 403);
  });

  test('500: a row that was made up stands where the token was deleted', async () => {
    const tenant = await tenants();
    const send = await reader(tenant);
    const created = { id: 'made', type: 'token', data: secret, containers: ['/low/'] };
    const create = () => send('/tokens', created);
    const read = () => send('/detokenize', { value: '{{ own }}' });
    assert.deepEqual([(await create()).status, (await read()).status], [201, 200]);
    for (const [id, ask, gone] of [
      ['made', create, 201],
      ['own', read, 400],
    ] as const) {
      const row = await rowOf(tenant, id);
      await tenant.send('DELETE', `/tokens/${id}`);
      const left = await ask();
      assert.equal(left.status, gone);
      assert.equal(left.text.includes(secret), false);
      const junk = { ...row, data: Buffer.from('junk') };
      await write(tenant, insertion(engine, 'tokens', junk));
      await assertRefused({ tenant, row: `token ${id}`, ask });
    }
  });

  test('500: one of many tokens, be it small or large, and none is shown', async () => {
    const tenant = await tenants();
    const key = await tenant.holder({ container: '/low/' });
    const token = (id: string, data: string) => ({
      id,
      type: 'token',
      data,
      containers: ['/low/'],
    });
    const data = [secret, largeSecret, secret, largeSecret, secret, secret];
    const body = data.map((one, index) => token(`many-${index}`, one));
    const ask = () => tenant.send('POST', '/tokenize', { key, body, ...under('once') });
    const first = await ask();
    assert.equal(first.status, 200, first.text);
    assert.equal((await ask()).text, first.text);
    for (const id of ['many-0', 'many-1', 'many-5']) {
      const { search_indexes } = await rowOf(tenant, id);
      const update = (values: { readonly search_indexes: string | null }) =>
        `update tokens set ${equations(engine, 'tokens', values)} where ${place(tenant, id)}`;
      await write(tenant, update({ search_indexes: '["{{ data }}"]' }));
      await assertRefused({ tenant, row: `token ${id}`, ask });
      await write(tenant, update({ search_indexes }));
      assert.equal((await ask()).text, first.text);
    }
    await tenant.send('PATCH', '/tokens/many-3', { body: { containers: ['/high/'] } });
    await tenant.send('DELETE', '/tokens/many-4');
    const less = (await ask()).body;
    assert.deepEqual(
      less.map((one: Given) => one['data']),
      [secret, largeSecret, secret, undefined, undefined, secret],
    );
  });

  test('500: where another server gave the response first, with one alert for each request', async (t) => {
    const vault = await startVault(t, engine);
    const second = await startVault(t, engine, { place: vault.place, clock: vault.clock });
    const tenant = await newTenant(vault);
    const requests = [
      ['POST', '/tokens', { id: 'own', type: 'token', data: secret }],
      ['PATCH', '/tokens/own', { metadata: { a: 'b' } }],
      ['POST', '/detokenize', { value: '{{ own }}' }],
    ] as const;
    const sendTo = (server: TestVault, [method, path, body]: (typeof requests)[number]) =>
      server.send(method, path, { key: tenant.key, body, ...under('once') });
    for (const request of requests) assert.ok((await sendTo(vault, request)).status < 300);
    await write(tenant, `update tokens set metadata = null where ${place(tenant, 'own')}`);
    for (const request of requests) {
      tenant.vault.clock.advance(laterMs);
      await assertRefused({ tenant, row: 'token own', ask: () => sendTo(second, request) });
    }
  });
});
