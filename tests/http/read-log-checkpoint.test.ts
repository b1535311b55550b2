/** GET /logs/checkpoint. */
import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { signCheckpoints } from '../support/logs.ts';
import { tenantsOf } from '../support/tenant.ts';

const path = '/logs/checkpoint';

onBothEngines('GET /logs/checkpoint', (engine) => {
  const tenants = tenantsOf(engine);

  test('200: the newest checkpoint, which its PEM key alone verifies', async () => {
    const tenant = await tenants();
    await tenant.token({ type: 'token', data: 'x' });
    await signCheckpoints(tenant.vault);
    const { status, body } = await tenant.send('GET', path, { key: tenant.managementKey });
    assert.equal(status, 200);
    const key = createPublicKey(body.public_key_pem);
    const signature = Buffer.from(body.signature, 'base64');
    assert.equal(verify(null, Buffer.from(body.statement), key, signature), true);
    assert.deepEqual(body.public_keys, [body.public_key]);
    const statement = JSON.parse(body.statement);
    assert.equal(statement.tenant_id, tenant.id);
    assert.equal(statement.seq, body.seq);
    assert.equal(new Date(body.created_at).getTime(), statement.created_at);
    const rows = await tenant.rows('logs');
    for (const [stream, seq, hash] of statement.heads) {
      const head = rows.find((row) => row.stream_id === stream && row.seq === seq);
      assert.equal(head?.hash, hash);
    }
    const logged = await tenant.logged('log_checkpoint');
    assert.deepEqual(new Set(logged), new Set(['create', 'read']));
  });

  test('200: where there is none yet, the first is signed for whoever asks, once', async () => {
    const tenant = await tenants();
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => tenant.send('GET', path, { key: tenant.managementKey })),
    );
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    assert.equal(new Set(answers.map(({ body }) => body.statement)).size, 1);
    assert.equal(answers[0]?.body.seq, 1);
    assert.equal((await tenant.rows('checkpoints')).length, 1);
  });

  test('401 and 403: without a key, and without log:read', async () => {
    const tenant = await tenants();
    assert.equal((await tenant.vault.send('GET', path)).status, 401);
    assert.equal((await tenant.send('GET', path)).status, 403);
    assert.equal((await tenant.rows('checkpoints')).length, 0);
  });
});
