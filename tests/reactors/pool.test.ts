/** Processes: none before the first call, each for one tenant, bounded in number, and killed without loss. */
import assert from 'node:assert/strict';
import { getPriority } from 'node:os';
import test from 'node:test';
import { openSandbox, type SandboxOptions } from '../../src/reactors/sandbox/open.ts';
import type { PoolLimits } from '../../src/reactors/sandbox/pool.ts';
import { lowPriority } from '../../src/reactors/sandbox/priority.ts';
import type { Sandbox, SandboxCall } from '../../src/reactors/sandbox/sandbox.ts';
import { callOf, endOf, moduleOf, returnedBy } from '../support/code-calls.ts';
import { seeded } from '../support/random.ts';
import { descendants, killIfAlive } from '../support/running.ts';
import { isolation, openTestSandbox } from '../support/sandboxes.ts';

async function open(
  bounds: Partial<PoolLimits>,
  use: (sandbox: Sandbox) => Promise<void>,
  options: SandboxOptions = {},
) {
  const sandbox = openTestSandbox(bounds, options);
  try {
    await use(sandbox);
  } finally {
    await sandbox.close();
  }
  await untilRested(sandbox);
  assert.deepEqual(descendants(), []);
  assert.deepEqual(counts(sandbox), { processes: 0, running: 0, waiting: 0 });
}

function counts(sandbox: Sandbox) {
  const { processes, running, waiting } = sandbox.state();
  return { processes, running, waiting };
}

/** A process whose result took long to read rests, as any may on a busy machine; it is not idle before. */
async function untilRested(sandbox: Sandbox): Promise<void> {
  while (sandbox.state().running > 0) await newTurn();
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
    await untilRested(sandbox);
    assert.deepEqual(counts(sandbox), { processes: 1, running: 0, waiting: 0 });
  });
});

test('calls of one tenant use its process again; another tenant gets another', async () => {
  await open({}, async (sandbox) => {
    await returnedBy(sandbox, one('a'));
    await untilRested(sandbox);
    const first = descendants();
    await returnedBy(sandbox, one('a'));
    assert.deepEqual(descendants(), first);
    await untilRested(sandbox);
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
  const bounds = { processesPerTenantMax: 1, waitingPerTenantMax: 1 };
  await open(bounds, async (sandbox) => {
    const { call, begun, letGo } = held();
    const started = begun();
    const first = sandbox.run(call('a'));
    await started;
    while (sandbox.state().running > 0) await newTurn();
    const second = sandbox.run(call('a'));
    assert.deepEqual(counts(sandbox), { processes: 1, running: 0, waiting: 1 });
    assert.equal(endOf(await sandbox.run(one('a'))), 'tenant busy');
    assert.equal(await returnedBy(sandbox, one('b')), 1);
    letGo();
    assert.deepEqual([endOf(await first), endOf(await second)], ['returned', 'returned']);
  });
});

test('who has computed for long goes on at a lower priority, in new processes as well', async () => {
  // Nothing is forgiven meanwhile, however long a busy machine takes.
  const stopped = { now: () => 0 };
  const use = async (sandbox: Sandbox) => {
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
  };
  await open({}, use, stopped);
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
  await open({ processesMax: 2, waitMsMax: 60_000 }, async (sandbox) => {
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
  const sandbox = openTestSandbox({ processesMax: 1 });
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

test('a start that is killed is made again', async () => {
  await open({}, async (sandbox) => {
    const first = sandbox.run(one('a'));
    while (descendants().length === 0) await new Promise((turn) => setImmediate(turn));
    for (const pid of descendants()) killIfAlive(pid);
    assert.equal(endOf(await first), 'returned');
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

test('a call that waits for a host lets another compute, and goes on when it may', async () => {
  await open({ runningMax: 1, waitMsMax: 60_000 }, async (sandbox) => {
    const { call, begun, letGo } = held();
    const started = begun();
    const waits = sandbox.run(call('a'));
    await started;
    while (sandbox.state().running > 0) await newTurn();
    const stopping = new AbortController();
    const endless = callOf('module.exports = () => { console.log(1); for (;;) {} }', {
      tenant: 'b',
    });
    const computing = sandbox.run({ ...endless, signal: stopping.signal });
    assert.equal(sandbox.state().running, 1);
    letGo();
    for (let turns = 0; turns < 1_000; turns += 1) await newTurn();
    assert.equal(sandbox.state().running, 1);
    stopping.abort();
    assert.equal(endOf(await computing), 'stopped');
    assert.equal(endOf(await waits), 'returned');
  });
});

test('tenants whose calls wait for hosts leave processes to those that have none', async () => {
  await open({ processesMax: 8, processesPerTenantMax: 4, waitMsMax: 60_000 }, async (sandbox) => {
    const { call, letGo } = held();
    const tenants = ['a', 'a', 'a', 'a', 'b', 'b', 'b', 'b'];
    const waiting = tenants.map((tenant) => sandbox.run(call(tenant)));
    assert.equal(await returnedBy(sandbox, one('c')), 1);
    assert.equal(await returnedBy(sandbox, one('d')), 1);
    letGo();
    const ends = (await Promise.all(waiting)).map(endOf);
    assert.deepEqual(
      ends,
      tenants.map(() => 'returned'),
    );
  });
});

test('a tenant cannot fill the queue: its last call makes way for one of another', async () => {
  await open({ processesMax: 1, waitingMax: 2, waitMsMax: 60_000 }, async (sandbox) => {
    const { call, begun, letGo } = held();
    const started = begun();
    const first = sandbox.run(call('a'));
    await started;
    const waiting = [sandbox.run(one('a')), sandbox.run(one('a'))];
    const other = sandbox.run(one('b'));
    assert.equal(endOf(await (waiting[1] as (typeof waiting)[0])), 'tenant busy');
    assert.equal(sandbox.state().waiting, 2);
    letGo();
    assert.deepEqual(
      (await Promise.all([first, waiting[0], other])).map((end) => end && endOf(end)),
      ['returned', 'returned', 'returned'],
    );
  });
});

test('tenants that compute without end keep nobody from computing beside them', async () => {
  const bounds = { runningMax: 2, runningPerTenantMax: 1, waitMsMax: 60_000 };
  await open(bounds, async (sandbox) => {
    const stopping = new AbortController();
    const endless = ['a', 'b'].map((tenant) => {
      const call = callOf('module.exports = () => { for (;;) {} }', { tenant });
      return sandbox.run({ ...call, signal: stopping.signal });
    });
    assert.equal(await returnedBy(sandbox, one('c')), 1);
    assert.equal(sandbox.state().running, 2);
    const more = callOf('module.exports = () => 1', { tenant: 'a', signal: stopping.signal });
    const second = sandbox.run(more);
    assert.equal(sandbox.state().waiting, 1);
    stopping.abort();
    assert.deepEqual((await Promise.all(endless)).map(endOf), ['stopped', 'stopped']);
    await second;
  });
});

test('parties of a tenant take turns, and none can fill the queue of the tenant', async () => {
  const bounds = { processesPerTenantMax: 1, waitingPerTenantMax: 3, waitMsMax: 60_000 };
  await open(bounds, async (sandbox) => {
    const { call, begun, letGo } = held();
    const started = begun();
    const first = sandbox.run({ ...call('a'), parties: ['visitors', 'x'] });
    await started;
    const order: string[] = [];
    const waits = (...parties: string[]) =>
      sandbox.run(
        callOf(moduleOf('return req.bt.detokenize({})'), {
          tenant: 'a',
          parties,
          bt: true,
          serve: async () => order.push(parties.join(' ')),
        }),
      );
    const visitors = [1, 2, 3].map(() => waits('visitors', 'x'));
    assert.equal(endOf(await waits('visitors', 'x')), 'tenant busy');
    const others = [waits('servers', 'key'), waits('visitors', 'y')];
    assert.equal(endOf(await (visitors[2] as (typeof visitors)[0])), 'tenant busy');
    assert.equal(endOf(await waits('visitors', 'y')), 'tenant busy');
    letGo();
    const ends = await Promise.all([first, visitors[0], ...others]);
    assert.deepEqual(
      ends.map((end) => end && endOf(end)),
      ['returned', 'returned', 'returned', 'returned'],
    );
    assert.equal(order[0], 'servers key');
    assert.equal(order[1], 'visitors y');
  });
});

test('a check takes no process from calls, and is left out where all checks are busy', async () => {
  await open({ processesMax: 1 }, async (sandbox) => {
    const { call, begun, letGo } = held();
    const started = begun();
    const first = sandbox.run(call('a'));
    await started;
    const check = (tenant: string, code: string) =>
      sandbox.check({ tenant, code, modules: new Map() });
    assert.match((await check('b', 'throw 1'))?.message ?? '', /throws an error/);
    // Each takes as long as a check may: some wait longer than a check waits.
    const endless = Array.from({ length: 8 }, (_none, at) => check(`tenant ${at}`, 'for (;;);'));
    const found = await Promise.all(endless);
    for (const problem of found) assert.ok(problem === undefined || problem.kind === 'fails');
    assert.ok(found.includes(undefined));
    letGo();
    assert.equal(endOf(await first), 'returned');
  });
});

test('a start that fails is made again in the same way, and refuses the call in the end', async () => {
  const unable = { ...isolation, words: ['/bin/false'] };
  const sandbox = openSandbox(unable, { bounds: { waitMsMax: 200 } });
  const absent = openSandbox({ ...isolation, words: ['/nowhere'] }, { bounds: { waitMsMax: 200 } });
  // Fails every other time.
  const words = [
    ...[
      '/bin/sh',
      '-c',
      'case $(cat /proc/sys/kernel/random/uuid) in [0-7]*) exit 1;; esac; exec "$@"',
    ],
    ...['sh', ...isolation.words],
  ];
  const shaky = openSandbox({ ...isolation, words }, { bounds: { idleMsMax: 1 } });
  try {
    assert.equal(endOf(await sandbox.run(one('a'))), 'no process');
    assert.equal(endOf(await absent.run(one('a'))), 'no process');
    assert.deepEqual(counts(sandbox), { processes: 0, running: 0, waiting: 0 });
    const tenants = ['a', 'b', 'c', 'd', 'e', 'f'];
    const ends = await Promise.all(tenants.map((tenant) => shaky.run(one(tenant))));
    assert.deepEqual(
      ends.map(endOf),
      tenants.map(() => 'returned'),
    );
  } finally {
    await Promise.all([sandbox.close(), absent.close(), shaky.close()]);
  }
});
