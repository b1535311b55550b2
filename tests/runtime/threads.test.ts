/** Several threads answer as one server would: they see, count and revoke together, and replace one another. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { rotateTenantKeys } from '../../src/runtime/jobs/rotate-keys.ts';
import { type Engine, onBothEngines } from '../support/engines.ts';
import { rowsOf, verifyLog } from '../support/rows.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { newTenant } from '../support/tenant.ts';
import {
  createStillClock,
  managementKey,
  request,
  startVault,
  type TestVault,
  type TestVaultOptions,
} from '../support/vault.ts';

const threads = 3;
/** Each request has a connection of its own, which the system gives to any of the threads. */
const connections = 24;
const separately = { connection: 'close' };

/** A vault whose threads answer, and those threads. */
async function severalThreads(t: TestContext, engine: Engine, options: TestVaultOptions = {}) {
  const workers: Worker[] = [];
  const record = (worker: Worker) => {
    if (worker.threadName === 'request') workers.push(worker);
  };
  process.on('worker', record);
  t.after(() => void process.off('worker', record));
  const environment = { ...options.environment, STRONGROOM_THREADS: String(threads) };
  const vault = await startVault(t, engine, { ...options, environment });
  return { vault, workers };
}

const times = <T>(count: number, run: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => run(index));

const get = (vault: TestVault, path: string, key?: string) =>
  request(vault.url + path, 'GET', { key, headers: separately });

const create = (vault: TestVault, key: string, id: string) =>
  request(`${vault.url}/tokens`, 'POST', {
    key,
    body: { id, type: 'token', data: id },
    headers: separately,
  });

async function until(check: () => Promise<boolean>): Promise<void> {
  while (!(await check())) await new Promise((resolve) => setImmediate(resolve));
}

/** The lines of the metrics with that name, without their help. */
async function metricsOf(vault: TestVault, name: string): Promise<string[]> {
  const { text } = await get(vault, '/metrics');
  return text.split('\n').filter((line) => line.startsWith(name));
}

onBothEngines('several request threads', (engine) => {
  test('what one acknowledged, each reads at once', async (t) => {
    const { vault } = await severalThreads(t, engine);
    const key = await vault.application();
    for (const round of times(10, (index) => index)) {
      assert.equal((await create(vault, key, `token-${round}`)).status, 201);
      const read = await Promise.all(
        times(connections, () => get(vault, `/tokens/token-${round}`, key)),
      );
      assert.deepEqual(
        read.map(({ status }) => status),
        times(connections, () => 200),
      );
    }
    await verifyLog(engine, vault.place);
  });

  test('a key that is deleted has ended on all of them before the response to its deletion', async (t) => {
    const { vault } = await severalThreads(t, engine, { clock: createStillClock() });
    const tenant = await newTenant(vault);
    const send = (method: string, path: string, body?: object) =>
      tenant.send(method, path, { key: tenant.managementKey, ...(body && { body }) });
    const { body } = await send('POST', '/applications', {
      name: 'a',
      type: 'private',
      permissions: ['token:read'],
    });
    const statuses = async () => {
      const read = await Promise.all(
        times(connections, () => get(vault, '/tokens/none', body.key)),
      );
      return new Set(read.map(({ status }) => status));
    };
    assert.deepEqual(await statuses(), new Set([404]), 'all know the key, and no cache grows old');
    let over = false;
    t.after(() => {
      over = true;
    });
    const meanwhile = times(4, async () => {
      while (!over) await get(vault, '/tokens/none', body.key);
    });
    const path = `/applications/${body.id}/keys/${body.keys[0].id}`;
    assert.equal((await send('DELETE', path)).status, 204);
    assert.deepEqual(await statuses(), new Set([401]));
    over = true;
    await Promise.all(meanwhile);
  });

  test('a key that a rotation has replaced is destroyed through any of them', async (t) => {
    const { vault } = await severalThreads(t, engine);
    const send = (method: string, path: string, body?: object) =>
      request(`${vault.url}/tenants/self/keys${path}`, method, {
        key: managementKey,
        headers: separately,
        ...(body && { body }),
      });
    assert.equal((await send('POST', '/rotations', { purpose: 'data' })).status, 202);
    const job = rotateTenantKeys({ ...vault.running.vault, isAlone: () => true });
    await job.run(new AbortController().signal);
    assert.equal((await send('DELETE', '/data/1')).status, 204);
    const { body } = await send('GET', '');
    assert.deepEqual(
      body.keys
        .filter(({ purpose }: { purpose: string }) => purpose === 'data')
        .map(({ state }: { state: string }) => state),
      ['destroyed', 'active'],
    );
  });

  test('requests, failed attempts and refusals are counted once for all of them', async (t) => {
    const file = join(temporaryDirectory(t), 'limits.json');
    const limits = [{ per: ['key'], key_kinds: ['public'], requests: 10, window_seconds: 3600 }];
    const failed_authentication = { requests: 5, window_seconds: 3600 };
    writeFileSync(file, JSON.stringify({ limits, failed_authentication }));
    const { vault } = await severalThreads(t, engine, {
      clock: createStillClock(),
      environment: { STRONGROOM_RATE_LIMITS: file },
    });
    const key = await vault.application({ type: 'public', permissions: ['token:create'] });
    const statusesOf = async (sent: string) => {
      const all = await Promise.all(times(connections, () => get(vault, '/tokens/none', sent)));
      return all.map(({ status }) => status).sort();
    };
    const refused = await statusesOf(key);
    assert.deepEqual(refused, [...times(10, () => 403), ...times(connections - 10, () => 429)]);
    const denied = (await rowsOf(engine, vault.place, 'logs')).filter(
      ({ result }) => result === 'denied',
    );
    assert.equal(denied.length, 1, 'the first of its second; the others are counted');
    const unknown = await statusesOf('key.of.nobody.000000000000000000000000');
    assert.deepEqual(unknown, [...times(5, () => 401), ...times(connections - 5, () => 429)]);
    const failures = vault.logged.filter(({ message }) => message.includes('failed to auth'));
    assert.equal(failures.length, 10, 'so many of one address are logged one by one');
  });

  test('the metrics are one sum, whichever thread is asked', async (t) => {
    const { vault } = await severalThreads(t, engine);
    const key = await vault.application();
    await Promise.all(times(connections, () => get(vault, '/tokens/none', key)));
    const name = 'strongroom_request_duration_seconds_count{method="GET",route="/tokens/:id"';
    for (const lines of await Promise.all(times(threads * 3, () => metricsOf(vault, name)))) {
      assert.deepEqual(lines, [`${name},status="404"} ${connections}`]);
    }
    assert.equal((await metricsOf(vault, 'process_resident_memory_bytes ')).length, 1);
  });

  test('one that dies is replaced: nothing acknowledged is lost, and the others go on', async (t) => {
    const { vault, workers } = await severalThreads(t, engine);
    const key = await vault.application();
    const acknowledged: string[] = [];
    let over = false;
    t.after(() => {
      over = true;
    });
    const clients = times(8, async (client) => {
      for (let index = 0; !over; index += 1) {
        const id = `of-${client}-${index}`;
        // A connection to the thread that dies breaks, as at the end of a server.
        const created = await create(vault, key, id).catch(() => undefined);
        if (created?.status === 201) acknowledged.push(id);
      }
    });
    await until(async () => acknowledged.length >= 40);
    const [victim] = workers;
    assert.ok(victim);
    await Promise.all([once(victim, 'exit'), victim.terminate()]);
    const before = acknowledged.length;
    await until(async () => acknowledged.length >= before + 40);
    over = true;
    await Promise.all(clients);
    const restarts = 'strongroom_thread_restarts_total';
    await until(async () => workers.length === threads + 1);
    assert.deepEqual(await metricsOf(vault, restarts), [`${restarts} 1`]);
    const said = vault.logged.filter(({ message }) => message.includes('is replaced'));
    assert.equal(said.length, 1);
    await vault.stop();
    const stored = new Set(
      (await rowsOf(engine, vault.place, 'tokens')).map((row) => `${row.token_id}`),
    );
    assert.deepEqual(
      acknowledged.filter((id) => !stored.has(id)),
      [],
    );
    await verifyLog(engine, vault.place);
  });

  test('after a stop nothing listens, and all that was acknowledged is stored', async (t) => {
    const { vault } = await severalThreads(t, engine);
    const key = await vault.application();
    const created = await Promise.all(
      times(connections, (index) => create(vault, key, `token-${index}`)),
    );
    assert.deepEqual(new Set(created.map(({ status }) => status)), new Set([201]));
    await vault.stop();
    await assert.rejects(get(vault, '/ping'));
    assert.equal((await rowsOf(engine, vault.place, 'tokens')).length, connections);
  });

  test('a stop while a thread is being replaced waits for no replacement, and loses nothing', async (t) => {
    const { vault, workers } = await severalThreads(t, engine);
    const key = await vault.application();
    assert.equal((await create(vault, key, 'before')).status, 201);
    const [first, second] = workers;
    assert.ok(first && second);
    await Promise.all([once(first, 'exit'), first.terminate()]);
    await Promise.all([vault.stop(), second.terminate()]);
    await assert.rejects(get(vault, '/ping'));
    for (const worker of workers) assert.equal(worker.threadId, -1, 'it has ended');
    assert.equal((await rowsOf(engine, vault.place, 'tokens')).length, 1);
  });

  test('a port on which another vault listens is refused, although they could share it', async (t) => {
    const { vault } = await severalThreads(t, engine);
    const environment = { STRONGROOM_PORT: new URL(vault.url).port };
    await assert.rejects(severalThreads(t, engine, { environment }), /EADDRINUSE/);
    assert.equal((await get(vault, '/ping')).status, 200);
  });

  test('a start fails with what a thread failed with, and leaves nothing behind', async (t) => {
    const environment = { STRONGROOM_BIN_TABLE: 'no such file' };
    await assert.rejects(severalThreads(t, engine, { environment }), { name: 'OperatorFileError' });
  });
});
