/** Refusals are in the log, at most once a second for each caller and reason, and none is lost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createRefusals,
  refusalReasonsMax,
  refusalWindowMs,
  refusalWindowsMax,
} from '../../src/audit/refusals.ts';
import type { Instant } from '../../src/base/clock.ts';
import type { ApplicationId } from '../../src/base/ids.ts';
import type { Change } from '../../src/store/change.ts';
import { withCommitSteps } from '../../src/store/commit/steps.ts';
import type { LogEntry } from '../../src/store/log-chain/entries.ts';
import type { Store } from '../../src/store/store.ts';
import { entriesIn } from '../support/blocks.ts';
import { entry, tenant, token } from '../support/changes.ts';
import { engineOf, onBothEngines } from '../support/engines.ts';
import { rowsOf, verifyLog } from '../support/rows.ts';
import { newTenant } from '../support/tenant.ts';
import { createStillClock, createTestClock, recorder, startVault } from '../support/vault.ts';

const denied = (id = '*', more: Partial<LogEntry> = {}): LogEntry => ({
  ...entry(id, 'read'),
  message: 'Token read denied',
  result: 'denied',
  ...more,
});

const caller = (index: number) =>
  `00000000-0000-4000-9000-${String(index).padStart(12, '0')}` as ApplicationId;

/** A store in whose place another can be put that fails. */
async function fixture(t: Parameters<typeof startVault>[0]) {
  const clock = createStillClock();
  const logged: Parameters<typeof recorder>[0] = [];
  const stored = await engineOf('sqlite').store(t);
  const state = { down: false };
  const store: Store = {
    ...stored,
    commit: (change) => (state.down ? Promise.reject(new Error('down')) : stored.commit(change)),
  };
  const refusals = createRefusals({ store, clock, log: recorder(logged) });
  t.after(() => refusals.close());
  const { commit } = withCommitSteps(store, [refusals.step]);
  const refuse = (...entries: [LogEntry, ...LogEntry[]]) => commit({ entries });
  const messages = async () => (await logs(stored)).map(({ message }) => message);
  return { clock, logged, stored, state, refusals, commit, refuse, messages };
}

const logs = async (store: Store) =>
  (await entriesIn(store)).toSorted((one, two) => one.seq - two.seq);

/** Sums up how many refusals entries stand for. */
const timesOf = (sum: number, { message }: { readonly message: string }) =>
  sum + Number(/\((\d+) times\)$/.exec(message)?.[1] ?? 1);

onBothEngines('Refused requests', (engine) => {
  test('403: the first is logged before its answer, those of the same second as one with their number', async (t) => {
    const vault = await startVault(t, engine, { clock: createStillClock() });
    const owner = await newTenant(vault);
    await owner.token({ id: 'one', type: 'token', data: 1 });
    const key = await owner.holder({ container: '/nowhere/' });
    const denials = async () =>
      (await owner.rows('logs')).filter(({ result }) => result === 'denied');
    const read = () => owner.send('GET', '/tokens/one', { key });
    assert.equal((await read()).status, 403);
    assert.equal((await denials()).length, 1);
    for (const { status } of await Promise.all(Array.from({ length: 200 }, read))) {
      assert.equal(status, 403);
    }
    assert.equal((await denials()).length, 1);
    vault.clock.advance(refusalWindowMs);
    assert.equal((await read()).status, 403);
    await vault.stop();
    const entries = (await verifyLog(engine, vault.place)).filter(
      ({ result }) => result === 'denied',
    );
    // The last one is counted with those before it, unless these were just written by the clock.
    assert.ok(entries.length === 2 || entries.length === 3, `${entries.length} entries`);
    assert.equal(entries.reduce(timesOf, 0), 202);
  });

  test('404: attempts at what does not exist are counted alike, and written down by a stop', async (t) => {
    const vault = await startVault(t, engine, { clock: createStillClock() });
    const owner = await newTenant(vault);
    for (let index = 0; index < 30; index += 1) {
      assert.equal((await owner.send('GET', `/tokens/none-${index}`)).status, 404);
    }
    assert.deepEqual(await owner.logged(), ['read failed']);
    await vault.stop();
    const failed = (await rowsOf(engine, vault.place, 'logs')).filter(
      ({ result }) => result === 'failed',
    );
    assert.deepEqual(failed.map(({ message }) => message).sort(), [
      'Token read failed',
      'Token read failed (29 times)',
    ]);
    assert.deepEqual(new Set(failed.map(({ entity_id }) => entity_id)), new Set(['*']));
    await verifyLog(engine, vault.place);
  });

  test('each caller, operation and entity has entries of its own', async (t) => {
    const vault = await startVault(t, engine, { clock: createStillClock() });
    const owner = await newTenant(vault);
    for (const id of ['one', 'two']) await owner.token({ id, type: 'token', data: 1 });
    const keys = [
      await owner.holder({ container: '/nowhere/' }),
      await owner.holder({ container: '/nowhere/' }),
    ];
    for (const key of keys) {
      for (const path of ['/tokens/one', '/tokens/two']) {
        for (const method of ['GET', 'DELETE', 'GET']) await owner.send(method, path, { key });
      }
    }
    const all = (await owner.logged()).filter((one) => one.endsWith('denied'));
    assert.deepEqual(all, [
      ...Array.from({ length: 4 }, () => 'delete denied'),
      ...Array.from({ length: 4 }, () => 'read denied'),
    ]);
  });

  test('lines of one bulk body that are refused alike are not logged each', async (t) => {
    const vault = await startVault(t, engine, { clock: createStillClock() });
    const owner = await newTenant(vault);
    const key = await owner.holder({ container: '/mine/' });
    const line = (containers: string[]) => JSON.stringify({ type: 'token', data: 1, containers });
    const body = [['/mine/'], ...Array.from({ length: 50 }, () => ['/other/'])]
      .map(line)
      .join('\n');
    const headers = { 'content-type': 'application/x-ndjson' };
    const answer = await owner.send('POST', '/tokens/bulk', { key, body, headers });
    assert.equal(answer.text.match(/"line":\d+,"status":403/g)?.length, 50);
    await vault.stop();
    const entries = await rowsOf(engine, vault.place, 'logs');
    const denials = entries.filter(({ result }) => result === 'denied');
    // Those beside the line that succeeds, the first without it, and those that follow: for each part of the body. The
    // vault sizes parts by the time they take, so a slow machine has more of them.
    assert.ok(denials.length < 50, `${denials.length} entries`);
    assert.equal(denials.reduce(timesOf, 0), 50);
  });
});

test('what was counted is written by the clock, without another request', async (t) => {
  const stored = await engineOf('sqlite').store(t);
  let committed: (change: Change) => void = () => undefined;
  const store: Store = {
    ...stored,
    commit: async (change) => {
      const outcome = await stored.commit(change);
      committed(change);
      return outcome;
    },
  };
  const refusals = createRefusals({ store, clock: createTestClock(), log: recorder([]) });
  t.after(() => refusals.close());
  const { commit } = withCommitSteps(store, [refusals.step]);
  for (let time = 0; time < 3; time += 1) await commit({ entries: [denied()] });
  const alive = setInterval(() => undefined, 1000);
  const change = await new Promise<Change>((resolve) => {
    committed = resolve;
  });
  clearInterval(alive);
  assert.equal(change.entries[0].message, 'Token read denied (2 times)');
});

test('an entry for several names the latest request, and an address only where it is that of all', async (t) => {
  const { refuse, stored, refusals } = await fixture(t);
  const from = (origin: string, at: number) =>
    denied('one', { origin, trace_id: `trace-${at}`, created_at: at as Instant });
  // Two addresses, and two of one /64 network of IPv6, which one client may have.
  const origins = [
    '10.0.0.1',
    '10.0.0.2',
    '10.0.0.2',
    '10.0.0.2',
    '2001:db8::1',
    '2001:db8::1',
    '2001:db8::2',
  ];
  for (const [at, origin] of origins.entries()) await refuse(from(origin, at));
  await refusals.close();
  assert.deepEqual(
    (await logs(stored)).map((row) => [row.origin, row.trace_id, row.created_at, row.message]),
    [
      ['10.0.0.1', 'trace-0', 0, 'Token read denied'],
      ['10.0.0.2', 'trace-1', 1, 'Token read denied'],
      ['2001:db8::1', 'trace-4', 4, 'Token read denied'],
      ['10.0.0.2', 'trace-3', 3, 'Token read denied (2 times)'],
      [null, 'trace-6', 6, 'Token read denied (2 times)'],
    ],
  );
});

test('a caller is refused for so many reasons a second, and what comes besides counts under *', async (t) => {
  const { refuse, messages, refusals, stored } = await fixture(t);
  for (let index = 0; index < refusalReasonsMax; index += 1) await refuse(denied(`id-${index}`));
  assert.equal((await messages()).length, refusalReasonsMax);
  for (let index = 0; index < 100; index += 1) await refuse(denied(`more-${index}`));
  assert.equal((await messages()).length, refusalReasonsMax + 1);
  await refuse(denied('id', { actor_id: caller(1) }));
  await refusals.close();
  const entries = await logs(stored);
  assert.equal(entries.length, refusalReasonsMax + 3);
  const besides = entries.filter(({ entity_id }) => entity_id === '*');
  assert.deepEqual(
    besides.map(({ message }) => message),
    ['Token read denied', 'Token read denied (99 times)'],
  );
});

test('where no more can be counted, refusals are logged one by one', async (t) => {
  const { refuse, messages } = await fixture(t);
  const many = Array.from({ length: refusalWindowsMax }, (_, index) =>
    denied('*', { actor_id: caller(index) }),
  ) as [LogEntry, ...LogEntry[]];
  await refuse(...many);
  await refuse(many[0]);
  assert.equal((await messages()).length, refusalWindowsMax);
  const another = denied('*', { actor_id: caller(refusalWindowsMax) });
  for (let time = 0; time < 3; time += 1) await refuse(another);
  assert.equal((await messages()).length, refusalWindowsMax + 3);
});

test('a refusal that cannot be logged fails the request, and leaves nothing; earlier counts stay', async (t) => {
  const { refuse, state, messages, clock } = await fixture(t);
  for (let time = 0; time < 5; time += 1) await refuse(denied());
  state.down = true;
  clock.advance(refusalWindowMs);
  const failing = Array.from({ length: 3 }, () => [refuse(denied()), refuse(denied('other'))]);
  for (const one of failing.flat()) await assert.rejects(one, /down/);
  await assert.rejects(refuse(denied('other')), /down/);
  state.down = false;
  await refuse(denied());
  await refuse(denied('other'));
  assert.deepEqual(await messages(), [
    'Token read denied',
    'Token read denied (5 times)',
    'Token read denied',
  ]);
});

test('counts that cannot be written at a stop go to the log of the operator', async (t) => {
  const { refuse, state, refusals, logged } = await fixture(t);
  for (let time = 0; time < 4; time += 1) await refuse(denied());
  state.down = true;
  await refusals.close();
  assert.deepEqual(
    logged.map(({ fields }) => fields?.count),
    [3],
  );
});

test('what succeeds is never counted instead of logged', async (t) => {
  const { commit, messages } = await fixture(t);
  for (const id of ['one', 'two']) {
    await commit({
      insert: { tokens: [token(id)] },
      entries: [entry(id), denied(), denied()],
    });
    await commit({ entries: [entry(tenant, 'list')] });
  }
  const all = await messages();
  assert.equal(all.filter((message) => message === 'Token created').length, 4);
  assert.equal(all.filter((message) => message === 'Token read denied (2 times)').length, 2);
});
