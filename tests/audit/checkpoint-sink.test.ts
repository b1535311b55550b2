/** Pushed checkpoints: what was kept elsewhere shows that the end of a log was removed. */
import assert from 'node:assert/strict';
import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  checkpointsQueuedMax,
  createCheckpointSink,
  openCheckpointSink,
  queuedCharactersMax,
} from '../../src/audit/checkpoint-sink.ts';
import { minute } from '../../src/base/clock.ts';
import { createMetrics } from '../../src/base/telemetry/metrics.ts';
import { createOutbound } from '../../src/outbound/call.ts';
import { createForward } from '../../src/outbound/forward.ts';
import { jobsOf } from '../../src/runtime/jobs/jobs.ts';
import type { Row } from '../../src/store/tables.ts';
import { type Engine, engineOf, onBothEngines } from '../support/engines.ts';
import { json, startHost } from '../support/host.ts';
import { signCheckpoints } from '../support/logs.ts';
import { runCommand } from '../support/process.ts';
import { rowsOf } from '../support/rows.ts';
import { type Lender, temporaryDirectory } from '../support/temporary.ts';
import {
  createStillClock,
  managementKey,
  recorder,
  startVault,
  type TestVault,
  type TestVaultOptions,
} from '../support/vault.ts';

const linesOf = (file: string) =>
  readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

async function start(t: Lender, engine: Engine, options: TestVaultOptions = {}) {
  const file = join(temporaryDirectory(t), 'checkpoints');
  const environment = { STRONGROOM_CHECKPOINT_SINK: file };
  const vault = await startVault(t, engine, { ...options, environment });
  const database = vault.place.databaseUrl ?? vault.place.dataDir;
  const verify = (...files: readonly string[]) => {
    const flags = files.flatMap((one) => ['--checkpoint', one]);
    return runCommand(['logs', 'verify', '--database', database, ...flags], {});
  };
  return { vault, file, verify };
}

onBothEngines('STRONGROOM_CHECKPOINT_SINK', (engine) => {
  test('the end of a log that is deleted is found by what was pushed, and by nothing else', async (t) => {
    const { vault, file, verify } = await start(t, engine);
    await vault.application();
    assert.equal(await signCheckpoints(vault), 1);
    const before = await rowsOf(engine, vault.place, 'logs');
    await vault.application();
    assert.equal(await signCheckpoints(vault), 1);
    await vault.stop();
    const lines = linesOf(file);
    assert.deepEqual(
      lines.map(({ seq }) => seq),
      // The first is that of the start.
      [1, 2, 3],
    );
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.equal((await verify(file)).code, 0);

    const last = (stream: string) =>
      Math.max(0, ...before.filter((row) => row.stream_id === stream).map(({ seq }) => seq));
    for (const stream of new Set(
      (await rowsOf(engine, vault.place, 'logs')).map((r) => r.stream_id),
    )) {
      const tail = `stream_id = '${stream}' and first_seq > ${last(stream)}`;
      await engine.run(vault.place, `delete from logs where ${tail}`);
    }
    await engine.run(vault.place, 'delete from checkpoints where seq > 2');
    assert.equal((await verify()).code, 0, 'the database alone does not show it');
    const found = await verify(file);
    assert.equal(found.code, 3, found.stdout + found.stderr);
    assert.match(found.stdout, /truncated: /);
  });

  test('each server pushes what it signed, asked or by the clock, and nothing twice', async (t) => {
    const clock = createStillClock();
    const one = await start(t, engine, { clock });
    const two = await start(t, engine, { clock, place: one.vault.place });
    for (const { vault } of [one, two, one]) {
      await vault.application();
      await signCheckpoints(vault);
      clock.advance(minute);
    }
    await two.vault.application();
    await two.vault.send('GET', '/logs/checkpoint', { key: managementKey });
    const shown = await one.vault.send('GET', '/logs/checkpoint', { key: managementKey });
    await Promise.all([one.vault.stop(), two.vault.stop()]);
    const seqs = ({ file }: typeof one) => linesOf(file).map(({ seq }) => seq);
    assert.deepEqual(
      [seqs(one), seqs(two)],
      [
        [1, 2, 4],
        [3, 5],
      ],
    );
    assert.deepEqual(linesOf(two.file)[1], shown.body, 'a line is what the API shows');
    assert.equal((await one.verify(one.file, two.file)).code, 0);
  });
});

test('a log that was set back and signed again is found, though the newest kept one fits', async (t) => {
  const { vault, file, verify } = await start(t, engineOf('sqlite'));
  await vault.application();
  await signCheckpoints(vault);
  await engineOf('sqlite').run(vault.place, 'delete from checkpoints');
  await vault.application();
  await signCheckpoints(vault);
  await vault.stop();
  assert.deepEqual(
    linesOf(file).map(({ seq }) => seq),
    [1, 2, 1],
  );
  const found = await verify(file);
  assert.equal(found.code, 3, found.stdout);
  assert.match(found.stdout, /edited: checkpoint 1 is not the one that was kept/);
});

test('a line that was cut short spoils neither the next one nor the verification', async (t) => {
  const { vault, file, verify } = await start(t, engineOf('sqlite'));
  // The checkpoint of the start is on its way.
  const isPushed = () => existsSync(file) && readFileSync(file, 'utf8').endsWith('\n');
  while (!isPushed()) await new Promise((turn) => setImmediate(turn));
  writeFileSync(file, '{"tenant_id":');
  await vault.application();
  await signCheckpoints(vault);
  await vault.stop();
  const found = await verify(file);
  assert.equal(found.code, 0, found.stderr);
  assert.match(found.stderr, /Line 1 of .* is not JSON and was skipped/);
  assert.match(readFileSync(file, 'utf8'), /^\{"tenant_id":\n\{"tenant_id":"[^\n]*\}\n$/);
  appendFileSync(file, '{"statement":"another"}\n');
  assert.equal((await verify(file)).code, 2, 'what is no checkpoint is refused');
  writeFileSync(file, '\n');
  assert.equal((await verify(file)).code, 2);
});

test('an address gets each checkpoint by POST, again until it takes it', async (t) => {
  const host = await startHost(t);
  let refusals = 1;
  host.answer((response, request) => json({}, refusals-- > 0 ? 503 : 202)(response, request));
  const environment = {
    STRONGROOM_CHECKPOINT_SINK: `${host.url}/anchor?key=a`,
    STRONGROOM_OUTBOUND_ALLOW: host.name,
  };
  const vault = await startVault(t, engineOf('sqlite'), { environment });
  await vault.application();
  vault.clock.advance(1001);
  const shown = await vault.send('GET', '/logs/checkpoint', { key: managementKey });
  await vault.stop();
  const bodies = host.requests.map(({ body }) => JSON.parse(body));
  assert.deepEqual(
    bodies.map(({ seq }) => seq),
    [1, 1, 2],
  );
  assert.deepEqual(bodies[2], shown.body);
  for (const { method, path, headers } of host.requests) {
    assert.deepEqual([method, path], ['POST', '/anchor?key=a']);
    assert.equal(headers['content-type'], 'application/json');
  }
});

const row = (seq: number) =>
  ({
    tenant_id: 't',
    seq,
    created_at: 0,
    statement: '',
    signature: '',
    public_key: Buffer.alloc(32, 1).toString('base64'),
  }) as unknown as Row<'checkpoints'>;
const change = (...seqs: readonly number[]) => ({
  insert: { checkpoints: seqs.map(row) },
  entries: [] as never,
});

test('waits double from a second to a minute, and nothing is delivered out of order', async () => {
  const [waits, delivered]: [number[], number[]] = [[], []];
  let failing = 8;
  const done = Promise.withResolvers<void>();
  const sink = createCheckpointSink({
    deliver: async (text) => {
      failing -= 1;
      if (failing >= 0) throw new Error('unreachable');
      delivered.push(JSON.parse(text).seq);
      if (delivered.length === 3) done.resolve();
    },
    onFailure: () => undefined,
    pause: async (ms) => void waits.push(ms),
  });
  sink.take(change(1, 2));
  sink.take(change(3));
  assert.deepEqual(delivered, [], 'whoever commits does not wait');
  await done.promise;
  assert.deepEqual(delivered, [1, 2, 3]);
  assert.deepEqual(
    waits,
    [1, 2, 4, 8, 16, 32, 60, 60].map((seconds) => seconds * 1000),
  );
});

/** A sink that takes forever, and how many checkpoints it could not queue. */
function stuckSink() {
  let failures = 0;
  const sink = createCheckpointSink({
    deliver: () => new Promise(() => undefined),
    onFailure: (count) => {
      failures += count;
    },
    pause: async () => undefined,
  });
  return { sink, failures: () => failures };
}

test('the queue is bounded in number, and what it does not take is counted', async () => {
  const { sink, failures } = stuckSink();
  sink.take(change(...Array.from({ length: checkpointsQueuedMax }, (_, index) => index + 1)));
  assert.equal(failures(), 0);
  sink.take(change(checkpointsQueuedMax + 1, checkpointsQueuedMax + 2));
  assert.equal(failures(), 2);
  await sink.close();
});

test('and in size', async () => {
  const { sink, failures } = stuckSink();
  const half = { ...row(1), statement: 'x'.repeat(queuedCharactersMax / 2) };
  const one = { insert: { checkpoints: [half] }, entries: [] as never };
  sink.take(one);
  sink.take(one);
  assert.equal(failures(), 0);
  sink.take(one);
  assert.equal(failures(), 1);
  await sink.close();
});

test('failures are counted in the metrics and warned about without a path or an address', async (t) => {
  const metrics = createMetrics();
  const logged: TestVault['logged'] = [];
  const file = join(temporaryDirectory(t), 'nowhere', 'checkpoints');
  const sink = openCheckpointSink(
    { file },
    {
      outbound: createOutbound(
        createForward({ allow: new Set(), vaultName: 'strongroom-0000000000000000' }),
      ),
      metrics,
      log: recorder(logged),
      clock: createStillClock(),
    },
  );
  sink.take(change(1));
  await sink.close();
  const { text } = await metrics.expose();
  assert.match(text, /^strongroom_checkpoint_sink_failures_total 2$/m);
  assert.deepEqual(logged, [
    {
      message: 'log checkpoints were not pushed; they are in the database',
      fields: { count: 1 },
    },
  ]);
  assert.equal(existsSync(file), false);
});

test('with a sink checkpoints are signed every minute, without every fifteen', async (t) => {
  const { vault } = await start(t, engineOf('sqlite'));
  const everyMs = (given?: number) =>
    jobsOf(vault.running.vault, given).find(({ name }) => name === 'sign log checkpoints')?.everyMs;
  assert.equal(everyMs(), 15 * minute);
  assert.equal(everyMs(minute), minute);
});
