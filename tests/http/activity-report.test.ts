/** GET /tenants/self/reports/activity: the vault's own figures of what callers did. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CountedActivity, createActivityCounter } from '../../src/access/activity/counting.ts';
import {
  addFigures,
  applicationsMax,
  type Figures,
  latencyWithin,
  noFigures,
  otherApplications,
} from '../../src/access/activity/figures.ts';
import { recordActivity, rings } from '../../src/access/activity/recording.ts';
import { day, hour, instantAfter, minute, parseInstant } from '../../src/base/clock.ts';
import { noteBackup } from '../../src/runtime/last-backup.ts';
import { onBothEngines } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import { newTenant as newTenantOf, type TestTenant, tenantsOf } from '../support/tenant.ts';
import { createStillClock, startVault } from '../support/vault.ts';

const number = '4242424242424242';

const readAs = async (tenant: TestTenant, key: string, period = 'hour') =>
  tenant.send('GET', `/tenants/self/reports/activity?period=${period}`, { key });

async function read(tenant: TestTenant, period = 'hour') {
  const { status, body, text } = await readAs(tenant, tenant.managementKey, period);
  assert.equal(status, 200, text);
  return body;
}

const sum = (points: readonly Record<string, number>[], name: string) =>
  points.reduce((total, point) => total + (point[name] ?? 0), 0);

onBothEngines('the activity report', (engine) => {
  const newTenant = tenantsOf(engine, { clock: createStillClock() });
  const record = (tenant: TestTenant) => runJob(tenant.vault, 'record activity');
  const idOf = async (tenant: TestTenant, key: string): Promise<string> =>
    (await tenant.send('GET', '/applications/key', { key })).body.id;

  /** As if callers had done that many requests in the minute. */
  const recordRequests = async (tenant: TestTenant, counted: readonly CountedActivity[]) => {
    const activity = createActivityCounter(tenant.vault.clock);
    activity.add(counted);
    await recordActivity({ ...tenant.vault.running.vault, activity });
    assert.deepEqual(activity.take(), []);
  };

  test('GET 200: requests, refusals, and revealed values by application, none of another tenant', async () => {
    const tenant = await newTenant();
    const other = await newTenant();
    await tenant.token({ id: `card-${tenant.id}`, type: 'card_number', data: number });
    await record(tenant);
    const before = await read(tenant);
    const path = `/tokens/card-${tenant.id}`;
    for (let times = 0; times < 3; times++) await tenant.send('GET', path);
    const weak = await tenant.application({ permissions: ['token:create'], rules: [] });
    for (let times = 0; times < 2; times++) {
      assert.equal((await tenant.send('GET', path, { key: weak })).status, 403);
    }
    await record(tenant);
    const after = await read(tenant);
    const added = (name: string) => sum(after.points, name) - sum(before.points, name);
    assert.equal(added('revealed'), 3);
    assert.equal(added('refused'), 2);
    // Those above, the report before, and the creation of the application.
    assert.equal(added('requests'), 7);
    assert.equal(added('failed'), 0);
    assert.deepEqual(after.revealed_by_application, { [await idOf(tenant, tenant.key)]: 3 });
    assert.deepEqual([after.points.length, after.step_seconds], [60, 60]);
    assert.ok(after.points.at(-1).latency_ms.p95 >= after.points.at(-1).latency_ms.median);
    assert.deepEqual((await read(other)).revealed_by_application, {});
  });

  test('GET 200: what several servers count at the same time adds up', async () => {
    const tenant = await newTenant();
    const { vault } = tenant.vault.running;
    const at = parseInstant(Math.floor(tenant.vault.clock.now() / minute) * minute);
    const servers = Array.from({ length: 4 }, () => {
      const activity = createActivityCounter(tenant.vault.clock);
      activity.add([counted(tenant, at, { requests: 10, revealed: { one: 1 } })]);
      return activity;
    });
    // A server that is not fast enough keeps what it has counted, and tries again.
    for (let round = 0; round < servers.length; round++) {
      await Promise.all(servers.map((activity) => recordActivity({ ...vault, activity })));
    }
    const report = await read(tenant);
    assert.equal(sum(report.points, 'requests'), 40);
    assert.equal(report.revealed_by_application.one, 4);
  });

  test('GET 200: a month is the sum of its hours, and older spans are not shown', async () => {
    const tenant = await newTenant();
    const now = tenant.vault.clock.now();
    const ages = [0, hour, day, 2 * day, 29 * day, 30 * day, 31 * day + hour];
    const spans = ages.map((age) => {
      const at = parseInstant(Math.floor((now - age) / hour) * hour);
      return counted(tenant, at, { requests: 1, latency: [0, 0, 1] });
    });
    await recordRequests(tenant, spans);
    const month = await read(tenant, 'month');
    assert.equal(sum(month.points, 'requests'), 5);
    assert.deepEqual([month.points.length, month.step_seconds], [30, 86_400]);
    const lastDay = await read(tenant, 'day');
    assert.equal(sum(lastDay.points, 'requests'), 2);
    assert.deepEqual(lastDay.points.at(-1).latency_ms, { median: 5, p95: 5 });
    assert.deepEqual(lastDay.points[0].latency_ms, { median: null, p95: null });
  });

  test('a tenant has the same number of rows however long it is used', async () => {
    const tenant = await newTenant();
    const begun = parseInstant(Math.floor(tenant.vault.clock.now() / hour) * hour);
    const hours = Array.from({ length: 800 }, (_, at) =>
      counted(tenant, instantAfter(begun, at * hour), { requests: 1 }),
    );
    for (let at = 0; at < hours.length; at += 100) {
      await recordRequests(tenant, hours.slice(at, at + 100));
    }
    const rows = await tenant.rows('activity');
    assert.ok(rows.length <= rings.minute.slots + rings.hour.slots, String(rows.length));
    const shown = new Set(rows.filter(({ span }) => span === 'hour').map((row) => row.started_at));
    assert.equal(shown.size, rings.hour.slots);
    // A server that records late takes no place of what came later.
    await recordRequests(tenant, [counted(tenant, begun, { requests: 1 })]);
    assert.ok((await tenant.rows('activity')).every(({ started_at }) => started_at > begun));
  });

  test('GET 200: since when the log is signed, and when the vault was last backed up', async () => {
    const tenant = await newTenant();
    assert.equal((await read(tenant)).log.signed_since, null);
    await runJob(tenant.vault, 'sign log checkpoints');
    const signed = (await read(tenant)).log;
    assert.ok(signed.signed_since !== null && signed.signed_at === signed.signed_since);
    assert.equal((await read(tenant)).last_backup_at, null);
    const created_at = '2026-01-02T03:04:05.000Z';
    noteBackup(tenant.vault.place.dataDir, { created_at, directory: '/backups' });
    assert.equal(Date.parse((await read(tenant)).last_backup_at), Date.parse(created_at));
  });

  test('figures that were altered in the database count as nothing', async () => {
    const tenant = await newTenant();
    const { store } = tenant.vault.running.vault;
    const { managementKey } = tenant;
    await record(tenant);
    for (const figures of ['no JSON', '[]', '{"requests":-1,"latency":"x","revealed":[1e300]}']) {
      for (const { revision, ...row } of await tenant.rows('activity')) {
        const amended = { ...row, figures, revision: revision + 1, was_revision: revision };
        await store.record({ amend: { activity: [amended] } });
      }
      assert.equal((await readAs(tenant, managementKey)).status, 200);
      assert.equal(sum((await read(tenant)).points, 'requests'), 0);
    }
  });

  test('GET 403: without report:read', async () => {
    const tenant = await newTenant();
    const key = await tenant.application({ type: 'management', permissions: ['log:read'] });
    assert.equal((await readAs(tenant, key)).status, 403);
    assert.equal((await readAs(tenant, tenant.key)).status, 403);
  });

  test('GET 400: for a period that does not exist', async () => {
    const tenant = await newTenant();
    assert.equal((await readAs(tenant, tenant.managementKey, 'year')).status, 400);
  });

  test('a deleted tenant leaves no figures', async () => {
    const tenant = await newTenant();
    await tenant.send('DELETE', '/tenants/self', { key: tenant.managementKey });
    await record(tenant);
    while ((await runJob(tenant.vault, 'remove deleted tenants')) > 0);
    assert.deepEqual(await tenant.rows('activity'), []);
  });

  test('what threads have counted is recorded when the server stops', async (t) => {
    const environment = { STRONGROOM_THREADS: '2' };
    const clock = createStillClock();
    const first = await startVault(t, engine, { clock, environment });
    const tenant = await newTenantOf(first);
    for (let times = 0; times < 5; times++) await tenant.send('GET', '/tokens?size=1');
    await first.stop();
    const again = await startVault(t, engine, { clock, place: first.place });
    const key = tenant.managementKey;
    const { body } = await again.send('GET', '/tenants/self/reports/activity', { key });
    assert.ok(sum(body.points, 'requests') >= 5);
  });
});

function counted({ id }: TestTenant, at: CountedActivity['minute'], figures: Partial<Figures>) {
  return { tenant_id: id, minute: at, figures: { ...noFigures, ...figures } };
}

test('applications beyond a number of them are counted together', () => {
  const all = Array.from({ length: applicationsMax + 5 }, (_, at) => ({
    ...noFigures,
    revealed: { [`application ${at}`]: 2 },
  }));
  const { revealed } = all.reduce(addFigures, noFigures);
  assert.equal(Object.keys(revealed).length, applicationsMax + 1);
  assert.equal(revealed[otherApplications], 10);
});

test('a latency is the upper bound of the class within which a share of the requests lies', () => {
  const figures = { ...noFigures, latency: [50, 40, 5, 0, 5] };
  assert.equal(latencyWithin(figures, 0.5), 1);
  assert.equal(latencyWithin(figures, 0.95), 5);
  assert.equal(latencyWithin(figures, 1), 20);
  assert.equal(latencyWithin(noFigures, 0.5), undefined);
});
