/** Processes: none before the first call, each for one tenant, bounded in number, and killed without loss. */
import assert from 'node:assert/strict';
import { getPriority } from 'node:os';
import test from 'node:test';
import { isolations } from '../../src/sandbox/isolation.ts';
import { openSandbox } from '../../src/sandbox/open.ts';
import type { PoolLimits } from '../../src/sandbox/pool.ts';
import { lowPriority } from '../../src/sandbox/priority.ts';
import type { Sandbox, SandboxCall } from '../../src/sandbox/sandbox.ts';
import { callOf, endOf, moduleOf, returnedBy } from '../support/code-calls.ts';
import { seeded } from '../support/random.ts';
import { descendants, killIfAlive } from '../support/running.ts';

async function open(bounds: Partial<PoolLimits>, use: (sandbox: Sandbox) => Promise<void>) {
  const sandbox = openSandbox(bounds);
  try {
    await use(sandbox);
  } finally {
    await sandbox.close();
  }
  assert.deepEqual(descendants(), []);
  assert.deepEqual(counts(sandbox), { processes: 0, running: 0, waiting: 0 });
}

/** On this machine. */
const strongest = await (async () => {
  const sandbox = openSandbox();
  await sandbox.run(callOf('module.exports = () => 1'));
  const { isolation } = sandbox.state();
  await sandbox.close();
  assert.ok(isolations().some(({ name }) => name === isolation));
  return isolation;
})();

function counts(sandbox: Sandbox) {
  const { processes, running, waiting } = sandbox.state();
  return { processes, running, waiting };
}

/** Calls that run until they are let go. */
function held() {
  const gate = Promise.withResolvers<unknown>();
  const served: (() => void)[] = [];
  const serve: SandboxCall['serve'] = () => {
    served.shift()?.();
    return gate.promise;
  };
  const begun = () => new Promise<void>((resolve) => served.push(resolve));
  const call = (tenant: string) =>
    callOf(moduleOf('return req.bt.detokenize({})'), { tenant, serve, bt: true });
  return { call, begun, letGo: () => gate.resolve('done') };
}

/** `undefined` where it has ended meanwhile. */
function priorityOf(pid: number): number | undefined {
  try {
    return getPriority(pid);
  } catch {
    return undefined;
  }
}

const newTurn = () => new Promise((turn) => setImmediate(turn));

const one = (tenant: string) => callOf(moduleOf('return 1'), { tenant });

test('there is no process before the first call, and none after the end', async () => {
  await open({}, async (sandbox) => {
    assert.deepEqual(counts(sandbox), { processes: 0, running: 0, waiting: 0 });
    assert.deepEqual(descendants(), []);
    assert.equal(await returnedBy(sandbox, one('a')), 1);
    assert.deepEqual(counts(sandbox), { processes: 1, running: 0, waiting: 0 });
  });
});

test('calls of one tenant use its process again; another tenant gets another', async () => {
  await open({}, async (sandbox) => {
    await returnedBy(sandbox, one('a'));
    const first = descendants();
    await returnedBy(sandbox, one('a'));
    assert.deepEqual(descendants(), first);
    await returnedBy(sandbox, one('b'));
    assert.equal(sandbox.state().processes, 2);
  });
});

test('a full pool ends an idle process rather than share it', async () => {
  await open({ processesMax: 1 }, async (sandbox) => {
    await returnedBy(sandbox, one('a'));
    const before = descendants();
    await returnedBy(sandbox, one('b'));
    assert.ok(descendants().every((pid) => !before.includes(pid)));
    assert.equal(sandbox.state().processes, 1);
  });
});

test('what a tenant may run at once is bounded, and so is what it may have waiting', async () => {
  const bounds = { callsPerTenantMax: 1, waitingPerTenantMax: 1 };
  await open(bounds, async (sandbox) => {
    const { call, begun, letGo } = held();
    const started = begun();
    const first = sandbox.run(call('a'));
    await started;
    const second = sandbox.run(call('a'));
    assert.deepEqual(counts(sandbox), { processes: 1, running: 1, waiting: 1 });
    assert.equal(endOf(await sandbox.run(one('a'))), 'tenant busy');
    assert.equal(await returnedBy(sandbox, one('b')), 1);
    letGo();
    assert.deepEqual([endOf(await first), endOf(await second)], ['returned', 'returned']);
  });
});

test('who has computed for long goes on at a lower priority, in new processes as well', async () => {
  await open({}, async (sandbox) => {
    const { call, begun, letGo } = held();
    const started = begun();
    const waiting = sandbox.run(call('waits'));
    await started;
    const waits = descendants();
    const stopping = new AbortController();
    const endless = callOf('module.exports = () => { for (;;) {} }', { tenant: 'computes' });
    const computing = sandbox.run({ ...endless, signal: stopping.signal });
    const computes = () => descendants().filter((pid) => !waits.includes(pid));
    while (!computes().some((pid) => priorityOf(pid) === lowPriority)) await newTurn();
    stopping.abort();
    assert.equal(endOf(await computing), 'stopped');
    assert.equal(await returnedBy(sandbox, one('computes')), 1);
    const again = computes();
    assert.ok(again.length > 0);
    for (const pid of again) assert.equal(priorityOf(pid), lowPriority);
    for (const pid of waits) assert.equal(priorityOf(pid), getPriority());
    letGo();
    assert.equal(endOf(await waiting), 'returned');
  });
});

test('what all tenants may run at once is bounded, and so is what may wait, and how long', async () => {
  const bounds = { processesMax: 1, waitingMax: 1, waitMsMax: 20 };
  await open(bounds, async (sandbox) => {
    const { call, begun, letGo } = held();
    const started = begun();
    const first = sandbox.run(call('a'));
    await started;
    const waiting = sandbox.run(one('b'));
    assert.equal(endOf(await sandbox.run(one('c'))), 'pool full');
    assert.equal(endOf(await waiting), 'pool full');
    letGo();
    assert.equal(endOf(await first), 'returned');
  });
});

test('of those that wait, a tenant that runs nothing comes first', async () => {
  await open({ processesMax: 2, callsPerTenantMax: 2, waitMsMax: 60_000 }, async (sandbox) => {
    const [first, second] = [held(), held()];
    const begun = Promise.all([first.begun(), second.begun()]);
    const running = [sandbox.run(first.call('a')), sandbox.run(second.call('a'))];
    await begun;
    const order: string[] = [];
    const others = ['a', 'a', 'b'].map(async (tenant) => {
      const serve = async () => order.push(tenant);
      const code = moduleOf('return req.bt.detokenize({})');
      await returnedBy(sandbox, callOf(code, { tenant, serve, bt: true }));
    });
    assert.equal(sandbox.state().waiting, 3);
    first.letGo();
    await Promise.all(others);
    second.letGo();
    await Promise.all(running);
    assert.deepEqual(order, ['b', 'a', 'a']);
  });
});

test('killing any process at any moment loses its call only', async () => {
  await open({}, async (sandbox) => {
    const { call, begun, letGo } = held();
    const started = begun();
    const lost = sandbox.run(call('a'));
    await started;
    const ofA = descendants();
    const other = begun();
    const kept = sandbox.run(call('b'));
    await other;
    for (const pid of ofA) killIfAlive(pid);
    assert.equal(endOf(await lost), 'crashed');
    letGo();
    assert.equal(await returnedBy(sandbox, one('a')), 1);
    assert.equal(endOf(await kept), 'returned');
    // Between calls, and while it starts.
    for (const pid of descendants()) killIfAlive(pid);
    assert.equal(await returnedBy(sandbox, one('b')), 1);
  });
});

test('kills at random moments lose no more calls than there were kills, and mix up none', async (t) => {
  const below = seeded(t);
  const [kills, tenants, callsOfTenant] = [12, 3, 12];
  await open({}, async (sandbox) => {
    const code = moduleOf(
      'for (const step of [1, 2, 3]) await req.bt.detokenize({ step }); return req.args',
    );
    let crashed = 0;
    let left = tenants;
    const tenant = async (name: string) => {
      for (let number = 0; number < callsOfTenant; number += 1) {
        const input = { args: { name, number }, configuration: {} };
        const result = await sandbox.run(
          callOf(code, { tenant: name, input, bt: true, serve: async () => null }),
        );
        if (result.kind === 'returned') assert.deepEqual(result.value, input.args);
        else assert.equal(endOf(result), 'crashed');
        crashed += result.kind === 'returned' ? 0 : 1;
      }
      left -= 1;
    };
    const killer = async () => {
      let killed = 0;
      while (killed < kills && left > 0) {
        for (let turns = below(500); turns > 0; turns -= 1) await new Promise(setImmediate);
        const pids = descendants();
        const pid = pids[below(Math.max(1, pids.length))];
        if (pid !== undefined && killIfAlive(pid)) killed += 1;
      }
      return killed;
    };
    const names = Array.from({ length: tenants }, (_none, at) => `tenant ${at}`);
    const [killed] = await Promise.all([killer(), ...names.map(tenant)]);
    assert.ok(killed > 0 && crashed <= killed, `${crashed} of ${killed}`);
    t.diagnostic(`${killed} kills, ${crashed} calls lost`);
    for (const name of names) assert.equal(await returnedBy(sandbox, one(name)), 1);
  });
});

test('a process that nobody uses ends', async () => {
  await open({ idleMsMax: 1 }, async (sandbox) => {
    await returnedBy(sandbox, one('a'));
    while (sandbox.state().processes > 0) await new Promise((turn) => setImmediate(turn));
  });
});

test('a call that is stopped ends its process', async () => {
  await open({}, async (sandbox) => {
    const { call, begun } = held();
    const leaving = new AbortController();
    const started = begun();
    const running = sandbox.run({ ...call('a'), signal: leaving.signal });
    await started;
    leaving.abort();
    assert.equal(endOf(await running), 'stopped');
    assert.equal(sandbox.state().processes, 0);
  });
});

test('closing ends what runs and what waits', async () => {
  const sandbox = openSandbox({ processesMax: 1 });
  const { call, begun } = held();
  const started = begun();
  const running = sandbox.run(call('a'));
  await started;
  const waiting = sandbox.run(one('b'));
  await sandbox.close();
  assert.equal(endOf(await waiting), 'stopped');
  assert.equal(endOf(await running), 'stopped');
  assert.equal(endOf(await sandbox.run(one('a'))), 'stopped');
});

test('a start that is killed does not weaken the next', async () => {
  await open({}, async (sandbox) => {
    const first = sandbox.run(one('a'));
    while (descendants().length === 0) await new Promise((turn) => setImmediate(turn));
    for (const pid of descendants()) killIfAlive(pid);
    assert.equal(endOf(await first), 'returned');
    assert.equal(sandbox.state().isolation, strongest);
  });
});

test('a process whose result took long to read rests, and others do not', async () => {
  await open({}, async (sandbox) => {
    const keys =
      'return Object.fromEntries(Array.from({ length: 40000 }, (_n, i) => ["k" + i, i]))';
    await returnedBy(sandbox, callOf(moduleOf(keys), { tenant: 'a' }));
    assert.equal(sandbox.state().running, 1);
    assert.equal(await returnedBy(sandbox, one('b')), 1);
    while (sandbox.state().running > 0) await new Promise((turn) => setImmediate(turn));
    assert.equal(await returnedBy(sandbox, one('a')), 1);
  });
});
