/** Stored responses, which may hold a key that is shown once, before somebody who has the database. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { day, hour } from '../../src/base/clock.ts';
import { onBothEngines } from '../support/engines.ts';
import { newTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

const under = (key: string) => ({ 'svc-idempotency-key': key });

onBothEngines('a stored answer', (engine) => {
  test('is not opened by what the database says of its idempotency key', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const key = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const begin = (idempotencyKey: string) =>
      tenant.send('POST', '/sessions', { key, headers: under(idempotencyKey) });
    const visitor = randomUUID();
    const { body: session } = await begin(visitor);
    const [row] = await tenant.rows('replies');
    assert.ok(row);
    const stored = Object.values(row).filter((value) => typeof value === 'string');
    for (const text of stored) assert.ok(!text.includes(visitor));
    for (const guess of stored) {
      const { status, body } = await begin(guess);
      assert.ok(status === 400 || body.session_key !== session.session_key, guess);
    }
    assert.equal((await begin(visitor)).body.session_key, session.session_key);
  });

  test('is given no longer than for a day, though its row says that it is younger', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const create = () =>
      tenant.send('POST', '/applications', {
        key: tenant.managementKey,
        headers: under('order'),
        body: { name: 'one', type: 'private', permissions: ['token:create'] },
      });
    assert.equal((await create()).status, 201);
    vault.clock.advance(day - hour);
    await engine.run(vault.place, `update replies set created_at = created_at + ${day}`);
    const again = await create();
    assert.equal(again.status, 500, again.text);
    assert.equal(again.body.type, 'urn:strongroom:problem:integrity');
    assert.equal(again.text.includes('key_test'), false);
  });
});
