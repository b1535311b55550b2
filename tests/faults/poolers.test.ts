/** A vault whose PostgreSQL is behind PgBouncer or HAProxy keeps the same promises. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Engine, engineOf, type Place } from '../support/engines.ts';
import { createHistory } from '../support/history.ts';
import { checkHistory } from '../support/history-check.ts';
import { startHaproxy, startPgBouncer, versionOf } from '../support/poolers.ts';
import { sharedPostgres, sharedUrlVariable } from '../support/postgres.ts';
import { environmentOf, runCommand, spawnVault, untilReady } from '../support/process.ts';
import { seeded } from '../support/random.ts';
import { startPair } from '../support/standby.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { createApplication } from '../support/vault.ts';

const workers = 8;
const responsesMax = 150;
const engine: Engine = engineOf('postgres');

/** Says where it does not run, for those who read the output of a whole run. */
function isMissing(t: TestContext, program: 'pgbouncer' | 'haproxy'): boolean {
  const version = versionOf(program);
  t.diagnostic(version ?? `${program} is not installed here, so this was not tested`);
  return version === undefined;
}

/** @param meanwhile after a third of the responses. Until it is done some may be refused. */
async function works(
  t: TestContext,
  { place, databaseUrl }: { place: Place; databaseUrl: string },
  meanwhile?: (url: string) => Promise<void>,
): Promise<void> {
  const below = seeded(t);
  const vault = await spawnVault(t, environmentOf({ ...place, databaseUrl }));
  const key = await createApplication(vault.url);
  const history = createHistory({ url: () => vault.url, key, below });
  let left = responsesMax;
  let over: Promise<void> | undefined;
  let isOver = meanwhile === undefined;
  await history.work(workers, (answered) => {
    assert.ok(answered);
    if (isOver || answered.status < 400) left -= 1;
    if (left === (2 * responsesMax) / 3 && meanwhile !== undefined) {
      over ??= meanwhile(vault.url).then(() => {
        isOver = true;
      });
    }
    if (answered.status >= 400) assert.equal(answered.status, 503, answered.text);
    return left > 0 || !isOver;
  });
  await over;
  await checkHistory(engine, place, history);
}

for (const [title, settings] of [
  ['as it is', {}],
  [
    'that drops parameters of connections',
    { ignore_startup_parameters: 'options,statement_timeout' },
  ],
] as const) {
  test(`PgBouncer in transaction mode, ${title}`, async (t) => {
    if (isMissing(t, 'pgbouncer')) return;
    const place = await engine.place(t);
    const databaseUrl = await startPgBouncer(t, place.databaseUrl ?? '', settings);
    await works(t, { place, databaseUrl });
  });
}

test('a copy by way of PgBouncer, which would give up its locks, is refused', async (t) => {
  if (isMissing(t, 'pgbouncer')) return;
  const place = await engine.place(t);
  const url = await startPgBouncer(t, place.databaseUrl ?? '');
  for (const option of ['--from', '--to']) {
    const other = option === '--from' ? '--to' : '--from';
    const words = ['database', 'copy', option, url, other, place.dataDir];
    const { code, stderr } = await runCommand(words, {});
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`${option} leads to a pooler.* Nothing was changed`));
  }
});

test('PgBouncer in statement mode is refused at the start, by its setting', async (t) => {
  if (isMissing(t, 'pgbouncer')) return;
  const place = await engine.place(t);
  const databaseUrl = await startPgBouncer(t, place.databaseUrl ?? '', { pool_mode: 'statement' });
  for (const command of ['serve', 'database migrate']) {
    const environment = environmentOf({ ...place, databaseUrl });
    const { code, stdout, stderr } = await runCommand(command.split(' '), environment);
    assert.equal(code, 1);
    assert.match(stdout + stderr, /whose pool_mode is statement.* Set pool_mode = transaction/);
  }
});

test('the contract of the store holds through PgBouncer in transaction mode', async (t) => {
  if (isMissing(t, 'pgbouncer')) return;
  const url = await startPgBouncer(t, (await sharedPostgres()).url);
  const { NODE_TEST_CONTEXT: _none, ...environment } = process.env;
  const file = join(import.meta.dirname, '..', 'store', 'contract.test.ts');
  const run = spawn(process.execPath, ['--test', file], {
    env: { ...environment, [sharedUrlVariable]: url, TEST_ENGINE: 'postgres' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output: Buffer[] = [];
  run.stdout.on('data', (chunk: Buffer) => output.push(chunk));
  const [code] = await once(run, 'close');
  assert.equal(code, 0, Buffer.concat(output).toString('utf8'));
});

test('HAProxy, and a failover behind it', async (t) => {
  if (isMissing(t, 'haproxy')) return;
  const pair = await startPair(t);
  const database = await pair.createDatabase();
  const urls = [pair.primary, pair.standby].map((server) => pair.urlOf(database, [server]));
  const databaseUrl = await startHaproxy(t, urls);
  const place = {
    databaseUrl: pair.urlOf(database, [pair.standby]),
    dataDir: temporaryDirectory(t),
  };
  await works(t, { place, databaseUrl }, async (url) => {
    await pair.primary.kill();
    await untilReady(url, 503);
    await pair.promote();
    await untilReady(url);
  });
});
