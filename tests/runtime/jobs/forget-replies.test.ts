/** Answers kept under idempotency keys: gone after a day, and of data no more than is left of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { batchMin } from '../../../src/runtime/jobs/pace.ts';
import { onBothEngines } from '../../support/engines.ts';
import { runJob } from '../../support/jobs.ts';
import { withoutUuids } from '../../support/scan.ts';
import { type TestTenant, tenantsOf } from '../../support/tenant.ts';
import { visa } from '../../support/values.ts';

const minute = 60_000;
const hour = 60 * minute;
const { cvc: _cvc, ...kept } = visa;

const under = (key: string) => ({ headers: { 'svc-idempotency-key': key } });

async function onlyReply(tenant: TestTenant) {
  const [row, ...others] = await tenant.rows('replies');
  assert.ok(row);
  assert.deepEqual(others, []);
  return row;
}

onBothEngines('The job that forgets stored responses', (engine) => {
  const tenants = tenantsOf(engine);

  test('removes them after a day, in batches with an entry each', async () => {
    const tenant = await tenants();
    const count = batchMin + 1;
    const body = { type: 'token', data: 1 };
    const made = Array.from({ length: count }, (_, index) =>
      tenant.send('POST', '/tokens', { body, ...under(`k-${index}`) }),
    );
    await Promise.all(made);
    tenant.vault.clock.advance(24 * hour - minute);
    assert.equal(await runJob(tenant.vault, 'forget replies'), 0);
    tenant.vault.clock.advance(10 * minute);
    assert.equal(await runJob(tenant.vault, 'forget replies'), count);
    assert.deepEqual(await tenant.rows('replies'), []);
    assert.deepEqual(await tenant.logged('idempotency_key'), ['expire', 'expire']);
    const [entry] = (await tenant.rows('logs')).filter(
      ({ entity_type }) => entity_type === 'idempotency_key',
    );
    assert.deepEqual([entry?.message, entry?.entity_id], ['Stored responses expired', '*']);
  });

  test('takes a card code out of them when its time is over', async () => {
    const tenant = await tenants();
    const sent = { body: { type: 'card', data: visa }, ...under('k') };
    const first = await tenant.send('POST', '/tokens', sent);
    const before = await onlyReply(tenant);
    tenant.vault.clock.advance(hour - minute);
    assert.equal((await tenant.send('POST', '/tokens', sent)).text, first.text);
    assert.equal(await runJob(tenant.vault, 'forget replies'), 0);
    tenant.vault.clock.advance(minute + 1);
    const faded = await tenant.send('POST', '/tokens', sent);
    assert.deepEqual([faded.status, faded.body], [201, { ...first.body, data: kept }]);
    tenant.vault.clock.advance(10 * minute);
    assert.equal(await runJob(tenant.vault, 'forget replies'), 1);
    const after = await onlyReply(tenant);
    assert.deepEqual([after.version, after.created_at], [2, before.created_at]);
    assert.equal(after.next_expiry_at, before.created_at + 24 * hour);
    assert.ok(after.reply.length < before.reply.length);
    assert.equal((await tenant.send('POST', '/tokens', sent)).text, faded.text);
    assert.equal(await runJob(tenant.vault, 'forget replies'), 0);
  });

  test('takes the contents of a token out of them when the token expires', async () => {
    const tenant = await tenants();
    const expires_at = new Date(tenant.vault.clock.now() + hour / 2).toISOString();
    const body = { type: 'card', data: visa, metadata: { a: 'b' }, expires_at };
    const first = await tenant.send('POST', '/tokens', { body, ...under('k') });
    const patch = { body: { data: { expiration_year: 2033 } }, ...under('k') };
    await tenant.send('PATCH', `/tokens/${first.body.id}`, patch);
    tenant.vault.clock.advance(hour / 2 + 1);
    const faded = await tenant.send('POST', '/tokens', { body, ...under('k') });
    assert.equal(faded.status, 201);
    const { id, fingerprint } = first.body;
    assert.deepEqual([faded.body.id, faded.body.fingerprint], [id, fingerprint]);
    const repatched = await tenant.send('PATCH', `/tokens/${id}`, patch);
    for (const shown of [faded, repatched]) {
      assert.doesNotMatch(withoutUuids(shown.text), /4242|2033|"b"/);
    }
    tenant.vault.clock.advance(10 * minute);
    assert.equal(await runJob(tenant.vault, 'forget replies'), 2);
    assert.equal((await tenant.send('POST', '/tokens', { body, ...under('k') })).text, faded.text);
  });
});
