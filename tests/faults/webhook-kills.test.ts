/** SIGKILL and failing receivers: every committed change has its event delivered, and nothing else is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkArrivals, tokenEvents } from '../support/committed-events.ts';
import { answer } from '../support/destination.ts';
import { engineOf, onBothEngines } from '../support/engines.ts';
import { createHistory } from '../support/history.ts';
import { startPostgres } from '../support/postgres.ts';
import { environmentOf, spawnVault, untilReady } from '../support/process.ts';
import { type Below, casesOf, seeded } from '../support/random.ts';
import { allowing, type Receiver, startReceiver } from '../support/receivers.ts';
import { type Lender, temporaryDirectory } from '../support/temporary.ts';
import { createApplication, managementKey, request } from '../support/vault.ts';

const rounds = casesOf({ all: 2, drawn: 1 });
const workers = 6;
const answersMax = 100;

/** One that wants events in order, and one that does not care; each refuses some events once. */
async function startReceivers(t: Lender, below: Below) {
  const receivers = [await startReceiver(t), await startReceiver(t)] as const;
  for (const receiver of receivers) {
    const refused = new Set<string>();
    receiver.behave((exchange) => {
      const id = receiver.arrivals.at(-1)?.event.id ?? '';
      if (refused.has(id) || below(20) > 0) return answer()(exchange);
      refused.add(id);
      return below(2) === 0 ? answer(500)(exchange) : exchange.reset();
    });
  }
  return receivers;
}

async function createWebhooks(url: string, [ordered, other]: readonly [Receiver, Receiver]) {
  for (const receiver of [ordered, other]) {
    const body = {
      name: 'a',
      url: receiver.url,
      events: tokenEvents,
      ordered: receiver === ordered,
    };
    const created = await request(`${url}/webhooks`, 'POST', { key: managementKey, body });
    assert.equal(created.status, 201, created.text);
  }
}

onBothEngines('webhooks and kill -9 of the vault', (engine) => {
  test('every committed change arrives, none other, and in order where asked for', async (t) => {
    const below = seeded(t);
    const place = await engine.place(t);
    const receivers = await startReceivers(t, below);
    const environment = environmentOf(place, allowing(t, receivers));
    let vault = await spawnVault(t, environment);
    await createWebhooks(vault.url, receivers);
    const key = await createApplication(vault.url);
    const history = createHistory({ url: () => vault.url, key, below });
    for (let round = 0; round < rounds; round += 1) {
      let left = answersMax / 2 + below(answersMax);
      await history.work(workers, (answered) => {
        left -= 1;
        if (left === 0) void vault.kill();
        return answered !== undefined;
      });
      await vault.finished;
      vault = await spawnVault(t, environment);
    }
    await checkArrivals(engine, place, receivers);
    t.diagnostic(`${receivers[0].arrivals.length} arrivals over ${rounds} kills`);
  });
});

test('webhooks and kill -9 of PostgreSQL: every committed change arrives, none other', async (t) => {
  const below = seeded(t);
  const cluster = await startPostgres();
  t.after(() => cluster.stop());
  const engine = engineOf('postgres');
  const place = { databaseUrl: await cluster.createDatabase(), dataDir: temporaryDirectory(t) };
  const receivers = await startReceivers(t, below);
  const vault = await spawnVault(t, environmentOf(place, allowing(t, receivers)));
  await createWebhooks(vault.url, receivers);
  const key = await createApplication(vault.url);
  const history = createHistory({ url: () => vault.url, key, below });
  for (let round = 0; round < rounds; round += 1) {
    let left = answersMax / 2 + below(answersMax);
    let back: Promise<void> | undefined;
    let over = false;
    const interrupt = async () => {
      await cluster.kill();
      await cluster.restart();
      over = true;
    };
    await history.work(workers, () => {
      left -= 1;
      if (left === 0) back = interrupt();
      return !over;
    });
    await back;
    await untilReady(vault.url);
  }
  await checkArrivals(engine, place, receivers);
});
