/** DELETE /tokens/{id}. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refusalWindowMs } from '../../src/audit/refusals.ts';
import { onBothEngines } from '../support/engines.ts';
import { newTenant, tenantsOf } from '../support/tenant.ts';
import { visa } from '../support/values.ts';

const request = { id: 'own', type: 'card', data: visa, search_indexes: ['{{ data.number }}'] };

onBothEngines('DELETE /tokens/{id}', (engine) => {
  const tenants = tenantsOf(engine);

  test('204: the token and its search terms are gone, its id is free', async () => {
    const tenant = await tenants();
    await tenant.token(request);
    const deleted = await tenant.send('DELETE', '/tokens/own');
    assert.equal(deleted.status, 204);
    assert.equal(deleted.text, '');
    const counts = await tenant.counts();
    assert.deepEqual([counts['tokens'], counts['search_terms']], [0, 0]);
    assert.deepEqual(await tenant.logged(), ['create', 'delete']);
    assert.equal((await tenant.send('GET', '/tokens/own')).status, 404);
    await tenant.token(request);
  });

  test('204: what clients send along has no effect', async () => {
    const tenant = await tenants();
    for (const sent of [
      { headers: { 'content-type': 'application/json' } },
      { body: '' },
      { body: { any: 'thing' } },
    ]) {
      await tenant.token(request);
      assert.equal((await tenant.send('DELETE', '/tokens/own', sent)).status, 204);
    }
  });

  test('403: without token:delete in the container; the token stays, the attempt is logged', async () => {
    const tenant = await tenants();
    await tenant.token(request);
    const elsewhere = await tenant.holder({ container: '/general/' });
    const reader = await tenant.holder({ permissions: ['token:read'] });
    for (const key of [elsewhere, reader]) {
      assert.equal((await tenant.send('DELETE', '/tokens/own', { key })).status, 403);
    }
    assert.equal((await tenant.counts())['tokens'], 1);
    assert.deepEqual(await tenant.logged(), ['create', 'delete denied', 'delete denied']);
  });

  test("404: a missing, an already deleted, and another tenant's token", async () => {
    const tenant = await tenants();
    const other = await newTenant(tenant.vault);
    await other.token(request);
    const headers = { 'svc-idempotency-key': 'k' };
    await tenant.token({ ...request, id: 'deleted' });
    await tenant.send('DELETE', '/tokens/deleted', { headers });
    for (const id of ['missing', 'own', 'deleted']) {
      assert.equal((await tenant.send('DELETE', `/tokens/${id}`, { headers })).status, 404);
      tenant.vault.clock.advance(refusalWindowMs);
    }
    const failed = (await tenant.logged()).filter((entry) => entry === 'delete failed');
    assert.equal(failed.length, 3);
    assert.equal((await other.send('GET', '/tokens/own')).status, 200);
  });

  test('of many deletions at once one succeeds, and a concurrent patch never brings it back', async () => {
    const tenant = await tenants();
    await tenant.token(request);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        index % 4 === 0
          ? tenant.send('PATCH', '/tokens/own', { body: { metadata: { k: `${index}` } } })
          : tenant.send('DELETE', '/tokens/own'),
      ),
    );
    assert.equal(answers.filter(({ status }) => status === 204).length, 1);
    assert.deepEqual(
      answers.filter(({ status }) => ![200, 204, 404].includes(status)),
      [],
    );
    assert.equal((await tenant.counts())['tokens'], 0);
    assert.equal((await tenant.logged()).filter((one) => one === 'delete').length, 1);
  });
});
