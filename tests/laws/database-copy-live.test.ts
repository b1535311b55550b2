/** A vault moves while it serves: nothing acknowledged is lost or done twice, and it serves in one place at a time. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { newRootKey } from '../support/backups.ts';
import { notOnCitus } from '../support/citus-cluster.ts';
import { type EngineName, engineOf, type Place } from '../support/engines.ts';
import { createHistory } from '../support/history.ts';
import { checkHistory } from '../support/history-check.ts';
import { type KillPoint, runUntil } from '../support/killed-command.ts';
import {
  beginCommand,
  environmentOf,
  runCommand,
  runProcess,
  spawnVault,
} from '../support/process.ts';
import { seeded } from '../support/random.ts';
import { createApplication, managementKey, type Received, request } from '../support/vault.ts';

const addressOf = ({ databaseUrl, dataDir }: Place): string => databaseUrl ?? dataDir;

const moving = (from: Place, to: Place, ...flags: readonly string[]): string[] => [
  ...['database', 'copy', '--live', '--from', addressOf(from), '--to', addressOf(to), '--json'],
  ...flags,
];

const elsewhere = { sqlite: 'postgres', postgres: 'sqlite' } as const;
const workers = 4;
const writesBefore = 100;

/** What happens is sent to it later, so that events and deliveries are among what moves. */
async function receiveEvents(url: string): Promise<void> {
  const webhook = { name: 'all', url: 'https://events.example.com', events: ['token.created'] };
  const { status } = await request(`${url}/webhooks`, 'POST', {
    key: managementKey,
    body: webhook,
  });
  assert.equal(status, 201);
}

/** What clients may notice: that they are to come again. */
function assertServedOrLater(answer: Received | undefined): void {
  assert.ok(answer, 'the source answers');
  assert.ok(answer.status < 500 || answer.status === 503, `${answer.status}: ${answer.text}`);
  if (answer.status === 503) assert.ok(answer.headers.get('retry-after'), answer.text);
}

for (const from of ['sqlite', 'postgres'] as const) {
  const name = `a vault on ${from} moves under load, and no acknowledged write is lost`;
  test(name, { skip: notOnCitus('has no triggers on distributed tables') }, async (t) => {
    const below = seeded(t);
    const vault = { place: await engineOf(from).place(t), rootKey: newRootKey() };
    const served = await spawnVault(t, environmentOf(vault.place, vault.rootKey));
    const key = await createApplication(served.url);
    await receiveEvents(served.url);
    let { url } = served;
    const history = createHistory({ url: () => url, key, below });
    let left = writesBefore;
    await history.work(workers, () => left-- > 0);
    const engine = engineOf(elsewhere[from]);
    const place = await engine.place(t);
    const command = beginCommand(t, moving(vault.place, place), vault.rootKey);
    let hasMoved = false;
    const done = command.finished.finally(() => {
      hasMoved = true;
    });
    await history.work(workers, (answer) => {
      assertServedOrLater(answer);
      return !hasMoved;
    });
    const { code, stdout, stderr } = await done;
    assert.equal(code, 0, stderr);
    const { moved_at, stopped_ms, rows } = JSON.parse(stdout);
    assert.ok(rows > 50 && stopped_ms < 10_000, stdout);
    assert.ok(Math.abs(Date.parse(moved_at) - Date.now()) < 60_000, moved_at);

    assert.equal((await request(`${url}/readyz`, 'GET')).status, 503);
    for (const path of ['/v2/tokens', '/tokens/none', '/applications']) {
      const late = await request(url + path, 'GET', { key });
      assert.equal(late.status, 503, `${path}: ${late.text}`);
      assert.ok(late.headers.get('retry-after'), path);
    }
    served.terminate();
    await served.finished;
    const again = await runProcess(['serve'], environmentOf(vault.place, vault.rootKey));
    assert.notEqual(again.code, 0);
    assert.match(again.stdout + again.stderr, /moved to another place/);

    const target = await spawnVault(t, environmentOf(place, vault.rootKey));
    url = target.url;
    await checkHistory(engine, place, history);
    for (const at of [vault.place, place]) {
      const environment = environmentOf(at, vault.rootKey);
      const verified = await runCommand(['logs', 'verify', '--state'], environment);
      assert.equal(verified.code, 0, verified.stdout + verified.stderr);
    }
  });
}

test('a move that is killed leaves the source serving, or is finished by the same command', {
  skip: notOnCitus('has no triggers on distributed tables'),
}, async (t) => {
  const below = seeded(t);
  const from = below(2) === 0 ? 'sqlite' : 'postgres';
  const vault = { place: await engineOf(from).place(t), rootKey: newRootKey() };
  const served = await spawnVault(t, environmentOf(vault.place, vault.rootKey));
  const key = await createApplication(served.url);
  let { url } = served;
  const history = createHistory({ url: () => url, key, below });
  const engine = engineOf(elsewhere[from]);
  const place = await engine.place(t);
  let hasMoved = false;
  for (let round = 0; round < killsMax && !hasMoved; round++) {
    const command = beginCommand(t, moving(vault.place, place), vault.rootKey);
    const until = performance.now() + below(killedWithinMs);
    await history.work(workers, (answer) => {
      assertServedOrLater(answer);
      return performance.now() < until;
    });
    await command.kill();
    // Whoever waited for the killed command goes on at once.
    const body = { type: 'token', data: 'after the kill', metadata: { serial: 'none' } };
    const { status, body: created } = await request(`${url}/tokens`, 'POST', { key, body });
    hasMoved = status === 503;
    if (hasMoved) break;
    assert.equal(status, 201);
    await request(`${url}/tokens/${created.id}`, 'DELETE', { key });
  }
  const { code, stdout, stderr } = await runCommand(moving(vault.place, place), vault.rootKey);
  assert.equal(code, 0, stderr);
  assert.ok(JSON.parse(stdout).moved_at);
  const again = await runCommand(moving(vault.place, place), vault.rootKey);
  assert.equal(again.code, 0, 'that it has moved is no failure');
  assert.equal(JSON.parse(again.stdout).moved_at, JSON.parse(stdout).moved_at);
  assert.equal((await request(`${url}/v2/tokens`, 'GET', { key })).status, 503);
  const stale = await runCommand(
    moving(vault.place, await engine.place(t)).filter((word) => word !== '--live'),
    vault.rootKey,
  );
  assert.match(stale.stderr, /Stop it first|Stop all servers first|has moved/);
  served.terminate();
  await served.finished;
  const target = await spawnVault(t, environmentOf(place, vault.rootKey));
  url = target.url;
  await checkHistory(engine, place, history);
});

const pointsAfterTheMove = {
  'after the refusal': 'sqlite',
  'before the link': 'postgres',
  'after the link': 'postgres',
} as const satisfies Partial<Record<KillPoint, EngineName>>;

for (const [point, from] of Object.entries(pointsAfterTheMove) as [KillPoint, EngineName][]) {
  const name = `a move that is killed ${point} is finished by the same command, and says so until then`;
  test(name, { skip: notOnCitus('has no triggers on distributed tables') }, async (t) => {
    const vault = { place: await engineOf(from).place(t), rootKey: newRootKey() };
    const environment = environmentOf(vault.place, vault.rootKey);
    const served = await spawnVault(t, environment);
    const key = await createApplication(served.url);
    const body = { type: 'token', data: 'moved' };
    const { body: created } = await request(`${served.url}/tokens`, 'POST', { key, body });
    const place = await engineOf(elsewhere[from]).place(t);
    const killed = await runUntil(point, moving(vault.place, place), vault.rootKey);
    assert.equal(killed.code, null, killed.stderr);

    const late = await request(`${served.url}/tokens/${created.id}`, 'GET', { key });
    assert.equal(late.status, 503);
    assert.match(late.text, /not open yet/);
    assert.ok(late.headers.get('retry-after'));
    served.terminate();
    await served.finished;
    const start = await runProcess(['serve'], environment);
    assert.match(start.stdout + start.stderr, /served nowhere[^"]*run the same command again/);
    const wrong = await engineOf('sqlite').place(t);
    const elsewhereAgain = await runCommand(moving(vault.place, wrong), vault.rootKey);
    assert.match(elsewhereAgain.stderr, /has no copy of it/);
    assert.ok(!existsSync(join(wrong.dataDir, 'restoring')), 'nothing begins in another place');

    const finished = await runCommand(moving(vault.place, place), vault.rootKey);
    assert.equal(finished.code, 0, finished.stderr);
    assert.ok(!existsSync(join(place.dataDir, 'restoring')), 'nothing intermediate is left');
    const backup = await runCommand(['backup', `${place.dataDir}-backup`], environment);
    assert.match(backup.stderr, /moved to another place/, 'it would continue from the same moment');
    const again = await runProcess(['serve'], environment);
    assert.match(again.stdout + again.stderr, /Start a server on its new place/);
    const target = await spawnVault(t, environmentOf(place, vault.rootKey));
    const read = await request(`${target.url}/tokens/${created.id}`, 'GET', { key });
    assert.equal(read.body.data, 'moved');
    const { body: log } = await request(`${target.url}/logs?entity_type=tenant&size=100`, 'GET', {
      key: managementKey,
    });
    const notes = log.data.filter(({ message }: { message: string }) => /moved/.test(message));
    assert.equal(notes.length, 1, JSON.stringify(log.data));
  });
}

const killsMax = 3;
/** About as long as a move takes. */
const killedWithinMs = 3_000;
