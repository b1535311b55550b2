/** Metrics of several threads: sums of what was counted, and of what waits only while a thread is there. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMetrics } from '../../src/base/telemetry/metrics.ts';
import { addCounts, createThreadMetrics } from '../../src/base/telemetry/thread-metrics.ts';

const state = (changes: number, oldestMs: number) => () => ({
  backlog: { changes, oldestMs },
  pool: { busy: 1, idle: 2, waiting: 3 },
});

const group = { changes: 4, conflicts: 1, failures: 1, waitedMs: 2, tookMs: 30 };

const valueIn = (text: string, series: string): number | undefined => {
  const line = text.split('\n').find((one) => one.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.split(' ').at(-1));
};

test('counts and what waits are added up; of the oldest the longest wait is shown', async () => {
  const metrics = createMetrics();
  const other = createThreadMetrics();
  metrics.watchStore(state(3, 500));
  other.watchStore(state(4, 2_000));
  for (const one of [metrics, other]) {
    one.group(group);
    one.count('authentication_failures', 5);
  }
  metrics.add(async () => [await other.counts()]);
  const { text } = await metrics.expose();
  assert.equal(valueIn(text, 'strongroom_queue_changes'), 7);
  assert.equal(valueIn(text, 'strongroom_queue_oldest_seconds'), 2);
  assert.equal(valueIn(text, 'strongroom_pool_waiting'), 6);
  assert.equal(valueIn(text, 'strongroom_authentication_failures_total'), 10);
  for (const [outcome, count] of Object.entries({ committed: 4, conflict: 2, failed: 2 })) {
    assert.equal(valueIn(text, `strongroom_commits_total{outcome="${outcome}"}`), count, outcome);
  }
  assert.equal(valueIn(text, 'strongroom_commit_duration_seconds_sum'), 0.06);
  assert.equal(valueIn(text, 'strongroom_commit_group_changes_bucket{le="2"}'), 0);
  assert.equal(valueIn(text, 'strongroom_commit_group_changes_bucket{le="4"}'), 2);
});

test('of a thread that ended its counts stay, and nothing waits in it any more', async () => {
  const metrics = createMetrics();
  const gone = createThreadMetrics();
  gone.watchStore(state(9, 9_000));
  gone.group(group);
  const ended = await addCounts([await gone.counts()]);
  metrics.watchStore(state(1, 0));
  metrics.add(async () => [ended]);
  const { text } = await metrics.expose();
  assert.equal(valueIn(text, 'strongroom_commits_total{outcome="committed"}'), 2);
  assert.equal(valueIn(text, 'strongroom_queue_changes'), 1);
  assert.equal(valueIn(text, 'strongroom_queue_oldest_seconds'), 0);
});

test('what is not known is not shown, and comes back when it is', async () => {
  const metrics = createMetrics();
  let value: number | undefined = 7;
  metrics.watch('disk_free_bytes', () => value);
  const shown = async () => valueIn((await metrics.expose()).text, 'strongroom_disk_free_bytes');
  assert.equal(await shown(), 7);
  value = undefined;
  assert.equal(await shown(), undefined);
  value = 0;
  assert.equal(await shown(), 0);
});

test('of proxies, reactors and webhooks that come and go no more than 2,000 each are series of their own', async () => {
  const metrics = createThreadMetrics();
  for (let id = 0; id < 2_001; id++) {
    metrics.reactorCall({ reactor: `reactor ${id}`, outcome: 'completed', seconds: 1 });
    metrics.proxyCall({ proxy: `proxy ${id}`, status: 200, seconds: 1 });
    metrics.delivery({ webhook: `webhook ${id}`, outcome: 'delivered' });
  }
  const shown = JSON.stringify(await metrics.counts());
  for (const kind of ['reactor', 'proxy', 'webhook']) {
    assert.ok(shown.includes(`"${kind} 1999"`) && shown.includes(`"${kind}":"other"`), kind);
    assert.ok(!shown.includes(`"${kind} 2000"`), kind);
  }
});
