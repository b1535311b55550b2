/** A request whose policy wants a person is neither opened nor sent before one has approved exactly this request. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { day, minute } from '../../src/base/clock.ts';
import { approvalLimits } from '../../src/proxies/approvals/waiting.ts';
import { leaveApproval } from '../support/approvals.ts';
import { answer } from '../support/destination.ts';
import { type Agent, beginRequest, newAgent, type Sending } from '../support/egress.ts';
import { type Engine, engineOf, onBothEngines } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import { signInPerson } from '../support/people.ts';
import { untilSo } from '../support/poll.ts';
import { startCalled } from '../support/proxy-calls.ts';
import type { Lender } from '../support/temporary.ts';
import { newTenant } from '../support/tenant.ts';
import { startVault, type TestVault, type TestVaultOptions } from '../support/vault.ts';

const ends: (() => unknown)[] = [];
const lender = { after: (end: () => unknown) => void ends.unshift(end) };
after(async () => {
  for (const end of ends) await end();
});

const called = await startCalled(lender);
const { destination } = called;
const authority = `localhost:${destination.port}`;
const visa = '4242424242424242';

const policy = {
  host: 'localhost',
  port: destination.port,
  tokens: ['card'],
  places: ['json:card.*', 'header:authorization'],
  approval: 'always',
};

const startWithEgress = (t: Lender, engine: Engine, options: TestVaultOptions = {}) =>
  startVault(t, engine, {
    ...options,
    environment: {
      ...called.environment,
      STRONGROOM_EGRESS_ADDRESS: '127.0.0.1:0',
      STRONGROOM_CONSOLE: 'on',
    },
  });

/** What was received since the last look. */
const received = () => destination.requests.splice(0).filter(({ url }) => url !== '/hook');

onBothEngines('approvals', (engine) => {
  let started: Promise<TestVault> | undefined;
  const theVault = () => {
    started ??= startWithEgress(lender, engine);
    return started;
  };

  async function agentOf(egress?: object, vault?: TestVault): Promise<Agent> {
    const tenant = await newTenant(vault ?? (await theVault()));
    const data = { number: visa, expiration_month: 12, expiration_year: 2030 };
    await tenant.token({ id: 'card', type: 'card', data });
    destination.behave(answer(200, ['content-type', 'application/json'], '{"paid": true}'));
    received();
    return newAgent(tenant, egress ?? policy);
  }

  const begin = (agent: Agent, sending?: Sending) =>
    beginRequest(lender, agent, { authority, ...sending });

  const admin = ({ tenant }: Agent, method: string, path: string, body?: unknown) =>
    tenant.send(method, path, {
      key: tenant.managementKey,
      ...(body !== undefined && { body }),
    });

  // biome-ignore lint/suspicious/noExplicitAny: tests assert on whatever came back
  async function waiting(agent: Agent, count = 1): Promise<any[]> {
    let data: object[] = [];
    await untilSo(
      async () => {
        ({ data } = (await admin(agent, 'GET', '/approvals?status=waiting&size=100')).body);
        return data.length === count;
      },
      () => `${data.length} requests wait instead of ${count}`,
    );
    return data;
  }

  const messages = async ({ tenant }: Agent) =>
    (await tenant.rows('logs')).map(({ message }) => message);

  test('the log says which agent used which card, where, and when, approved by whom, who decided first', async () => {
    const agent = await agentOf();
    const { tenant } = agent;
    const { response } = await begin(agent, { path: '/v1/pay?q=1' });
    const [shown] = await waiting(agent);
    assert.deepEqual(received(), [], 'nothing is sent before');
    assert.deepEqual(await tenant.logged('token'), ['create', 'placeholder'], 'or opened');
    const keys = await admin(agent, 'GET', `/applications/${agent.id}`);
    const { id, created_at, expires_at, content, ...rest } = shown;
    assert.deepEqual(rest, {
      tenant_id: tenant.id,
      status: 'waiting',
      application_id: agent.id,
      application_name: 'shopping agent',
      key_id: keys.body.keys[0].id,
      method: 'POST',
      host: authority,
      path: '/v1/pay',
      tokens: [{ id: 'card', property: 'number', place: 'json:card.*' }],
      approval: 'always',
    });
    assert.equal(content.type, 'application/json');
    assert.equal(Date.parse(expires_at) - Date.parse(created_at), 10 * minute);
    const role = await admin(agent, 'POST', '/applications', {
      name: 'approver',
      type: 'management',
      permissions: ['approval:read', 'approval:decide'],
    });
    const ada = await signInPerson(tenant.vault.url, tenant.managementKey, {
      applications: [role.body.id],
    });
    const decided = await ada.send(role.body.id, 'POST', `/approvals/${id}/approve`);
    assert.equal(decided.status, 200, decided.text);
    assert.deepEqual(decided.body.person, { id: ada.id, name: 'Ada Lovelace' });
    assert.equal((await response)?.status, 200);
    const [sent, ...others] = received();
    assert.deepEqual(others, []);
    assert.match(sent?.body.toString() ?? '', new RegExp(visa));
    const entries = await tenant.rows('logs');
    const use = entries.find(({ message }) => message.startsWith('Token used in a proxy call'));
    assert.equal(use?.entity_id, 'card');
    assert.equal(use?.actor_id, agent.id);
    assert.match(use?.message ?? '', new RegExp(`POST to ${authority}.*approval ${id} by Ada Lov`));
    const decision = entries.find(({ operation }) => operation === 'approve');
    assert.equal(decision?.entity_id, id);
    assert.equal(decision?.source?.person_id, ada.id);
    assert.equal(decision?.source?.person_name, 'Ada Lovelace');
    assert.match(decision?.message ?? '', new RegExp(`to ${authority} of application ${agent.id}`));
  });

  test('403: what a person denies is not sent, and is approved by nobody afterwards', async () => {
    const agent = await agentOf();
    const { response } = await begin(agent);
    const [{ id }] = await waiting(agent);
    const both = await Promise.all([
      admin(agent, 'POST', `/approvals/${id}/deny`),
      admin(agent, 'POST', `/approvals/${id}/deny`),
    ]);
    assert.deepEqual(both.map(({ status }) => status).sort(), [200, 409], 'one decides');
    assert.equal((await admin(agent, 'POST', `/approvals/${id}/approve`)).status, 409);
    const refused = await response;
    assert.equal(refused?.status, 403);
    assert.match(refused?.text ?? '', /A person denied the request/);
    assert.deepEqual(received(), []);
    assert.deepEqual(await agent.tenant.logged('proxy'), ['invoke denied']);
    assert.ok((await agent.tenant.logged('approval')).includes('deny'));
    assert.ok(!(await agent.tenant.logged('token')).includes('use'));
  });

  test('504: what nobody decides within ten minutes is not sent, and waits no more', async () => {
    const agent = await agentOf();
    const { response } = await begin(agent);
    const [{ id }] = await waiting(agent);
    agent.tenant.vault.clock.advance(10 * minute);
    assert.equal((await admin(agent, 'POST', `/approvals/${id}/approve`)).status, 404, 'too late');
    const refused = await response;
    assert.equal(refused?.status, 504);
    assert.match(refused?.headers['content-type'] ?? '', /problem\+json/);
    assert.deepEqual(received(), []);
    assert.deepEqual(await agent.tenant.rows('approvals'), []);
    assert.ok((await agent.tenant.logged('approval')).includes('expire'));
    assert.deepEqual(await agent.tenant.logged('proxy'), ['invoke failed']);
  });

  test('no application of a program, and no session, can read or decide approvals', async () => {
    const agent = await agentOf();
    const { tenant } = agent;
    for (const type of ['private', 'public']) {
      for (const permission of ['approval:read', 'approval:decide']) {
        const body = { name: 'self', type, permissions: [permission] };
        const made = await admin(agent, 'POST', '/applications', body);
        assert.equal(made.status, 400, `${type} ${permission}`);
      }
    }
    const { response, leave } = await begin(agent);
    const [{ id }] = await waiting(agent);
    for (const [method, path] of [
      ['GET', '/approvals'],
      ['GET', `/approvals/${id}`],
      ['POST', `/approvals/${id}/approve`],
      ['POST', `/approvals/${id}/deny`],
    ] as const) {
      const tried = await tenant.send(method, path, { key: agent.key });
      assert.equal(tried.status, 403, path);
    }
    const pub = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const session = await tenant.send('POST', '/sessions', { key: pub });
    const body = { nonce: session.body.nonce, permissions: ['approval:decide'] };
    const granted = await tenant.send('POST', '/sessions/authorize', { key: agent.key, body });
    assert.ok(granted.status === 400 || granted.status === 403, granted.text);
    const other = await newTenant(tenant.vault);
    const foreign = { key: other.managementKey };
    assert.equal((await other.send('POST', `/approvals/${id}/approve`, foreign)).status, 404);
    leave();
    await response;
    await waiting(agent, 0);
    assert.deepEqual(received(), []);
  });

  test('one approval is for one request: another one that is equal waits for its own', async () => {
    const agent = await agentOf();
    const one = await begin(agent);
    const [first] = await waiting(agent);
    const two = await begin(agent);
    await waiting(agent, 2);
    const path = `/approvals/${first.id}/approve`;
    assert.equal((await admin(agent, 'POST', path, { scope: 'host' })).status, 400);
    assert.equal((await admin(agent, 'POST', path, { scope: 'request' })).status, 200);
    assert.equal((await one.response)?.status, 200);
    assert.equal(received().length, 1);
    const [left] = await waiting(agent);
    assert.notEqual(left.id, first.id);
    assert.equal((await admin(agent, 'POST', path)).status, 409, 'not again');
    two.leave();
    await waiting(agent, 0);
    assert.deepEqual(received(), []);
  });

  test('first: an approval for the host lets others pass for a day, until the policy changes', async (t) => {
    const vault = await startWithEgress(t, engine);
    const agent = await agentOf({ ...policy, approval: 'first' }, vault);
    const explain = async () => {
      const url = `https://${authority}/v1/x`;
      const body = { application_id: agent.id, method: 'POST', url };
      return (await admin(agent, 'POST', '/egress/explain', body)).body;
    };
    assert.equal((await explain()).waits, true);
    const begun = [await begin(agent), await begin(agent)];
    const [one] = await waiting(agent, 2);
    const path = `/approvals/${one.id}/approve`;
    assert.equal((await admin(agent, 'POST', path)).body.scope, 'host');
    for (const { response } of begun) assert.equal((await response)?.status, 200);
    assert.equal((await (await begin(agent)).response)?.status, 200);
    assert.equal(received().length, 3);
    assert.equal((await explain()).waits, false);
    assert.ok((await messages(agent)).filter((text) => text.includes(one.id)).length >= 3);
    // The policy is another one for a moment, and then the same as before.
    for (const approval of ['always', 'first']) {
      const egress = [{ ...policy, approval }];
      const body = { name: 'agent', permissions: ['proxy:invoke'], egress };
      assert.equal((await admin(agent, 'PUT', `/applications/${agent.id}`, body)).status, 200);
    }
    agent.tenant.vault.clock.advance(1000);
    assert.equal((await explain()).waits, true);
    const again = await begin(agent);
    const [next] = await waiting(agent);
    const body = { scope: 'request' };
    assert.equal((await admin(agent, 'POST', `/approvals/${next.id}/approve`, body)).status, 200);
    assert.equal((await again.response)?.status, 200);
    const third = await begin(agent);
    const [last] = await waiting(agent);
    await admin(agent, 'POST', `/approvals/${last.id}/approve`);
    assert.equal((await third.response)?.status, 200);
    agent.tenant.vault.clock.advance(day);
    assert.equal((await explain()).waits, true, 'a day later');
    vault.clock.advance(5 * minute);
    await runJob(vault, 'remove approvals');
    assert.deepEqual(await agent.tenant.rows('approvals'), []);
  });

  const endings: readonly (readonly [
    string,
    (agent: Agent) => Promise<unknown>,
    readonly number[],
  ])[] = [
    [
      'its key is deleted',
      async (agent) => {
        const { body } = await admin(agent, 'GET', `/applications/${agent.id}`);
        await admin(agent, 'DELETE', `/applications/${agent.id}/keys/${body.keys[0].id}`);
      },
      [401],
    ],
    [
      'its application is deleted',
      (agent) => admin(agent, 'DELETE', `/applications/${agent.id}`),
      [401, 403],
    ],
    [
      'its policy is changed',
      (agent) =>
        admin(agent, 'PUT', `/applications/${agent.id}`, {
          name: 'agent',
          permissions: ['proxy:invoke'],
          egress: [{ ...policy, methods: ['POST'] }],
        }),
      [403],
    ],
  ];
  for (const [when, change, statuses] of endings) {
    test(`what waits is not sent, and cannot be approved any more, when ${when}`, async () => {
      const agent = await agentOf();
      const { response } = await begin(agent);
      const [{ id }] = await waiting(agent);
      await change(agent);
      agent.tenant.vault.clock.advance(1000);
      const refused = await response;
      assert.ok(statuses.includes(refused?.status ?? 0), `${refused?.status} ${refused?.text}`);
      await waiting(agent, 0);
      assert.equal((await admin(agent, 'POST', `/approvals/${id}/approve`)).status, 404);
      assert.deepEqual(received(), []);
    });
  }

  test('an approval that comes after a change of the policy, however close, sends nothing', async () => {
    for (let round = 0; round < 5; round++) {
      const agent = await agentOf();
      const { response } = await begin(agent);
      const [{ id }] = await waiting(agent);
      const egress = [{ ...policy, paths: ['/other'] }];
      const body = { name: 'agent', permissions: ['proxy:invoke'], egress };
      const [approved, changed] = await Promise.all([
        admin(agent, 'POST', `/approvals/${id}/approve`),
        admin(agent, 'PUT', `/applications/${agent.id}`, body),
      ]);
      assert.equal(changed.status, 200);
      assert.ok([200, 404, 409].includes(approved.status), approved.text);
      agent.tenant.vault.clock.advance(1000);
      await response;
      // What was approved first may be sent before the change, once.
      assert.ok(received().length <= (approved.status === 200 ? 1 : 0), approved.text);
    }
  });

  test('429: one application has few requests that wait, and none of them is lost by it', async () => {
    const agent = await agentOf();
    const all = await Promise.all(
      Array.from({ length: approvalLimits.waitingOfKey + 5 }, () => begin(agent)),
    );
    await waiting(agent, approvalLimits.waitingOfKey);
    let refused = 0;
    for (const { response } of all) {
      void response.then((one) => {
        if (one?.status === 429) refused += 1;
      });
    }
    await untilSo(
      () => refused === 5,
      () => `${refused} are refused`,
    );
    for (const { leave } of all) leave();
    await waiting(agent, 0);
    const next = await begin(agent);
    await waiting(agent, 1);
    next.leave();
    await waiting(agent, 0);
    assert.deepEqual(received(), []);
  });

  test('people see no value, and no text that the program chose beyond the beginning of the path', async () => {
    const agent = await agentOf();
    const name = '\u202e<script>alert(1)</script>'.repeat(20);
    const long = `/v1/${visa}/4242-4242-4242-4242/%34242424242424242/${'a'.repeat(4000)}`;
    const { leave } = await begin(agent, {
      path: `${long}?secret=${visa}`,
      headers: { 'content-type': 'application/json; x="<b>"', 'x-note': visa },
      body: JSON.stringify({ card: { [name]: agent.number }, note: visa }),
    });
    const [shown] = await waiting(agent);
    const text = JSON.stringify(shown);
    assert.ok(!text.includes('4242') && !text.includes('secret') && !text.includes('script'), text);
    assert.ok(!text.includes('\u202e'));
    assert.match(shown.path, /^\/v1\/\*{8}\/\*{8}\/\*{8}\/a+…$/);
    assert.ok(shown.path.length <= 201);
    assert.equal(shown.content.type, 'application/json');
    for (const row of await agent.tenant.rows('approvals')) {
      assert.ok(
        !JSON.stringify({ ...row, body: Buffer.from(row.body).toString('latin1') }).includes('/v1'),
      );
    }
    leave();
    await waiting(agent, 0);
  });

  test('413: nobody is asked about a body that is too large to be held while it waits', async () => {
    const agent = await agentOf();
    const body = JSON.stringify({ card: { number: agent.number }, rest: 'x'.repeat(70_000) });
    const refused = await (await begin(agent, { body })).response;
    assert.equal(refused?.status, 413);
    await waiting(agent, 0);
    assert.deepEqual(received(), []);
  });

  test('an approval that was written into the database sends nothing', async () => {
    const agent = await agentOf();
    const { response } = await begin(agent);
    const [{ id }] = await waiting(agent);
    const { place } = agent.tenant.vault;
    await engine.run(
      place,
      `update approvals set status = 'approved', version = 2 where approval_id = '${id}'`,
    );
    assert.equal((await response)?.status, 500);
    assert.deepEqual(received(), []);
    // Other tests have jobs look for what is due.
    await engine.run(place, `delete from approvals where approval_id = '${id}'`);
  });

  test('what a server left that stopped without a word does not wait for ever', async () => {
    const agent = await agentOf();
    const { vault } = agent.tenant;
    await leaveApproval(agent.tenant);
    await waiting(agent, 1);
    vault.clock.advance(10 * minute);
    await waiting(agent, 0);
    vault.clock.advance(5 * minute);
    await runJob(vault, 'remove approvals');
    assert.deepEqual(await agent.tenant.rows('approvals'), []);
  });

  test('webhooks hear of each request that waits, and of its decision', async () => {
    const agent = await agentOf();
    const { tenant } = agent;
    const events = ['approval.requested', 'approval.denied'];
    const body = { name: 'pager', url: `${called.url}/hook`, events };
    assert.equal((await admin(agent, 'POST', '/webhooks', body)).status, 201);
    const { response } = await begin(agent);
    const [{ id }] = await waiting(agent);
    await admin(agent, 'POST', `/approvals/${id}/deny`);
    await response;
    const types = (await tenant.rows('events')).map(({ type }) => type).sort();
    assert.deepEqual(types, ['approval.denied', 'approval.requested']);
  });

  test('a request that an agent sends with a tool waits like any other', async () => {
    const agent = await agentOf();
    const { tenant, key, number } = agent;
    const json = { card: { number } };
    const url = `https://${authority}/v1/tool`;
    const params = { name: 'http_request', arguments: { method: 'POST', url, json } };
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
    const response = tenant.send('POST', '/mcp', { key, body });
    const [shown] = await waiting(agent);
    assert.equal(shown.path, '/v1/tool');
    assert.deepEqual(received(), []);
    await admin(agent, 'POST', `/approvals/${shown.id}/approve`);
    assert.match((await response).text, /paid/);
    assert.equal(received().length, 1);
  });

  test('503: a server that stops sends nothing of what waits, and leaves nothing behind', async (t) => {
    const vault = await startWithEgress(t, engine);
    const tenant = await newTenant(vault);
    await tenant.token({ id: 'card', type: 'card', data: { number: visa } });
    destination.behave(answer(200, ['content-type', 'application/json'], '{}'));
    received();
    const agent = await newAgent(tenant, policy);
    const { response } = await begin(agent);
    await waiting(agent);
    await vault.stop();
    assert.equal((await response)?.status, 503);
    assert.deepEqual(received(), []);
    const again = await startWithEgress(t, engine, { place: vault.place, clock: vault.clock });
    const { body } = await again.send('GET', '/approvals', { key: tenant.managementKey });
    assert.deepEqual(body.data, []);
  });
});

test('a decision on one server reaches the request that waits on another', async (t) => {
  const engine = engineOf('postgres');
  const place = await engine.place(t);
  const first = await startWithEgress(t, engine, { place });
  const second = await startWithEgress(t, engine, { place, clock: first.clock });
  const tenant = await newTenant(first);
  await tenant.token({ id: 'card', type: 'card', data: { number: visa } });
  destination.behave(answer(200, ['content-type', 'application/json'], '{}'));
  received();
  const agent = await newAgent(tenant, policy);
  const { response } = await beginRequest(t, agent, { authority });
  const key = tenant.managementKey;
  let id = '';
  await untilSo(
    async () => {
      const { data } = (await second.send('GET', '/approvals', { key })).body;
      id = data[0]?.id ?? '';
      return id !== '';
    },
    () => 'nothing waits',
  );
  assert.equal((await second.send('POST', `/approvals/${id}/approve`, { key })).status, 200);
  const began = performance.now();
  assert.equal((await response)?.status, 200);
  assert.ok(performance.now() - began < 5000);
  assert.equal(received().length, 1);
});
