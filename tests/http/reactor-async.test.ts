/** POST /reactors/{id}/react-async, and GET /reactors/{id}/results/{requestId} and /reactors/{id}/logs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hour, minute } from '../../src/base/clock.ts';
import { encrypted } from '../support/client-encryption.ts';
import { onBothEngines } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import { createReactor, invoker, sendReactor, takeDue } from '../support/reactors.ts';
import { newTenant as newTenantOf, type TestTenant, tenantsOf } from '../support/tenant.ts';
import { visa } from '../support/values.ts';
import { startVault, type TestVault, threads } from '../support/vault.ts';

/** Runs what waits, until nothing does. */
async function runWaiting({ running }: TestVault): Promise<void> {
  const { reactorRuns } = running.vault;
  assert.ok(reactorRuns);
  for (;;) {
    const begun = await takeDue(reactorRuns);
    await reactorRuns.settled();
    if (begun === 0) return;
  }
}

async function begin(tenant: TestTenant, given: object, { key, args = {} }: Begun) {
  const { id } = await createReactor(tenant, given as Readonly<Record<string, unknown>>);
  const sent = { key, body: { args } };
  const accepted = await tenant.send('POST', `/reactors/${id}/react-async`, sent);
  assert.equal(accepted.status, 202, accepted.text);
  const { asyncReactorRequestId: request } = accepted.body;
  return { id, request, path: `/reactors/${id}/results/${request}` };
}

interface Begun {
  readonly key: string;
  readonly args?: unknown;
}

onBothEngines('asynchronous calls of reactors', (engine) => {
  const newTenant = tenantsOf(engine);

  test('202, then 404 until the result is there, then 200 with what a call would have given', async () => {
    const tenant = await newTenant();
    const { body: token } = await tenant.token({ type: 'token', data: 'secret' });
    const key = await invoker(tenant, 'token:create');
    const code = "module.exports = (req) => ({ raw: req.args, tokenize: 'made' })";
    const { id, request, path } = await begin(
      tenant,
      { code },
      { key, args: { a: `{{ ${token.id} }}` } },
    );
    assert.equal((await tenant.send('GET', path, { key })).status, 404);
    const [waiting] = await tenant.rows('reactor_runs');
    assert.ok(waiting && !Buffer.from(waiting.body).includes('secret'));
    await runWaiting(tenant.vault);
    const read = await tenant.send('GET', path, { key });
    assert.equal(read.status, 200, read.text);
    assert.deepEqual(read.body.raw, { a: 'secret' });
    assert.equal((await tenant.send('GET', `/tokens/${read.body.tokens}`)).body.data, 'made');
    const messages = (await tenant.rows('logs'))
      .filter(({ entity_id }) => entity_id === id)
      .map(({ message }) => message.replace(/ \d+ ms/, ' n ms'));
    assert.ok(messages.includes(`Reactor invoked: async ${request}`));
    assert.ok(messages.includes(`Reactor completed: async ${request}, after n ms`));
    assert.ok(messages.includes(`Reactor result retrieved: ${request}`));
  });

  test('the result is for whoever made the call, under the reactor it was made to', async () => {
    const tenant = await newTenant();
    const key = await invoker(tenant);
    const { path, request } = await begin(tenant, {}, { key });
    await runWaiting(tenant.vault);
    const other = await invoker(tenant);
    assert.equal((await tenant.send('GET', path, { key: other })).status, 404);
    const { id } = await createReactor(tenant);
    const elsewhere = `/reactors/${id}/results/${request}`;
    assert.equal((await tenant.send('GET', elsewhere, { key })).status, 404);
    assert.equal((await tenant.send('GET', `/reactors/${id}/results/x`, { key })).status, 404);
    assert.equal((await tenant.send('GET', path, { key })).status, 200);
  });

  test('no session stores encrypted data where the application reads more that authorized it', async () => {
    const tenant = await newTenant();
    const made = await tenant.send('POST', '/keys', { key: tenant.managementKey, body: {} });
    const jwe = await encrypted(made.body, JSON.stringify(visa));
    const rule = (priority: number, container: string, permissions: readonly string[]) => ({
      priority,
      container,
      permissions,
      transform: 'reveal',
    });
    const calling = ['token:create', 'reactor:invoke'];
    const authorizer = await tenant.application({
      rules: [rule(1, '/general/', ['token:read', 'token:create']), rule(2, '/', calling)],
    });
    const visitors = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const { nonce, session_key: key } = (await tenant.send('POST', '/sessions', { key: visitors }))
      .body;
    const authorized = await tenant.send('POST', '/sessions/authorize', {
      key: authorizer,
      body: { nonce, rules: [rule(1, '/', calling)] },
    });
    assert.equal(authorized.status, 200, authorized.text);
    const code = 'module.exports = (req) => ({ tokenize: req.args })';
    const args = { type: 'card', encrypted: jwe, containers: ['/general/'] };
    const { path } = await begin(tenant, { code }, { key, args });
    await runWaiting(tenant.vault);
    const read = await tenant.send('GET', path, { key });
    assert.equal(read.status, 403, read.text);
    assert.match(read.body.detail, /application that authorized the session would see more/);
    assert.deepEqual(await tenant.rows('tokens'), []);
  });

  test('what the code throws is the result, and its log is read with reactor:read', async () => {
    const tenant = await newTenant();
    const key = await invoker(tenant);
    const code = `const { AuthorizationError } = require('@basis-theory/basis-theory-reactor-formulas-sdk-js');
      module.exports = () => { console.warn('refusing'); throw new AuthorizationError('not you') }`;
    const { id, path, request } = await begin(tenant, { code }, { key });
    await runWaiting(tenant.vault);
    const read = await tenant.send('GET', path, { key });
    assert.equal(read.status, 403, read.text);
    assert.equal(read.body.detail, 'Forbidden');
    assert.deepEqual(read.body.errors, { error: ['not you'] });
    const logs = await sendReactor(tenant, 'GET', `/${id}/logs`);
    assert.equal(logs.status, 200, logs.text);
    const [{ lines, trace_id, created_at, ...logged }] = logs.body.data;
    assert.deepEqual(logged, {
      request_id: request,
      invocation_type: 'async',
      outcome: 'failed',
    });
    assert.deepEqual(
      lines.map(({ level, text }: { level: string; text: string }) => [level, text]),
      [['warn', 'refusing']],
    );
  });

  test('logs are pages, newest call first, and of one tenant and minute no more than 1 MiB', async () => {
    const tenant = await newTenant();
    const key = await invoker(tenant);
    const code = `module.exports = ({ args: { text, times = 1 } }) => {
      for (let line = 0; line < times; line++) console.log(text); return {} }`;
    const { id } = await createReactor(tenant, { code });
    const call = async (text: string, times = 1) => {
      const body = { args: { text, times } };
      const called = await tenant.send('POST', `/reactors/${id}/react`, { key, body });
      assert.equal(called.status, 200, called.text);
      tenant.vault.clock.advance(10);
    };
    for (const text of ['one', 'two', 'three']) await call(text);
    const seen: string[] = [];
    let start = '';
    for (let pages = 0; pages < 3; pages++) {
      const page = await sendReactor(tenant, 'GET', `/${id}/logs?size=1${start}`);
      seen.push(page.body.data[0].lines[0].text);
      start = `&start=${page.body.pagination.next}`;
    }
    assert.deepEqual(seen, ['three', 'two', 'one']);
    const wrong = await sendReactor(tenant, 'GET', `/${id}/logs?start=x`);
    assert.equal(wrong.status, 400);
    for (let calls = 0; calls < 20; calls++) await call('x'.repeat(1000), 60);
    const { body } = await sendReactor(tenant, 'GET', `/${id}/logs?size=100`);
    // Each thread counts for itself.
    assert.equal(body.data.length, threads === '1' ? 20 : 23);
  });

  test('a page of logs ends before the calls on it have more than 4 MiB', async () => {
    const tenant = await newTenant();
    const key = await invoker(tenant);
    const code = "module.exports = () => ({ raw: 'x'.repeat(1000000) })";
    const { id } = await createReactor(tenant, { code });
    for (let call = 0; call < 6; call++) {
      await tenant.send('POST', `/reactors/${id}/react-async`, { key, body: {} });
    }
    await runWaiting(tenant.vault);
    const seen: number[] = [];
    let start = '';
    while (seen.length < 3) {
      const page = await sendReactor(tenant, 'GET', `/${id}/logs?size=100${start}`);
      assert.equal(page.status, 200, page.text);
      seen.push(page.body.data.length);
      const { next } = page.body.pagination;
      if (next === undefined) break;
      start = `&start=${next}`;
    }
    assert.deepEqual(seen, [4, 2]);
  });

  test('a reactor whose runtime is asynchronous answers 202 to every call', async () => {
    const tenant = await newTenant();
    const key = await invoker(tenant);
    const code =
      'module.exports = async (event) => ({ res: { body: event.req, statusCode: 202 } })';
    const { id } = await createReactor(tenant, { code, runtime: { image: 'node22', async: true } });
    const accepted = await tenant.send('POST', `/reactors/${id}/react`, { key, body: { a: 1 } });
    assert.equal(accepted.status, 202, accepted.text);
    await runWaiting(tenant.vault);
    const path = `/reactors/${id}/results/${accepted.body.asyncReactorRequestId}`;
    const read = await tenant.send('GET', path, { key });
    assert.equal(read.status, 202);
    assert.deepEqual(read.body, { a: 1 });
  });

  test('results are gone after a day, for readers at once and then from the disk', async () => {
    const tenant = await newTenant();
    const key = await invoker(tenant);
    const { path } = await begin(tenant, {}, { key });
    await runWaiting(tenant.vault);
    tenant.vault.clock.advance(24 * hour - minute);
    assert.equal((await tenant.send('GET', path, { key })).status, 200);
    tenant.vault.clock.advance(minute);
    assert.equal((await tenant.send('GET', path, { key })).status, 404);
    assert.equal((await tenant.rows('reactor_runs')).length, 1);
    tenant.vault.clock.advance(5 * minute);
    await runJob(tenant.vault, 'remove results of reactors');
    assert.deepEqual(await tenant.rows('reactor_runs'), []);
  });

  test('deleting a reactor ends calls that wait, and those under way store nothing', async () => {
    const tenant = await newTenant();
    const key = await invoker(tenant, 'token:create');
    const waiting = await begin(tenant, {}, { key });
    assert.equal((await sendReactor(tenant, 'DELETE', `/${waiting.id}`)).status, 204);
    assert.deepEqual(await tenant.rows('reactor_runs'), []);
    const code =
      "module.exports = async () => { await new Promise((done) => setTimeout(done, 300)); return { tokenize: 'x' } }";
    await runWaiting(tenant.vault);
    const running = await begin(tenant, { code }, { key });
    const { reactorRuns } = tenant.vault.running.vault;
    assert.equal(await takeDue(reactorRuns), 1);
    assert.equal((await sendReactor(tenant, 'DELETE', `/${running.id}`)).status, 204);
    await reactorRuns?.settled();
    assert.deepEqual(await tenant.rows('reactor_runs'), []);
    assert.deepEqual(await tenant.rows('tokens'), []);
    const failed = (await tenant.rows('logs')).filter(({ operation }) => operation === 'fail');
    assert.match(failed[0]?.message ?? '', /the reactor was deleted/);
    assert.equal((await tenant.send('GET', running.path, { key })).status, 404);
  });

  test('the caller’s rights of the moment decide what becomes a token', async () => {
    const tenant = await newTenant();
    const application = await tenant.send('POST', '/applications', {
      key: tenant.managementKey,
      body: { name: 'a', type: 'private', permissions: ['reactor:invoke', 'token:create'] },
    });
    const { key, id } = application.body;
    const call = await begin(
      tenant,
      { code: "module.exports = () => ({ tokenize: 'x' })" },
      { key },
    );
    await tenant.send('PUT', `/applications/${id}`, {
      key: tenant.managementKey,
      body: { name: 'a', permissions: ['reactor:invoke'] },
    });
    await runWaiting(tenant.vault);
    const read = await tenant.send('GET', call.path, { key });
    assert.equal(read.status, 403, read.text);
    assert.deepEqual(await tenant.rows('tokens'), []);
  });

  test('a call is neither begun nor given once its application may not call reactors', async () => {
    const tenant = await newTenant();
    const { body: made } = await tenant.send('POST', '/applications', {
      key: tenant.managementKey,
      body: { name: 'a', type: 'private', permissions: ['reactor:invoke', 'token:create'] },
    });
    const allow = async (...permissions: readonly string[]) => {
      const body = { name: 'a', permissions: ['token:create', ...permissions] };
      const sent = { key: tenant.managementKey, body };
      const { status, text } = await tenant.send('PUT', `/applications/${made.id}`, sent);
      assert.equal(status, 200, text);
    };
    const { key } = made;
    const code = `module.exports = async () => { console.log('begun');
      await new Promise((done) => setTimeout(done, 300)); return { tokenize: 'made' } }`;
    const refusedOf = async (path: string) => {
      await allow('reactor:invoke');
      const { status, text, body } = await tenant.send('GET', path, { key });
      assert.equal(status, 500, text);
      assert.match(body.errors.error[0], /may not call reactors any more/);
      assert.deepEqual(await tenant.rows('tokens'), []);
    };
    const logOf = async (id: string) => (await sendReactor(tenant, 'GET', `/${id}/logs`)).body.data;

    const waiting = await begin(tenant, { code }, { key });
    await allow();
    await runWaiting(tenant.vault);
    assert.ok(!JSON.stringify(await logOf(waiting.id)).includes('begun'));
    await refusedOf(waiting.path);

    const underWay = await begin(tenant, { code }, { key });
    const { reactorRuns } = tenant.vault.running.vault;
    assert.equal(await takeDue(reactorRuns), 1);
    await allow();
    await reactorRuns?.settled();
    await refusedOf(underWay.path);

    // The older permission serves as well.
    const other = await begin(tenant, { code }, { key });
    await allow('token:use');
    await runWaiting(tenant.vault);
    assert.equal((await tenant.send('GET', other.path, { key })).status, 200);
  });

  test('an altered call is run by nobody, and stops no other', async () => {
    const tenant = await newTenant();
    const key = await invoker(tenant);
    const altered = await begin(tenant, {}, { key });
    const { place } = tenant.vault;
    const set = `created_at = created_at - 1 where run_id = '${altered.request}'`;
    await engine.run(place, `update reactor_runs set ${set}`);
    const other = await begin(tenant, {}, { key });
    await runWaiting(tenant.vault);
    assert.equal((await tenant.send('GET', altered.path, { key })).status, 404);
    assert.equal((await tenant.send('GET', other.path, { key })).status, 200);
  });

  test('429: of one tenant no more calls wait than its quota', async () => {
    const tenant = await newTenant();
    const key = await invoker(tenant);
    await tenant.setQuotas({ reactor_run_limit: 1 });
    const { id } = await begin(tenant, {}, { key });
    const refused = await tenant.send('POST', `/reactors/${id}/react-async`, { key, body: {} });
    assert.equal(refused.status, 429, refused.text);
    assert.match(refused.body.detail, /reactor_run_limit/);
  });

  test('a call survives a stop while it waits and while it runs', async (t) => {
    const place = await engine.place(t);
    const first = await startVault(t, engine, { place });
    const tenant = await newTenantOf(first);
    const key = await invoker(tenant);
    const { path } = await begin(tenant, {}, { key });
    const running = await begin(
      tenant,
      { code: 'module.exports = () => { for (;;) {} }', runtime: { timeout: 2 } },
      { key },
    );
    assert.equal(await takeDue(first.running.vault.reactorRuns), 2);
    await first.stop();
    const second = await startVault(t, engine, { place, clock: first.clock });
    await runWaiting(second);
    assert.equal((await second.send('GET', path, { key })).status, 200);
    const stopped = await second.send('GET', running.path, { key });
    assert.equal(stopped.status, 500, stopped.text);
    assert.match(stopped.body.errors.error[0], /longer than its time limit/);
  });

  test('a call for which no process can be started is run later', async (t) => {
    const place = await engine.place(t);
    const environment = { STRONGROOM_REACTOR_ISOLATION: 'none' };
    const broken = { name: 'none', isFiltered: false, words: ['/nowhere'] } as const;
    const findIsolation = async () => broken;
    const first = await startVault(t, engine, { place, environment, findIsolation });
    const tenant = await newTenantOf(first);
    const key = await invoker(tenant);
    const { path } = await begin(tenant, {}, { key });
    assert.equal(await takeDue(first.running.vault.reactorRuns), 1);
    await first.running.vault.reactorRuns?.settled();
    assert.equal((await first.send('GET', path, { key })).status, 404);
    await first.stop();
    const second = await startVault(t, engine, { place, clock: first.clock });
    await runWaiting(second);
    assert.equal((await second.send('GET', path, { key })).status, 200);
  });
});
