/** Counters of stored bytes that were altered outside the vault are found and corrected, to the byte. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { day } from '../../../src/base/clock.ts';
import { recountBytes } from '../../../src/runtime/jobs/recount-bytes.ts';
import {
  type CountedName,
  countedTables,
  ownerSql,
  sizeSql,
} from '../../../src/store/migrations/stored-sizes.ts';
import { notOnCitus } from '../../support/citus-cluster.ts';
import { onBothEngines, type Place } from '../../support/engines.ts';
import { runJob } from '../../support/jobs.ts';
import { newTenant, type TestTenant } from '../../support/tenant.ts';
import { managementKey, startVault } from '../../support/vault.ts';

const name = 'recount stored bytes';
const restless = { now: () => 0, pause: async () => undefined };

const notCounted = notOnCitus(
  'distributed tables have no common snapshot, so nothing is counted again',
);

onBothEngines('counting stored bytes again', (engine) => {
  test('altered counters are corrected while tokens are created and deleted, once by several servers', {
    skip: notCounted,
  }, async (t) => {
    const vault = await startVault(t, engine);
    // The embedded database has one server.
    const second =
      engine.name === 'postgres' ? await startVault(t, engine, { place: vault.place }) : vault;
    const tenant = await newTenant(vault);
    const other = await newTenant(vault);
    for (const one of [tenant, other]) await fill(one, 20);
    await alter(vault.place, 'update stored_bytes set bytes = bytes - 1000000 where slot >= 0');
    let alerts = 0;
    let isOver = false;
    let requests = 0;
    const traffic = [tenant, tenant, other].map(async (one) => {
      while (!isOver) {
        await churn(one);
        requests++;
      }
    });
    // Each page of three rows is followed by commits.
    const pause = async () => {
      const before = requests;
      for (let turn = 0; turn < 1_000 && requests === before; turn++) {
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const counts = await Promise.all(
      [vault, second, vault].map((server) =>
        recountBytes({
          ...server.running.vault,
          timer: { now: () => 0, pause },
          rowsMax: 3,
          onCorrected: () => void alerts++,
        }).run(new AbortController().signal),
      ),
    );
    isOver = true;
    await Promise.all(traffic);
    await checkCounters(vault.place);
    const altered = counts.reduce((sum, one) => sum + one, 0);
    assert.equal(altered, 2, 'the counters of both tenants, each once');
    assert.equal(alerts, 2);
    for (const one of [tenant, other]) assert.deepEqual(await recounts(one), [alteredMessage]);
    assert.equal(await runJob(vault, name), 0, 'nothing is left to correct');
  });

  test('a quota that an altered counter had lifted holds again, with an alert', {
    skip: notCounted,
  }, async (t) => {
    const vault = await startVault(t, engine);
    const key = await vault.application({ type: 'public', permissions: ['token:create'] });
    const create = () =>
      vault.send('POST', '/tokens', { key, body: { type: 'token', data: 'a'.repeat(1_000) } });
    assert.equal((await create()).status, 201);
    await alter(vault.place, 'update stored_bytes set bytes = -1000000000');
    await vault.stop();
    const again = await startVault(t, engine, { place: vault.place });
    assert.equal(again.logged.filter(({ message }) => message.includes('stored bytes')).length, 1);
    const metrics = await again.running.vault.metrics.expose();
    assert.match(metrics.text, /^strongroom_stored_bytes_corrections_total 1$/m);
    await checkCounters(vault.place);
    const usage = await again.send('GET', '/tenants/self/reports/usage', { key: managementKey });
    assert.ok(usage.body.storage.stored_bytes > 1_000);
  });

  for (const [which, values] of [
    ['a slot that the vault has not', `999, ${2n ** 62n}`],
    ['a negative slot', '-7, -5'],
    ['bytes beyond all that is counted', `3, ${-(2n ** 62n)}`],
    ['a correction', `256, ${2n ** 51n}`],
  ] as const) {
    test(`a counter with ${which} is corrected`, {
      skip: which === 'a correction' && notCounted,
    }, async (t) => {
      const vault = await startVault(t, engine);
      const tenant = await newTenant(vault);
      await fill(tenant, 3);
      await alter(
        vault.place,
        `insert into stored_bytes (tenant_id, application_id, slot, bytes)
          select distinct tenant_id, application_id, ${values} from stored_bytes`,
      );
      assert.ok((await runJob(vault, name)) > 0);
      await checkCounters(vault.place);
      await fill(tenant, 1);
      await checkCounters(vault.place);
      assert.equal(await runJob(vault, name), 0);
    });
  }

  test('a counter that was deleted, and one of an application that stores nothing, are corrected', {
    skip: notCounted,
  }, async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const empty = await newTenant(vault);
    await fill(tenant, 3);
    await fill(empty, 1);
    await alter(
      vault.place,
      `update stored_bytes set application_id = ${engine.name === 'postgres' ? "'\\x02616263'" : "x'02616263'"}`,
    );
    assert.equal(await runJob(vault, name), 4);
    await checkCounters(vault.place);
    assert.deepEqual(await recounts(tenant), [alteredMessage, alteredMessage]);
  });

  test('each process counts when it starts and once a day', {
    skip: notCounted,
  }, async (t) => {
    const vault = await startVault(t, engine);
    await fill(await newTenant(vault), 1);
    const job = recountBytes({ ...vault.running.vault, timer: restless });
    const run = () => job.run(new AbortController().signal);
    const lift = () =>
      alter(vault.place, 'update stored_bytes set bytes = bytes - 7 where slot < 256');
    await lift();
    assert.equal(await run(), 1);
    await lift();
    assert.equal(await run(), 0);
    vault.clock.advance(day);
    assert.equal(await run(), 1);
    await checkCounters(vault.place);
  });

  test('a run that is ended leaves the counters as they are, and the next one corrects them', {
    skip: notCounted,
  }, async (t) => {
    const vault = await startVault(t, engine);
    await fill(await newTenant(vault), 8);
    await alter(vault.place, 'update stored_bytes set bytes = bytes + 7 where slot < 256');
    const stopping = new AbortController();
    const pause = async () => stopping.abort();
    const job = recountBytes({
      ...vault.running.vault,
      timer: { now: () => 0, pause },
      rowsMax: 3,
    });
    assert.equal(await job.run(stopping.signal), 0);
    await assert.rejects(checkCounters(vault.place));
    assert.equal(await runJob(vault, name), 1);
    await checkCounters(vault.place);
  });

  const alter = (place: Place, sql: string) => engine.run(place, sql);

  /** The counters are what a count of the rows gives. */
  async function checkCounters(place: Place): Promise<void> {
    const counted = await sums(place, [
      'select application_id as owner, sum(bytes) as bytes from stored_bytes group by 1',
    ]);
    const stored = await sums(
      place,
      (Object.keys(countedTables) as CountedName[]).map(
        (table) =>
          `select ${ownerSql(table, table)} as owner, sum(${sizeSql(table, table)}) as bytes from ${table} group by 1`,
      ),
    );
    assert.deepEqual(counted, stored);
  }

  async function sums(place: Place, texts: readonly string[]): Promise<[string, number][]> {
    const bytesOf = new Map<string, number>();
    for (const text of texts) {
      for (const { owner, bytes } of await engine.run(place, text)) {
        const id = hexOf(owner);
        bytesOf.set(id, (bytesOf.get(id) ?? 0) + Number(bytes));
      }
    }
    return [...bytesOf].filter(([, bytes]) => bytes !== 0).sort();
  }
});

const alteredMessage =
  'Stored bytes of the application counted again: the counter was altered outside the vault';

async function recounts(tenant: TestTenant): Promise<string[]> {
  const entries = await tenant.rows('logs');
  return entries.flatMap((one) => {
    const { operation, message } = one as { operation?: string; message?: string };
    return operation === 'recount' && message !== undefined ? [message] : [];
  });
}

async function fill(tenant: TestTenant, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    await tenant.token({ type: 'token', data: 'ä'.repeat(n + 1), metadata: { a: '"b"' } });
  }
}

/** Leaves something behind now and then. */
async function churn(tenant: TestTenant): Promise<void> {
  const headers = { 'svc-idempotency-key': randomUUID() };
  const body = { type: 'token', data: randomUUID() };
  const made = await tenant.send('POST', '/tokens', { body, headers });
  assert.equal(made.status, 201, made.text);
  if (made.body.id.charCodeAt(0) % 3 === 0) return;
  const { status } = await tenant.send('DELETE', `/tokens/${made.body.id}`);
  assert.equal(status, 204);
}

/** A UUID as tables of tokens store it, or as text, by its digits. */
function hexOf(owner: unknown): string {
  if (owner instanceof Uint8Array) return Buffer.from(owner).toString('hex').slice(2);
  return String(owner).replaceAll('-', '');
}
