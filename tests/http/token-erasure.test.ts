/** GET /tokens/{id}/erasure. */
import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Container } from '../../src/base/container.ts';
import { VaultError } from '../../src/base/errors.ts';
import { type ApplicationId, newUuid } from '../../src/base/ids.ts';
import { pooledRandom } from '../../src/base/random.ts';
import { authenticated } from '../../src/rules/caller.ts';
import { policyOf } from '../../src/rules/policy.ts';
import { readErasure } from '../../src/tokens/erasure.ts';
import { onBothEngines } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import { runCommand } from '../support/process.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { newTenant, type TestTenant, tenantsOf } from '../support/tenant.ts';
import { visa } from '../support/values.ts';

const hour = 3_600_000;
const day = 24 * hour;
const request = { id: 'own', type: 'card', data: visa, containers: ['/pci/high/'] };

onBothEngines('GET /tokens/{id}/erasure', (engine) => {
  const tenants = tenantsOf(engine);
  const erasure = (tenant: TestTenant, id: string, key = tenant.key) =>
    tenant.send('GET', `/tokens/${id}/erasure`, { key });

  test('200: a deleted token has a receipt that its PEM key alone verifies, and the log has its entry', async () => {
    const tenant = await tenants();
    await tenant.token(request);
    await tenant.send('DELETE', '/tokens/own');
    const { status, body } = await erasure(tenant, 'own');
    assert.equal(status, 200);
    const key = createPublicKey(body.public_key_pem);
    const signature = Buffer.from(body.signature, 'base64');
    assert.equal(verify(null, Buffer.from(body.statement), key, signature), true);
    const statement = JSON.parse(body.statement);
    assert.deepEqual(
      [statement.tenant_id, statement.entity, statement.id, statement.operation],
      [tenant.id, 'token', 'own', 'delete'],
    );
    const { stream_id, seq, head_seq, head_hash } = body.log_entry;
    const entries = await tenant.rows('logs');
    const entry = entries.find((one) => one.stream_id === stream_id && one.seq === seq);
    assert.deepEqual([entry?.operation, entry?.entity_id], ['delete', 'own']);
    const head = entries.find((one) => one.stream_id === stream_id && one.seq === head_seq);
    assert.equal(head?.hash, head_hash);
    assert.equal(new Date(body.erased_at).getTime(), entry?.created_at);
    assert.deepEqual(
      body.keys.map(({ purpose, version, state }: never) => [purpose, version, state]),
      [['data', 1, 'active']],
    );
    assert.equal(body.root_key.source, 'file');
    assert.deepEqual(await tenant.logged(), ['create', 'delete', 'prove']);
  });

  test('200: an expired token has one once it is removed', async () => {
    const tenant = await tenants();
    const expires_at = new Date(tenant.vault.clock.now() + hour).toISOString();
    await tenant.token({ ...request, expires_at });
    tenant.vault.clock.advance(2 * hour);
    assert.equal((await erasure(tenant, 'own')).status, 404);
    await runJob(tenant.vault, 'expire tokens');
    const { status, body } = await erasure(tenant, 'own');
    assert.equal(status, 200);
    assert.equal(body.operation, 'expire');
    assert.equal(body.keys[0].version, 1);
  });

  test('200: stored responses and results are gone when nothing of that age is left', async () => {
    const tenant = await tenants();
    const headers = { 'svc-idempotency-key': 'k' };
    await tenant.send('POST', '/tokens', { body: request, headers });
    await tenant.send('DELETE', '/tokens/own');
    const before = (await erasure(tenant, 'own')).body;
    assert.equal(before.stored_responses.gone, false);
    assert.equal(
      Date.parse(before.stored_responses.gone_by),
      Date.parse(before.erased_at) + day + hour,
    );
    tenant.vault.clock.advance(2 * day + 2 * hour);
    const overdue = (await erasure(tenant, 'own')).body;
    assert.deepEqual([overdue.stored_responses.gone, overdue.results.gone], [false, true]);
    await runJob(tenant.vault, 'forget replies');
    assert.equal((await erasure(tenant, 'own')).body.stored_responses.gone, true);
  });

  test('200: the newest life of an id counts', async () => {
    const tenant = await tenants();
    await tenant.token(request);
    await tenant.send('DELETE', '/tokens/own');
    await tenant.token(request);
    assert.equal((await erasure(tenant, 'own')).status, 404);
    tenant.vault.clock.advance(hour);
    await tenant.send('DELETE', '/tokens/own');
    const { body } = await erasure(tenant, 'own');
    assert.ok(Date.parse(body.erased_at) >= tenant.vault.clock.now() - 1000);
  });

  test('404: callers that could not have deleted the token, and may not read the log, learn nothing', async () => {
    const tenant = await tenants();
    await tenant.token(request);
    await tenant.send('DELETE', '/tokens/own');
    const permissions = ['token:delete'];
    const inside = await tenant.holder({ container: '/pci/', permissions, transform: 'redact' });
    const outside = await tenant.holder({
      container: '/general/',
      permissions,
      transform: 'redact',
    });
    const reader = await tenant.holder({ permissions: ['token:read'] });
    assert.equal((await erasure(tenant, 'own', inside)).status, 200);
    assert.equal((await erasure(tenant, 'own', tenant.managementKey)).status, 200);
    const [never, gone] = [
      await erasure(tenant, 'never', outside),
      await erasure(tenant, 'own', outside),
    ];
    assert.deepEqual([never.status, gone.status], [404, 404]);
    assert.deepEqual(gone.body, never.body);
    assert.equal((await erasure(tenant, 'own', reader)).status, 403);
    assert.equal((await tenant.vault.send('GET', '/tokens/own/erasure')).status, 401);
  });

  test("404: alike for a living, an unknown and another tenant's token", async () => {
    const tenant = await tenants();
    const other = await newTenant(tenant.vault);
    await tenant.token({ ...request, id: 'living' });
    await other.token({ ...request, id: 'foreign' });
    await other.send('DELETE', '/tokens/foreign');
    const responses = await Promise.all(
      ['living', 'unknown', 'foreign'].map((id) => erasure(tenant, id)),
    );
    for (const { status } of responses) assert.equal(status, 404);
    assert.equal(new Set(responses.map(({ body }) => body.detail)).size, 1);
  });

  test('404: whether a token exists changes nothing that is read, and the log names a living one', async () => {
    const tenant = await tenants();
    await tenant.token({ ...request, id: 'living' });
    await tenant.token({ ...request, id: 'erased' });
    await tenant.send('DELETE', '/tokens/erased');
    const { vault: parts } = tenant.vault.running;
    const found = await parts.tenants.find(tenant.id);
    assert(found);
    const rules = [
      {
        description: 'own',
        priority: 1,
        container: '/own/' as Container,
        permissions: ['token:delete'] as const,
        transform: 'redact' as const,
      },
    ];
    const caller = authenticated({
      tenant: found,
      application: newUuid<ApplicationId>(pooledRandom()),
      key: undefined,
      session: undefined,
      kind: 'private',
      policy: policyOf({ permissions: [], rules }),
      origin: { address: '', traceId: '', dialect: 'SVC' },
    });
    const readsOf = async (id: string) => {
      const calls: string[] = [];
      const store = new Proxy(parts.store, {
        get: (target, name) => {
          const value: unknown = Reflect.get(target, name, target);
          if (typeof value !== 'function') return value;
          calls.push(String(name));
          return value.bind(target);
        },
      });
      await readErasure(
        { ...parts, store, keyMaxAgeMs: hour },
        caller,
        id,
      )(undefined).catch((error: unknown) => assert.ok(error instanceof VaultError));
      return new Set(calls);
    };
    const never = await readsOf('never');
    assert.deepEqual(await readsOf('living'), never);
    assert.deepEqual(await readsOf('erased'), never);
    assert.equal((await erasure(tenant, 'living')).status, 404);
    const named = (await tenant.rows('logs')).filter(
      ({ entity_id, operation, result }) =>
        entity_id === 'living' && operation === 'prove' && result === 'failed',
    );
    assert.equal(named.length, 1);
  });

  test('an entry that the vault did not write proves no erasure', async () => {
    const tenant = await tenants();
    await tenant.token(request);
    const [stored] = await tenant.rows('tokens');
    await tenant.send('DELETE', '/tokens/own');
    assert.ok(stored);
    const table = 'logs';
    await engine.run(
      tenant.vault.place,
      `update ${table} set proof = null where tenant_id = '${tenant.id}'`,
    );
    assert.equal((await erasure(tenant, 'own')).status, 404);
  });

  test('strongroom erasure verify accepts the receipt offline, and nothing that was altered', async (t) => {
    const tenant = await tenants();
    const other = await newTenant(tenant.vault);
    await tenant.token(request);
    await tenant.send('DELETE', '/tokens/own');
    const { body } = await erasure(tenant, 'own');
    const { body: foreign } = await other.send('GET', '/logs/checkpoint', {
      key: other.managementKey,
    });
    const directory = temporaryDirectory(t);
    const check = (name: string, receipt: object, ...words: string[]) => {
      const file = join(directory, name);
      writeFileSync(file, JSON.stringify(receipt));
      return runCommand(['erasure', 'verify', file, ...words], {});
    };
    const genuine = await check('genuine.json', body, '--public-key', body.public_key);
    assert.equal(genuine.code, 0, genuine.stderr);
    assert.match(genuine.stdout, /^The receipt is genuine\.\n {2}The token own was deleted/);
    assert.equal((await check('alone.json', body)).code, 0);
    const untrusted = await check('untrusted.json', body, '--public-key', foreign.public_key);
    assert.equal(untrusted.code, 3);
    const statement = body.statement.replace('"own"', '"other"');
    const { public_key_pem } = foreign;
    const altering = [{ statement }, { id: 'other' }, { public_key_pem }];
    for (const altered of [...altering.map((one) => ({ ...body, ...one })), foreign, {}]) {
      const { code, stdout } = await check('altered.json', altered, '--json');
      assert.equal(code, 3);
      assert.equal(JSON.parse(stdout).valid, false);
    }
  });
});
