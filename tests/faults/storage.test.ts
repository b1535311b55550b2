/** Storage that fails: 503, nothing lost, nothing half done, no secret unlogged, recovery by itself. */
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Engine, engineOf, onBothEngines, type Place } from '../support/engines.ts';
import { limitFileSize } from '../support/file-size.ts';
import { startPostgres } from '../support/postgres.ts';
import { environmentOf, spawnVault, untilReady } from '../support/process.ts';
import { assertUnchanged, contentOf, verifyLog } from '../support/rows.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { createApplication, managementKey, type Received, request } from '../support/vault.ts';

const secret = 'b71e40d8-the-secret-in-the-vault';

interface Fault {
  readonly engine: Engine;
  readonly place: Place;
  /** What the vault holds cannot be looked at while its database is down. */
  readonly readable: boolean;
  begin(pid: number): Promise<void>;
  end(pid: number): Promise<void>;
}

/** Everything that must hold of a vault whose storage fails and comes back. */
async function survives(t: TestContext, fault: Fault): Promise<void> {
  const { engine, place } = fault;
  const vault = await spawnVault(t, environmentOf(place));
  const key = await createApplication(vault.url);
  const create = (n: number) =>
    request(`${vault.url}/tokens`, 'POST', {
      key,
      body: {
        id: `token-${n}`,
        type: 'token',
        data: `${secret} ${n}`,
        search_indexes: ['{{ data }}'],
      },
      headers: { 'svc-idempotency-key': `create ${n}` },
    });
  const reading = () => request(`${vault.url}/tokens/token-0`, 'GET', { key });
  const first = await create(0);
  assert.equal(first.status, 201);
  assert.equal((await reading()).body.data, `${secret} 0`);
  const before = await contentOf(engine, place);

  await fault.begin(vault.pid);
  const patch = { key, body: { data: `${secret} changed` } };
  const attempts = () => [
    create(0),
    create(1),
    reading(),
    request(`${vault.url}/tokens/token-0`, 'PATCH', patch),
    request(`${vault.url}/tokens/token-0`, 'DELETE', { key }),
    request(`${vault.url}/logs`, 'GET', { key: managementKey }),
    // Refusing is logged too, so it fails before it is told.
    request(`${vault.url}/logs`, 'GET', { key }),
    request(`${vault.url}/applications`, 'POST', {
      key: managementKey,
      body: { name: 'n', type: 'private', permissions: ['token:read'] },
    }),
  ];
  for (const answer of [await reading(), ...(await Promise.all(attempts()))]) refuses(answer);
  for (const attempt of attempts()) refuses(await attempt);
  await untilReady(vault.url, 503);
  assert.equal((await request(`${vault.url}/healthz`, 'GET')).status, 200);
  if (fault.readable) assertUnchanged(before, await contentOf(engine, place));

  await fault.end(vault.pid);
  await untilReady(vault.url);
  assertUnchanged(before, await contentOf(engine, place));
  assert.equal((await reading()).body.data, `${secret} 0`);
  assert.equal((await create(0)).text, first.text);
  assert.equal((await create(1)).status, 201, 'a failed request is processed as new');
  await verifyLog(engine, place);
  vault.terminate();
  const { code, stdout, stderr } = await vault.finished;
  assert.equal(code, 0);
  assert.match(stdout, /"code":"unavailable"/, 'the operator is told');
  assert.equal((stdout + stderr).includes(secret), false);
}

function refuses(answer: Received): void {
  assert.equal(answer.status, 503, answer.text);
  assert.match(answer.headers.get('content-type') ?? '', /^application\/problem\+json/);
  assert.equal(answer.body.type, 'urn:strongroom:problem:unavailable');
  assert.equal(answer.headers.get('retry-after'), '1');
  assert.equal(answer.text.includes(secret), false);
}

test('the disk is full', async (t) => {
  const engine = engineOf('sqlite');
  const place = await engine.place(t);
  await survives(t, {
    engine,
    place,
    readable: true,
    begin: async (pid) => limitFileSize(pid, 0),
    end: async (pid) => limitFileSize(pid, 'unlimited'),
  });
});

test('the disk fills up in the middle of a commit', async (t) => {
  const engine = engineOf('sqlite');
  const place = await engine.place(t);
  const midFrame = () => statSync(join(place.dataDir, 'strongroom.db-wal')).size + 2000;
  await survives(t, {
    engine,
    place,
    readable: true,
    begin: async (pid) => limitFileSize(pid, midFrame()),
    end: async (pid) => limitFileSize(pid, 'unlimited'),
  });
});

test('PostgreSQL is stopped and started', async (t) => {
  const cluster = await startPostgres();
  t.after(() => cluster.stop());
  await survives(t, {
    engine: engineOf('postgres'),
    place: { databaseUrl: await cluster.createDatabase(), dataDir: temporaryDirectory(t) },
    readable: false,
    begin: () => cluster.kill(),
    end: () => cluster.restart(),
  });
});

onBothEngines('the log cannot be written', (engine) => {
  test('the table of the log is gone and comes back', async (t) => {
    const place = await engine.place(t);
    await survives(t, {
      engine,
      place,
      readable: false,
      begin: async () => void (await engine.run(place, 'alter table logs rename to logs_away')),
      end: async () => void (await engine.run(place, 'alter table logs_away rename to logs')),
    });
  });
});
