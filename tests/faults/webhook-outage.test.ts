/** Receivers that are out for an hour: every committed change has its event delivered, and nothing else is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hour, minute } from '../../src/base/clock.ts';
import { checkArrivals, tokenEvents } from '../support/committed-events.ts';
import { answer, type Behavior, type Exchange } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { createHistory } from '../support/history.ts';
import { nextLook } from '../support/poll.ts';
import { type Below, seeded } from '../support/random.ts';
import { addWebhook, allowing, type Receiver, startReceiver } from '../support/receivers.ts';
import { newTenant, type TestTenant } from '../support/tenant.ts';
import { startVault, type TestVault } from '../support/vault.ts';

const workers = 4;
const answersMax = 60;

/** Fails in every way; what hangs is given up when the test says so. */
function failing(below: Below, elsewhere: Receiver) {
  let hanging: Exchange[] = [];
  const ways: readonly Behavior[] = [
    answer(500),
    answer(307, ['location', elsewhere.url]),
    (exchange) => exchange.reset(),
    (exchange) => {
      hanging.push(exchange);
    },
  ];
  return {
    behavior: (exchange: Exchange) => (ways[below(ways.length)] ?? answer(500))(exchange),
    giveUp: () => {
      for (const exchange of hanging) exchange.reset();
      hanging = [];
    },
  };
}

/** When the first delivery of each entity is due; later ones may have to wait for it. */
async function dueTimes(tenant: TestTenant): Promise<number[]> {
  const heads = new Map<string, { readonly sequence: number; readonly due_at: number }>();
  for (const row of await tenant.rows('deliveries')) {
    const name = `${row.webhook_id} ${row.entity_id}`;
    const isFirst = row.sequence < (heads.get(name)?.sequence ?? Number.POSITIVE_INFINITY);
    if (row.state === 'waiting' && isFirst) heads.set(name, row);
  }
  return [...heads.values()].map(({ due_at }) => due_at);
}

interface Passing {
  readonly stepMs: number;
  readonly end?: number;
  readonly everyTurn?: () => void;
}

/** Moves the clock on whenever nothing is due, until nothing waits, or to that time. */
async function passTime(
  { clock }: TestVault,
  tenant: TestTenant,
  { stepMs, end = Number.POSITIVE_INFINITY, everyTurn = () => {} }: Passing,
): Promise<void> {
  while (clock.now() < end) {
    everyTurn();
    const undispatched = (await tenant.rows('events')).some(({ sequence }) => sequence === null);
    const times = await dueTimes(tenant);
    if (times.length === 0 && !undispatched) return;
    if (times.length > 0 && Math.min(...times) > clock.now()) clock.advance(stepMs);
    await nextLook();
  }
}

/** Requests that change nothing, of which nobody may learn. */
async function sendRefused(tenant: TestTenant, id: string): Promise<void> {
  const body = { id, type: 'token', data: 1 };
  const taken = await tenant.send('POST', '/tokens', { body });
  assert.equal(taken.status, 409);
  const unknown = await tenant.send('DELETE', '/tokens/of-nobody');
  assert.equal(unknown.status, 404);
  const card = { type: 'card', data: { number: 'no card' } };
  const invalid = await tenant.send('POST', '/tokens', { body: card });
  assert.equal(invalid.status, 400);
}

onBothEngines('webhooks whose receivers are out for an hour', (engine) => {
  test('every committed change arrives, none other, and in order where asked for', async (t) => {
    const below = seeded(t);
    const receivers = [await startReceiver(t), await startReceiver(t)] as const;
    const elsewhere = await startReceiver(t);
    const environment = allowing(t, [...receivers, elsewhere]);
    const vault = await startVault(t, engine, { environment });
    const tenant = await newTenant(vault);
    for (const receiver of receivers) {
      const ordered = receiver === receivers[0];
      const given = { url: receiver.url, events: tokenEvents, ordered };
      await addWebhook(vault.running.vault, tenant.id, given);
    }
    const taken = (await tenant.token({ id: 'taken', type: 'token', data: 1 })).body.id;
    const outages = receivers.map((receiver) => {
      const outage = failing(below, elsewhere);
      receiver.behave(outage.behavior);
      return outage;
    });
    const history = createHistory({ url: () => vault.url, key: tenant.key, below });
    let answers = 0;
    await history.work(workers, () => {
      answers += 1;
      return answers < answersMax;
    });
    await sendRefused(tenant, taken);
    const giveUp = () => {
      for (const outage of outages) outage.giveUp();
    };
    await passTime(vault, tenant, {
      stepMs: 20 * minute,
      end: vault.clock.now() + hour,
      everyTurn: giveUp,
    });
    for (const receiver of receivers) receiver.behave(answer());
    giveUp();
    await passTime(vault, tenant, { stepMs: 2 * hour });
    await checkArrivals(engine, vault.place, receivers);
    assert.equal(elsewhere.arrivals.length, 0);
    const counts = receivers.map(({ arrivals }) => arrivals.length);
    t.diagnostic(`${counts.join(' and ')} arrivals`);
  });
});
