/** No two values that are sealed share a nonce, whatever was sealed, by whom and under which key. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keyVersionOf } from '../../src/keys/envelope.ts';
import { readStored } from '../../src/keys/root/wrapped.ts';
import { type SqlValue, shapes } from '../../src/store/tables.ts';
import { onBothEngines } from '../support/engines.ts';
import { linesSent } from '../support/lines.ts';
import { createProxy, sendProxy } from '../support/proxies.ts';
import { createReactor, invoker, sendReactor } from '../support/reactors.ts';
import { rowsOf } from '../support/rows.ts';
import { newTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';
import { createWebhook } from '../support/webhooks.ts';

/** Of a sealed value: the format version and the key version come before it (docs/crypto.md). */
const nonceAt = { from: 5, to: 29 };

onBothEngines('sealed values', (engine) => {
  test('have a nonce each, in every column of every table that holds one', async (t) => {
    const vault = await startVault(t, engine);
    for (const tenant of [await newTenant(vault), await newTenant(vault)]) {
      const permissions = ['token-intent:create'];
      const key = await tenant.application({ permissions });
      for (const id of ['first', 'second']) {
        const headers = { 'svc-idempotency-key': id };
        const body = { type: 'token', data: 'the same' };
        await tenant.send('POST', '/tokens', { body: { ...body, id }, headers });
        await tenant.send('POST', '/token-intents', { key, body });
      }
      const proxy = await createProxy(tenant);
      await sendProxy(tenant, 'PATCH', `/${proxy.id}`, { body: { timeout: 1 } });
      await createWebhook(tenant);
      await tenant.token({ type: 'token', data: 'with an event' });
      await tenant.send('POST', '/keys', { key: tenant.managementKey });
      const reactor = await createReactor(tenant);
      await sendReactor(tenant, 'PATCH', `/${reactor.id}`, { body: { name: 'n' } });
      const calling = { key: await invoker(tenant), body: { args: { a: 'the same' } } };
      await tenant.send('POST', `/reactors/${reactor.id}/react-async`, calling);
      await vault.running.vault.reactorRuns?.look();
      await vault.running.vault.reactorRuns?.settled();
      const line = { type: 'token', data: 'the same' };
      await tenant.send('POST', '/tokens/bulk', linesSent(Array.from({ length: 500 }, () => line)));
    }
    const nonces: string[] = [];
    const tables = new Set<string>();
    for (const { name, columns, kinds } of Object.values(shapes)) {
      const sealedColumns = columns.filter((_, index) => kinds[index] === 'bytes');
      for (const row of await rowsOf(engine, vault.place, name)) {
        for (const column of sealedColumns) {
          const sealed = (row as unknown as Record<string, SqlValue>)[column];
          assert.ok(sealed instanceof Uint8Array, column);
          const stored = readStored(sealed);
          assert.ok(stored && keyVersionOf(stored.sealed) !== undefined, column);
          nonces.push(
            Buffer.from(stored.sealed.subarray(nonceAt.from, nonceAt.to)).toString('hex'),
          );
          // A wrapped key begins with its nonce.
          if (stored.header) nonces.push(Buffer.from(stored.header.blob).toString('hex', 0, 24));
          tables.add(name);
        }
      }
    }
    assert.deepEqual([...tables].sort(), [
      'client_keys',
      'events',
      'proxies',
      'reactor_runs',
      'reactors',
      'replies',
      'tenants',
      'token_intents',
      'tokens',
      'vault_keys',
      'webhooks',
    ]);
    assert.ok(nonces.length > 1000);
    assert.equal(new Set(nonces).size, nonces.length);
  });
});
