/** SIGKILL at any moment loses no acknowledged write and invents none. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Engine,
  engineOf,
  onBothEngines,
  onPostgres,
  type Place,
} from '../support/engines.ts';
import { createHistory } from '../support/history.ts';
import { checkHistory } from '../support/history-check.ts';
import { startPostgres } from '../support/postgres.ts';
import { environmentOf, spawnVault, untilReady } from '../support/process.ts';
import { casesOf, seeded } from '../support/random.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { createApplication } from '../support/vault.ts';

const rounds = casesOf({ all: 3, drawn: 2 });
/** One end by SIGKILL and one shutdown. */
const databaseRounds = 2;
const workers = 8;
/** A round ends at one of its first so many events; an event is an answer. */
const answersMax = 120;

/** What PostgreSQL was told to commit it may commit after the end of who told it. */
async function untilForgotten(engine: Engine, place: Place): Promise<void> {
  if (engine.name === 'sqlite') return;
  const sessions = `select pid from pg_stat_activity
    where datname = current_database() and application_name = 'strongroom'`;
  while ((await engine.run(place, sessions)).length > 0);
}

onBothEngines('kill -9 of the vault', (engine) => {
  test('no acknowledged write is lost and none is invented', async (t) => {
    const below = seeded(t);
    const place = await engine.place(t);
    let vault = await spawnVault(t, environmentOf(place));
    const key = await createApplication(vault.url);
    const history = createHistory({ url: () => vault.url, key, below });
    for (let round = 0; round < rounds; round += 1) {
      let left = 1 + below(answersMax);
      await history.work(workers, (answered) => {
        left -= 1;
        if (left === 0) void vault.kill();
        assert.ok(answered !== undefined || left <= 0, 'the vault answers while it runs');
        return answered !== undefined;
      });
      assert.equal((await vault.finished).code, null);
      await untilForgotten(engine, place);
      vault = await spawnVault(t, environmentOf(place));
      await checkHistory(engine, place, history);
    }
    t.diagnostic(`${history.tokens.length} tokens over ${rounds} kills`);
  });
});

onPostgres('kill -9 and shutdown of PostgreSQL: the vault recovers, nothing is lost', async (t) => {
  const below = seeded(t);
  const cluster = await startPostgres();
  t.after(() => cluster.stop());
  const engine = engineOf('postgres');
  const place = { databaseUrl: await cluster.createDatabase(), dataDir: temporaryDirectory(t) };
  const vault = await spawnVault(t, environmentOf(place));
  const key = await createApplication(vault.url);
  const history = createHistory({ url: () => vault.url, key, below });
  for (let round = 0; round < databaseRounds; round += 1) {
    let left = 1 + below(answersMax);
    let refusals = 0;
    let back: Promise<void> | undefined;
    let over = false;
    const interrupt = async () => {
      if (round % 2 === 0) await cluster.kill();
      await cluster.restart();
      over = true;
    };
    await history.work(workers, (answered) => {
      left -= 1;
      if (left === 0) back = interrupt();
      assert.ok(answered, 'the vault answers whatever becomes of its database');
      if (answered.status < 400) return !over;
      assert.equal(answered.status, 503, answered.text);
      assert.match(answered.headers.get('content-type') ?? '', /^application\/problem\+json/);
      refusals += 1;
      return !over;
    });
    await back;
    assert.ok(refusals > 0, 'the database was away');
    await untilReady(vault.url);
    await checkHistory(engine, place, history);
  }
  t.diagnostic(`${history.tokens.length} tokens over ${databaseRounds} interruptions`);
});
