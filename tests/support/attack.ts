/** Runs hostile programs one after another in one sandbox, and a good one of another tenant after each. */
import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import type { FetchOutput } from '../../src/reactors/sandbox/sandbox.ts';
import { callOf, endOf, moduleOf, returnedBy } from './code-calls.ts';
import type { HostileProgram } from './hostile-programs.ts';
import { descendants } from './running.ts';
import { openTestSandbox } from './sandboxes.ts';

const timeoutMs = 1_000;
/** For what can end in no other way, and is no other attack after a second than after this. */
const endlessMs = 200;
const served: FetchOutput = { status: 200, statusText: 'OK', headers: [], body: '' };

export function attack(programs: readonly HostileProgram[]): void {
  const sandbox = openTestSandbox({ processesMax: 2 });
  const victim = callOf(
    `module.exports = (req) => ({ secret: req.args.secret, polluted: Object.keys(Object.prototype).length,
      left: typeof left })`,
    { tenant: 'victim', input: { args: { secret: '4242424242424242' } } },
  );
  const unharmed = { secret: '4242424242424242', polluted: 0, left: 'undefined' };

  after(async () => {
    await sandbox.close();
    assert.deepEqual(descendants(), [], 'no process is left');
  });

  for (const { name, code, ends, value } of programs) {
    test(name, async () => {
      // What ends by itself has time for it on a busy machine as well.
      const isEndless = ends.every((end) => end === 'timeout');
      const boundedMs = ends.includes('timeout') ? timeoutMs : 300 * timeoutMs;
      const patienceMs = isEndless ? endlessMs : boundedMs;
      const call = { tenant: 'attacker', timeoutMs: patienceMs, serve: async () => served };
      const result = await sandbox.run(callOf(moduleOf(code), call));
      assert.ok(ends.includes(endOf(result)), JSON.stringify(result).slice(0, 300));
      if (result.kind === 'returned' && value !== undefined) assert.deepEqual(result.value, value);
      assert.ok(result.log.length <= 1_000);
      assert.ok(JSON.stringify(result).length < 2 ** 21);
      // A large result keeps its process from the next call for a moment.
      while (sandbox.state().running > 0) await new Promise((turn) => setImmediate(turn));
      if (result.kind === 'ended' && result.reason === 'timeout') {
        // It was resolved by the end of the process: those that are left belong to the pool.
        assert.ok(sandbox.state().processes <= 1);
      }
      assert.deepEqual(await returnedBy(sandbox, victim), unharmed);
      assert.ok(sandbox.state().processes <= 2);
    });
  }
}
