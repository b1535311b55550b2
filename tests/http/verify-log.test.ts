/** GET /logs/verification. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { signedEveryMs } from '../../src/audit/checkpoints.ts';
import { day } from '../../src/base/clock.ts';
import { onBothEngines } from '../support/engines.ts';
import { alterNewestEntry, signCheckpoints, verifyPlace } from '../support/logs.ts';
import { nextLook } from '../support/poll.ts';
import { type TestTenant, tenantsOf, untilUsed } from '../support/tenant.ts';
import { createStillClock, startVault } from '../support/vault.ts';
import { createWebhook, eventsOf } from '../support/webhooks.ts';

const path = '/logs/verification';

onBothEngines('GET /logs/verification', (engine) => {
  const tenants = tenantsOf(engine, { clock: createStillClock() });

  const verify = async (tenant: TestTenant) => {
    const { status, body } = await tenant.send('GET', path, { key: tenant.managementKey });
    assert.equal(status, 200);
    return body;
  };

  /** Something happens, and the vault signs it. @returns when */
  const grow = async (tenant: TestTenant): Promise<string> => {
    const { vault } = tenant;
    vault.clock.advance(signedEveryMs);
    await tenant.token({ type: 'token', data: 'x' });
    await untilUsed(tenant, tenant.key);
    assert.ok((await signCheckpoints(vault)) > 0);
    return new Date(vault.clock.now()).toISOString();
  };

  const isAt = (found: string, time: string) => assert.equal(new Date(found).toISOString(), time);

  test('200: since when the log is intact, and until when it was verified', async () => {
    const tenant = await tenants();
    const nothing = await verify(tenant);
    assert.deepEqual(
      [nothing.intact_since, nothing.verified_until, nothing.checkpoint, nothing.findings],
      [null, null, null, []],
    );
    const first = await grow(tenant);
    const second = await grow(tenant);
    const found = await verify(tenant);
    isAt(found.intact_since, first);
    isAt(found.verified_until, second);
    assert.equal(found.checkpoint, found.newest_checkpoint);
    assert.deepEqual(found.findings, []);
    const third = await grow(tenant);
    const again = await verify(tenant);
    isAt(again.intact_since, first);
    isAt(again.verified_until, third);
    assert.equal(again.checkpoint, found.checkpoint + 1);
    assert.deepEqual(await verify(tenant), again, 'where nothing was signed, nothing changes');
    assert.ok((await tenant.logged('log_checkpoint')).includes('verify'));
  });

  test('a log that waits 30 days for a verification is a problem until it is verified', async () => {
    const tenant = await tenants();
    const key = tenant.managementKey;
    const waiting = async () => {
      const { body } = await tenant.send('GET', '/tenants/self/reports/problems', { key });
      return body.problems.filter(({ kind }: { kind: string }) => kind === 'unverified_log');
    };
    await grow(tenant);
    await verify(tenant);
    await grow(tenant);
    tenant.vault.clock.advance(30 * day);
    assert.deepEqual(await waiting(), []);
    tenant.vault.clock.advance(1);
    const [problem] = await waiting();
    assert.deepEqual(
      [problem.severity, problem.entity_type, problem.entity_id],
      ['warning', 'log_checkpoint', '2'],
    );
    await verify(tenant);
    assert.deepEqual(await waiting(), []);
  });

  test('200: what was altered since is found, and the log is intact only from there on', async () => {
    const tenant = await tenants();
    await createWebhook(tenant, { events: ['alert.altered_log'] });
    await grow(tenant);
    assert.deepEqual((await verify(tenant)).findings, []);
    const broken = await grow(tenant);
    await alterNewestEntry(engine, tenant);
    const found = await verify(tenant);
    const { checkpoint } = found;
    assert.deepEqual(
      found.findings.map(({ kind }: { kind: string }) => kind),
      ['edited'],
    );
    isAt(found.intact_since, broken);
    const { body } = await tenant.send('GET', '/logs?operation=verify&result=failed', {
      key: tenant.managementKey,
    });
    assert.equal(body.data.length, 1, 'the log says that it is not intact');
    const isAlert = ({ entity_type, operation }: { entity_type: string; operation: string }) =>
      entity_type === 'alert' && operation === 'altered_log';
    const alertsOf = async () => (await tenant.rows('logs')).filter(isAlert);
    while ((await alertsOf()).length === 0) await nextLook();
    const [alert] = await alertsOf();
    assert.equal(alert?.entity_id, String(checkpoint));
    assert.match(alert?.message ?? '', /the log is not as it was written: before checkpoint/);
    const events = (await eventsOf(tenant)).filter(({ type }) => type === 'alert.altered_log');
    assert.equal(events.length, 1);
    const isProblem = async () => {
      const { body: report } = await tenant.send('GET', '/tenants/self/reports/problems', {
        key: tenant.managementKey,
      });
      const found = report.problems.find(({ kind }: { kind: string }) => kind === 'altered_log');
      return found?.entity_id === String(checkpoint);
    };
    assert.ok(await isProblem());
    const mended = await grow(tenant);
    const later = await verify(tenant);
    assert.deepEqual(later.findings, []);
    isAt(later.intact_since, broken);
    isAt(later.verified_until, mended);
    assert.equal((await alertsOf()).length, 1, 'what is as it was written raises none');
    tenant.vault.clock.advance(29 * day);
    assert.ok(await isProblem());
    tenant.vault.clock.advance(2 * day);
    assert.ok(!(await isProblem()), 'after 30 days it is a matter of the log alone');
  });

  test('200: each entry is read once, and the command reads all of them again', async () => {
    const tenant = await tenants();
    await grow(tenant);
    await verify(tenant);
    await alterNewestEntry(engine, tenant);
    await grow(tenant);
    assert.deepEqual((await verify(tenant)).findings, []);
    const { findings } = await verifyPlace(tenant.vault.place);
    assert.ok(findings.some(({ tenant_id }) => tenant_id === tenant.id));
  });

  test('200: a long log is verified in portions', async () => {
    const tenant = await tenants();
    const key = tenant.managementKey;
    for (let count = 0; count < 205; count += 1) {
      tenant.vault.clock.advance(signedEveryMs);
      // A refusal is worth a checkpoint.
      await tenant.send('GET', '/logs/checkpoint');
      await tenant.send('GET', '/logs/checkpoint', { key });
    }
    const first = await verify(tenant);
    assert.equal(first.checkpoint, 200);
    assert.ok(first.newest_checkpoint > 200);
    const second = await verify(tenant);
    assert.equal(second.checkpoint, second.newest_checkpoint);
    assert.deepEqual([first.findings, second.findings], [[], []]);
  });

  test('200: the streams of several servers, and of one that starts again, are one log', async (t) => {
    const tenant = await tenants();
    const first = await grow(tenant);
    await verify(tenant);
    const { clock, place } = tenant.vault;
    const other = await startVault(t, engine, { clock, place });
    for (let count = 0; count < 3; count += 1) {
      const made = await other.send('POST', '/tokens', {
        key: tenant.key,
        body: { type: 'token', data: 'y' },
      });
      assert.equal(made.status, 201);
      await grow(tenant);
      const found = await verify(tenant);
      isAt(found.intact_since, first);
      assert.equal(found.checkpoint, found.newest_checkpoint);
      assert.deepEqual(found.findings, []);
    }
  });

  test('401 and 403: without a key, and without log:read', async () => {
    const tenant = await tenants();
    assert.equal((await tenant.vault.send('GET', path)).status, 401);
    assert.equal((await tenant.send('GET', path)).status, 403);
  });
});
