/** GET /logs/checkpoint. */
import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { test } from 'node:test';
import { signedEveryMs, tracesMax } from '../../src/audit/checkpoints.ts';
import { systemEntry } from '../../src/rules/log-entries.ts';
import { engineOf, onBothEngines } from '../support/engines.ts';
import { signCheckpoints, verifyPlace } from '../support/logs.ts';
import { newTenant, type TestTenant, tenantsOf, untilUsed } from '../support/tenant.ts';
import { createStillClock, managementKey, startVault } from '../support/vault.ts';

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

const ask = async (tenant: TestTenant) => {
  const { status, body } = await tenant.send('GET', path, { key: tenant.managementKey });
  assert.equal(status, 200);
  return { seq: Number(body.seq), statement: String(body.statement) };
};

/** The entries of a tenant that a checkpoint says nothing of. */
async function uncovered(tenant: TestTenant, statement: string): Promise<string[]> {
  const heads = new Map<string, number>(JSON.parse(statement).heads);
  const rows = await tenant.rows('logs');
  return rows
    .filter((row) => row.seq > (heads.get(row.stream_id) ?? 0))
    .map(({ entity_type, operation }) => `${entity_type} ${operation}`);
}

onBothEngines('GET /logs/checkpoint, asked again', (engine) => {
  const tenants = tenantsOf(engine, { clock: createStillClock() });

  test('covers what was committed a moment ago, and is signed once a second at most', async () => {
    const tenant = await tenants();
    const { clock } = tenant.vault;
    await tenant.token({ type: 'token', data: 'x' });
    await untilUsed(tenant, tenant.key);
    const first = await ask(tenant);
    assert.deepEqual(await uncovered(tenant, first.statement), ['log_checkpoint create']);
    await tenant.token({ type: 'token', data: 'y' });
    assert.deepEqual(await ask(tenant), first);
    clock.advance(signedEveryMs - 1);
    assert.deepEqual(await ask(tenant), first);
    clock.advance(1);
    const second = await ask(tenant);
    assert.equal(second.seq, first.seq + 1);
    assert.deepEqual(await uncovered(tenant, second.statement), ['log_checkpoint create']);
  });

  test('is the newest where nothing was logged but that checkpoints were signed and read', async () => {
    const tenant = await tenants();
    const first = await ask(tenant);
    for (let again = 0; again < 5; again += 1) {
      tenant.vault.clock.advance(signedEveryMs);
      assert.deepEqual(await ask(tenant), first);
      assert.equal(await signCheckpoints(tenant.vault), 0);
    }
    assert.equal((await tenant.rows('checkpoints')).length, 1);
    // A refusal is no trace of a checkpoint, though it is about one.
    assert.equal((await tenant.send('GET', path)).status, 403);
    tenant.vault.clock.advance(signedEveryMs);
    assert.equal((await ask(tenant)).seq, first.seq + 1);
  });

  test('several who ask two servers at once get the same one', async (t) => {
    const clock = createStillClock();
    const one = await startVault(t, engine, { clock });
    const two = await startVault(t, engine, { clock, place: one.place });
    for (let seq = 1; seq <= 3; seq += 1) {
      await one.application();
      const answers = await Promise.all(
        [one, two, one, two, one, two].map(({ send }) => send('GET', path, { key: managementKey })),
      );
      assert.deepEqual(new Set(answers.map(({ body }) => body.seq)), new Set([seq]));
      assert.equal(new Set(answers.map(({ body }) => body.statement)).size, 1);
      clock.advance(signedEveryMs);
    }
    assert.deepEqual((await verifyPlace(one.place)).findings, []);
  });

  test('a checkpoint that somebody else put there is not given out', async () => {
    const tenant = await tenants();
    const first = await ask(tenant);
    const statement = first.statement.replace('"seq":1', '"seq":7');
    await engine.run(
      tenant.vault.place,
      `update checkpoints set statement = '${statement}' where tenant_id = '${tenant.id}'`,
    );
    const second = await ask(tenant);
    assert.equal(second.seq, 2);
    assert.notEqual(second.statement, statement);
  });
});

test(`${tracesMax} traces of checkpoints are not worth another, one more is`, async (t) => {
  const clock = createStillClock();
  const vault = await startVault(t, engineOf('sqlite'), { clock });
  const { store } = vault.running.vault;
  const tenant = await newTenant(vault);
  const first = await ask(tenant);
  const fact = { entity: 'log_checkpoint', id: '1', operation: 'read' } as const;
  const trace = systemEntry({ ...fact, tenant: tenant.id, at: clock.now() });
  // The first left one, and the two that follow leave one each.
  await store.commit({ entries: [trace, ...Array(tracesMax - 3).fill(trace)] });
  clock.advance(signedEveryMs);
  assert.equal((await ask(tenant)).seq, first.seq);
  assert.equal((await ask(tenant)).seq, first.seq);
  assert.equal((await ask(tenant)).seq, first.seq + 1);
});
