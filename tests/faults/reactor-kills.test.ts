/** SIGKILL and asynchronous calls of reactors: each that was accepted ends once, and none is run for ever. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { second } from '../../src/base/clock.ts';
import { type Engine, onBothEngines, type Place } from '../support/engines.ts';
import { type Environment, environmentOf, spawnVault, withCode } from '../support/process.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { casesOf, seeded } from '../support/random.ts';
import { takeDue } from '../support/reactors.ts';
import { rowsOf } from '../support/rows.ts';
import type { Lender } from '../support/temporary.ts';
import {
  createApplication,
  createTestClock,
  managementKey,
  request,
  startVault,
} from '../support/vault.ts';

const kills = casesOf({ all: 3, drawn: 2 });
const clients = 3;
const callsMax = 8;

/** Longer than any call of these tests is leased to the server that began it. */
const afterLeasesMs = 60 * second;

/** Leases end before the clock is past them, and calls have time on a busy machine. */
async function createReactor(url: string, code: string): Promise<string> {
  const body = { name: 'a', code, runtime: { timeout: 20 } };
  const created = await request(`${url}/reactors`, 'POST', { key: managementKey, body });
  assert.equal(created.status, 201, created.text);
  return created.body.id;
}

const invokerOf = (url: string) =>
  createApplication(url, { permissions: ['reactor:invoke', 'token:create'] });

const accept = (url: string, id: string, key: string, args: object) =>
  request(`${url}/reactors/${id}/react-async`, 'POST', { key, body: { args } });

/** A vault over the same place, as late as that, which has run whatever may be run by then. */
async function laterVault(t: Lender, engine: Engine, { place, environment, ms }: Later) {
  const clock = createTestClock();
  clock.advance(ms);
  const vault = await startVault(t, engine, { place, clock, environment });
  const runs = vault.running.vault.reactorRuns;
  assert.ok(runs);
  // The vault's own job may have begun some of them.
  do await runs.settled();
  while ((await takeDue(runs)) > 0);
  return vault;
}

interface Later {
  readonly place: Place;
  readonly environment: Environment;
  readonly ms: number;
}

async function ends(engine: Engine, place: Place): Promise<string[]> {
  const entries = await rowsOf(engine, place, 'logs');
  return entries.flatMap(({ entity_type, operation, message }) => {
    const isEnd = entity_type === 'reactor' && /^(?:complete|fail)$/.test(operation);
    return isEnd ? [/async (\S+?),/.exec(message)?.[1] ?? ''] : [];
  });
}

const working = `module.exports = async ({ args }) => {
  await new Promise((done) => setTimeout(done, args.ms));
  return { raw: args, tokenize: 'made ' + args.number };
}`;

onBothEngines(`asynchronous calls and ${kills} kills of the vault at any moment`, (engine) => {
  test('every accepted call has its result and its token once; a deleted reactor ends its own', async (t) => {
    const below = seeded(t);
    const place = await engine.place(t);
    const environment = environmentOf(place, withCode);
    let vault = await spawnVault(t, environment);
    const key = await invokerOf(vault.url);
    const [id, deleted] = [
      await createReactor(vault.url, working),
      await createReactor(vault.url, working),
    ];
    const accepted = new Map<string, { readonly number: number; readonly ms: number }>();
    const dropped: string[] = [];
    let number = 0;
    for (let kill = 0; kill < kills; kill += 1) {
      let left = 1 + below(callsMax);
      const client = async () => {
        while (left > 0) {
          number += 1;
          const args = { number, ms: 1 + below(100) };
          const answer = await accept(vault.url, id, key, args).catch(() => undefined);
          if (answer === undefined) return;
          assert.equal(answer.status, 202, answer.text);
          accepted.set(answer.body.asyncReactorRequestId, args);
          left -= 1;
          if (left === 0) void vault.kill();
        }
      };
      if (kill === kills - 1) {
        for (let call = 0; call < 3; call += 1) {
          const answer = await accept(vault.url, deleted, key, { number: 0, ms: 900 });
          dropped.push(answer.body.asyncReactorRequestId);
        }
        const path = `${vault.url}/reactors/${deleted}`;
        assert.equal((await request(path, 'DELETE', { key: managementKey })).status, 204);
      }
      await Promise.all(Array.from({ length: clients }, client));
      await vault.finished;
      if (kill < kills - 1) vault = await spawnVault(t, environment);
    }
    const later = await laterVault(t, engine, { place, environment: {}, ms: afterLeasesMs });
    for (const [run, args] of accepted) {
      const read = await later.send('GET', `/reactors/${id}/results/${run}`, { key });
      assert.equal(read.status, 200, read.text);
      assert.deepEqual(read.body.raw, args);
    }
    for (const run of dropped) {
      const path = `/reactors/${deleted}/results/${run}`;
      assert.equal((await later.send('GET', path, { key })).status, 404);
    }
    const runs = await rowsOf(engine, place, 'reactor_runs');
    assert.ok(runs.every((row) => row.reactor_id === id && row.due_at === null));
    const ended = (await ends(engine, place)).filter((run) => !dropped.includes(run));
    assert.equal(new Set(ended).size, ended.length);
    assert.deepEqual(ended.toSorted(), runs.map(({ run_id }) => run_id).toSorted());
    assert.ok([...accepted.keys()].every((run) => ended.includes(run)));
    assert.equal((await rowsOf(engine, place, 'tokens')).length, ended.length);
    t.diagnostic(`${accepted.size} calls accepted, ${ended.length} ended`);
  });
});

/** The command line by a clock that is as far ahead, on all threads. */
function serveAhead(ms: number): readonly string[] {
  const script = `const now = Date.now; Date.now = () => now() + ${ms};`;
  const main = join(import.meta.dirname, '..', '..', 'bin', 'strongroom.js');
  const shifted = `data:text/javascript,${encodeURIComponent(script)}`;
  return [process.execPath, '--import', shifted, main, 'serve'];
}

const { destination, url: address, environment: allowed } = await startCalled({ after });

const asking = `module.exports = async ({ args }) => ({ raw: (await fetch(args.url)).status })`;

onBothEngines('a call whose server is killed each time', (engine) => {
  /** The call is begun and its server killed so often; then it is run once more, if it is. */
  async function begunTimes(t: Lender, times: number) {
    const place = await engine.place(t);
    const environment = environmentOf(place, withCode, allowed);
    let begun = 0;
    let arrived = Promise.withResolvers<void>();
    destination.behave(({ response }) => {
      begun += 1;
      if (begun > times) response.end();
      else arrived.resolve();
    });
    let call: { readonly path: string; readonly key: string } | undefined;
    for (let time = 0; time < times; time += 1) {
      arrived = Promise.withResolvers();
      const vault = await spawnVault(t, environment, serveAhead(time * afterLeasesMs));
      if (call === undefined) {
        const key = await invokerOf(vault.url);
        const id = await createReactor(vault.url, asking);
        const { body } = await accept(vault.url, id, key, { url: address });
        call = { key, path: `/reactors/${id}/results/${body.asyncReactorRequestId}` };
      }
      await arrived.promise;
      await vault.kill();
    }
    assert.ok(call);
    const ms = times * afterLeasesMs;
    const later = await laterVault(t, engine, { place, environment: allowed, ms });
    const read = await later.send('GET', call.path, { key: call.key });
    return { begun, read };
  }

  test('is begun three times', async (t) => {
    const { begun, read } = await begunTimes(t, 2);
    assert.equal(begun, 3);
    assert.equal(read.status, 200, read.text);
    assert.deepEqual(read.body, { raw: 200 });
  });

  test('is not begun a fourth time: its result says so', async (t) => {
    const { begun, read } = await begunTimes(t, 3);
    assert.equal(begun, 3);
    assert.equal(read.status, 500, read.text);
    assert.match(read.body.errors.error[0], /begun 3 times, and its server stopped each time/);
  });
});
