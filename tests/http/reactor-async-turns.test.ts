/** Which asynchronous calls of reactors are run, when, and with whose rights. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { hour } from '../../src/base/clock.ts';
import { runReactors } from '../../src/runtime/jobs/run-reactors.ts';
import { onBothEngines } from '../support/engines.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { createReactor, invoker, takeDue } from '../support/reactors.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';

const { destination, url, environment } = await startCalled({ after });

/** Sends a request, and makes a token once that is answered. */
const fetching = `module.exports = async ({ args }) => {
  await fetch(args.url); return { tokenize: 'made' } }`;

/** Calls a new reactor so many times. */
async function accepted(tenant: TestTenant, { code, key, calls = 1 }: ToAccept) {
  const { id } = await createReactor(tenant, code === undefined ? {} : { code });
  let path = '';
  for (let call = 0; call < calls; call++) {
    const sent = { key, body: { args: { url } } };
    const { status, body, text } = await tenant.send('POST', `/reactors/${id}/react-async`, sent);
    assert.equal(status, 202, text);
    path = `/reactors/${id}/results/${body.asyncReactorRequestId}`;
  }
  return { id, path };
}

interface ToAccept {
  readonly key: string;
  readonly code?: string;
  readonly calls?: number;
}

const runsOf = ({ vault }: TestTenant) => {
  const { reactorRuns } = vault.running.vault;
  assert.ok(reactorRuns);
  return reactorRuns;
};

onBothEngines('asynchronous calls that wait', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  test('of a tenant are run in its turn, however many others have', async () => {
    const tenants = [await newTenant(), await newTenant(), await newTenant()] as const;
    const [first, second, third] = tenants;
    for (const tenant of [first, second]) {
      await accepted(tenant, {
        key: await invoker(tenant, 'token:create'),
        code: fetching,
        calls: 4,
      });
    }
    const key = await invoker(third);
    const { path } = await accepted(third, { key });
    for (let turn = 0; turn < 2; turn++) {
      // Until all that may begin at once has begun, none ends.
      const begun = Promise.withResolvers<void>();
      destination.behave(async ({ response }) => {
        await begun.promise;
        response.end();
      });
      await runsOf(first).look();
      begun.resolve();
      await runsOf(first).settled();
    }
    assert.equal((await third.send('GET', path, { key })).status, 200);
    await runsOf(first).look();
    await runsOf(first).settled();
  });

  test('of which one outlives its lease are run by another server, and one result is stored', async () => {
    const tenant = await newTenant();
    const key = await invoker(tenant, 'token:create');
    const runs = runsOf(tenant);
    const released = Promise.withResolvers<void>();
    destination.behave(async ({ response }) => {
      await released.promise;
      response.end();
    });
    const code = `module.exports = async ({ args }) => { await fetch(args.url); return { raw: 'done' } }`;
    const { id, path } = await accepted(tenant, { key, code });
    assert.equal(await takeDue(runs), 1);
    assert.equal(await takeDue(runs), 0);
    tenant.vault.clock.advance(hour);
    assert.equal(await takeDue(runs), 1);
    // Neither has ended before the other began.
    released.resolve();
    await runs.settled();
    assert.deepEqual((await tenant.send('GET', path, { key })).body, { raw: 'done' });
    const ends = (await tenant.rows('logs')).filter(
      ({ entity_id, operation }) => entity_id === id && /^(?:complete|fail)$/.test(operation),
    );
    assert.deepEqual(ends.map(({ operation }) => operation).sort(), ['complete', 'fail']);
  });

  test('are looked for when one was accepted, not while one takes its time, nor when it has ended', async () => {
    const tenant = await newTenant();
    const runs = runsOf(tenant);
    let looks = 0;
    const look = () => {
      looks += 1;
      return runs.look();
    };
    const { epochs } = tenant.vault.running.vault.store;
    const job = runReactors({ ...runs, look }, epochs);
    const { signal } = new AbortController();
    const asked = Promise.withResolvers<void>();
    const answered = Promise.withResolvers<void>();
    destination.behave(async ({ response }) => {
      asked.resolve();
      await answered.promise;
      response.end();
    });
    const key = await invoker(tenant, 'token:create');
    await accepted(tenant, { key, code: fetching });
    await job.run(signal);
    await asked.promise;
    for (let turn = 0; turn < 3; turn++) await job.run(signal);
    assert.equal(looks, 1);
    answered.resolve();
    await runs.settled();
    await job.run(signal);
    assert.equal(looks, 1);
    await accepted(tenant, { key });
    await job.run(signal);
    assert.equal(looks, 2);
    await runs.settled();
  });

  test('make tokens with the rights that their caller has when the code ends', async () => {
    const tenant = await newTenant();
    const { managementKey } = tenant;
    const body = { name: 'a', permissions: ['reactor:invoke', 'token:create'] };
    const { key, id } = (
      await tenant.send('POST', '/applications', {
        key: managementKey,
        body: { ...body, type: 'private' },
      })
    ).body;
    destination.behave(async ({ response }) => {
      const less = { ...body, permissions: ['reactor:invoke'] };
      await tenant.send('PUT', `/applications/${id}`, { key: managementKey, body: less });
      response.end();
    });
    const { path } = await accepted(tenant, { key, code: fetching });
    assert.equal(await takeDue(runsOf(tenant)), 1);
    await runsOf(tenant).settled();
    assert.equal((await tenant.send('GET', path, { key })).status, 403);
    assert.deepEqual(await tenant.rows('tokens'), []);
  });

  test('are not run after a day', async () => {
    const tenant = await newTenant();
    const key = await invoker(tenant);
    await accepted(tenant, { key });
    const [run] = await tenant.rows('reactor_runs');
    tenant.vault.clock.advance(24 * hour);
    assert.equal(await takeDue(runsOf(tenant)), 0);
    assert.deepEqual(await tenant.rows('reactor_runs'), []);
    const entries = (await tenant.rows('logs')).filter(
      ({ entity_id }) => entity_id === run?.run_id,
    );
    assert.equal(entries.at(-1)?.operation, 'fail');
  });

  test('are ended, without rights, where the application that called was altered', async () => {
    const tenant = await newTenant();
    const code = "module.exports = () => ({ tokenize: 'made' })";
    await accepted(tenant, { key: await invoker(tenant, 'token:create'), code });
    const set = `permissions = '["token:create","token:read"]'`;
    await engine.run(
      tenant.vault.place,
      `update applications set ${set} where tenant_id = '${tenant.id}' and type = 'private'`,
    );
    assert.equal(await takeDue(runsOf(tenant)), 1);
    await runsOf(tenant).settled();
    const [run] = await tenant.rows('reactor_runs');
    assert.equal(run?.due_at, null);
    assert.deepEqual(await tenant.rows('tokens'), []);
  });
});
