/** Tools for agents: what an agent finds, sends and stores through them, and never the value of a token. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { AdmittedEntrant } from '../../src/base/admission.ts';
import { problemMediaType } from '../../src/http/protocol/problem.ts';
import { startEgress } from '../support/egress.ts';
import { engineOf } from '../support/engines.ts';
import { agentOverHttp, revisions } from '../support/mcp-clients.ts';
import { nextLook } from '../support/poll.ts';
import { headerOf } from '../support/proxy-calls.ts';
import { createScanner } from '../support/scan.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { type Given, newTenant } from '../support/tenant.ts';
import { revealEverything, startVault } from '../support/vault.ts';

const ends: (() => unknown)[] = [];
const lender = { after: (end: () => unknown) => void ends.unshift(end) };
after(async () => {
  for (const end of ends) await end();
});

const { called, vault } = await startEgress(lender);
const { destination } = called;
const visa = '4242424242424242';
const apiKey = 'plain-api-key-0123456789';
const places = ['header:authorization', 'json:card.number', 'form:number'];
const policy = {
  host: 'localhost',
  port: destination.port,
  methods: ['GET', 'POST'],
  paths: ['/v1/*'],
  tokens: ['card', 'api-key'],
  containers: ['/pci/'],
  places,
};
const url = `https://localhost:${destination.port}/v1/charges`;
const permissions = ['proxy:invoke', 'token:read', 'token:create'];

/** An agent whose application reveals everything, as far as rules can. */
async function newAgent(given: object = {}, revision: 'auto' | 'legacy' = 'auto') {
  const tenant = await newTenant(vault);
  const data = { number: visa, expiration_month: 12, expiration_year: 2030, cvc: '123' };
  await tenant.token({ id: 'card', type: 'card', data, metadata: { order: '4711' } });
  await tenant.token({ id: 'api-key', type: 'token', data: apiKey });
  const rules = [
    { ...revealEverything, permissions: [...revealEverything.permissions, 'proxy:invoke'] },
  ];
  const key = await tenant.application({ permissions, rules, egress: [policy], ...given });
  return { tenant, key, ...(await agentOverHttp(lender, { url: vault.url, key }, revision)) };
}

destination.behave(async ({ response, received }) => {
  const { headers, body } = await received;
  if (String(body).includes('urn:')) response.setHeader('content-type', problemMediaType);
  response.end(`${headerOf(headers, 'authorization') ?? ''} ${body}`);
});

suite('tools for agents', () => {
  for (const revision of revisions) {
    test(`a client that negotiates ${revision} lists the tools and calls one`, async () => {
      const agent = await newAgent({}, revision);
      assert.deepEqual(await agent.names(), [
        'list_tokens',
        'get_token',
        'create_placeholder',
        'list_destinations',
        'http_request',
        'tokenize_text',
        'list_events',
      ]);
      const { result, isError } = await agent.call('get_token', { id: 'card' });
      assert.equal(isError, false);
      assert.deepEqual(result['data'], {
        number: 'XXXXXXXXXXXX4242',
        expiration_month: 12,
        expiration_year: 2030,
      });
    });
  }

  test('an agent sends a value that it never has, where the policy has a place for it', async () => {
    const agent = await newAgent();
    const { result: card } = await agent.call('create_placeholder', {
      token_id: 'card',
      property: 'number',
    });
    const { result: secret } = await agent.call('create_placeholder', { token_id: 'api-key' });
    destination.requests.splice(0);
    const { result, whole } = await agent.call('http_request', {
      method: 'POST',
      url,
      headers: { authorization: `Bearer ${secret['placeholder']}` },
      json: { card: { number: card['placeholder'] } },
    });
    assert.equal(result['status'], 200, whole);
    assert.ok(!whole.includes(visa) && !whole.includes(apiKey), whole);
    const [sent] = destination.requests.splice(0);
    assert.equal(headerOf(sent?.headers ?? [], 'authorization'), `Bearer ${apiKey}`);
    assert.equal(String(sent?.body), JSON.stringify({ card: { number: visa } }));
  });

  test('what the policies refuse is a problem document, and nothing is sent', async () => {
    const agent = await newAgent();
    const { result: made } = await agent.call('create_placeholder', { token_id: 'api-key' });
    destination.requests.splice(0);
    const refused = async (given: object) => {
      const { isError, result } = await agent.call('http_request', {
        method: 'GET',
        url,
        ...given,
      });
      assert.equal(isError, true);
      return [result['status'], result['type']];
    };
    const forbidden = [403, 'urn:strongroom:problem:forbidden'];
    const invalid = [400, 'urn:strongroom:problem:validation_failed'];
    assert.deepEqual(await refused({ url: 'https://elsewhere.example/' }), forbidden);
    assert.deepEqual(await refused({ method: 'DELETE' }), forbidden);
    assert.deepEqual(await refused({ url: url.replace('/v1/', '/v2/') }), forbidden);
    assert.deepEqual(await refused({ headers: { 'x-key': made['placeholder'] } }), forbidden);
    assert.deepEqual(await refused({ headers: { host: 'elsewhere.example' } }), invalid);
    assert.deepEqual(await refused({ url: 'file:///etc/passwd' }), invalid);
    assert.deepEqual(await refused({ method: 'POST', json: {}, body: 'a' }), invalid);
    assert.deepEqual(destination.requests.splice(0), []);
  });

  test('a call waits for its turn once its body is there, and before each thing that its tool does', async (t) => {
    const agent = await newAgent();
    const [{ mock: rests }, { mock: parts }] = [
      t.mock.method(AdmittedEntrant.prototype, 'finish'),
      t.mock.method(AdmittedEntrant.prototype, 'next'),
    ];
    const turnsOf = async (name: string, given: Readonly<Record<string, unknown>>) => {
      for (const calls of [rests, parts]) calls.resetCalls();
      const { isError, whole } = await agent.call(name, given);
      assert.equal(isError, false, whole);
      return [rests.callCount(), parts.callCount()];
    };
    // Stored at once, and a placeholder for each.
    const text = '4242 4242 4242 4242, 5555 5555 5555 4444, 3782 822463 10005';
    assert.deepEqual(await turnsOf('tokenize_text', { text }), [2, 4]);
    assert.deepEqual(await turnsOf('get_token', { id: 'card' }), [2, 1]);
    const [, sent = 0] = await turnsOf('http_request', { method: 'GET', url });
    assert.ok(sent >= 1);
  });

  test('what a destination says is never taken for what the vault says', async () => {
    const agent = await newAgent();
    const json = { type: 'urn:strongroom:problem:forbidden', title: 'Forbidden', status: 403 };
    const { result, isError } = await agent.call('http_request', { method: 'POST', url, json });
    assert.equal(isError, false);
    assert.equal(result['status'], 200);
  });

  test('sensitive values leave a text, are stored once, and are sent in the place of their placeholders', async () => {
    const agent = await newAgent();
    const [ssn, iban] = ['219-09-9999', 'DE89370400440532013000'];
    const stripe = ['sk', 'test', '4eC39HqLyjWDarjtT1zdp7dc'].join('_');
    const text = `Pay 5555 5555 5555 4444 (5555555555554444), ${ssn}, ${iban}, ${stripe}.`;
    const { result, whole } = await agent.call('tokenize_text', { text });
    for (const value of ['5555', ssn, iban, stripe]) assert.ok(!whole.includes(value), value);
    const tokens = result['tokens'] as { kind: string; token_id: string; placeholder: string }[];
    assert.deepEqual(
      tokens.map(({ kind }) => kind),
      ['card_number', 'social_security_number', 'iban', 'key'],
    );
    const [card, ...others] = tokens.map(({ placeholder }) => placeholder);
    assert.match(card ?? '', /^sr_/);
    // No policy has these: proxies and reactors understand them.
    assert.deepEqual(
      others,
      tokens.slice(1).map(({ token_id }) => `{{ ${token_id} }}`),
    );
    assert.equal(result['text'], `Pay ${card} (${card}), ${others.join(', ')}.`);
    destination.requests.splice(0);
    const json = { card: { number: card } };
    await agent.call('http_request', { method: 'POST', url, json });
    const [sent] = destination.requests.splice(0);
    assert.equal(String(sent?.body), JSON.stringify({ card: { number: '5555555555554444' } }));
    assert.equal((await agent.call('tokenize_text', { text: 'x'.repeat(65_537) })).isError, true);
  });

  test('an agent finds tokens by metadata, its destinations, and what was done with its key alone', async () => {
    const agent = await newAgent();
    const other = await agentOverHttp(lender, { url: vault.url, key: agent.tenant.key });
    await other.call('get_token', { id: 'api-key' });
    const { result: found } = await agent.call('list_tokens', { metadata: { order: '4711' } });
    assert.deepEqual(
      (found['tokens'] as { id: string }[]).map(({ id }) => id),
      ['card'],
    );
    const { result: places } = await agent.call('list_destinations');
    assert.deepEqual(places, { destinations: [policy] });
    const { result: events, whole } = await agent.call('list_events', { entity_type: 'token' });
    const seen = (events['events'] as { entity_id: string; operation: string }[]).map(
      ({ entity_id, operation }) => `${operation} ${entity_id}`,
    );
    assert.deepEqual(seen, [`read card`, `list ${agent.tenant.id}`], whole);
    const { result: later } = await agent.call('list_events', { since: '2090-01-01' });
    assert.deepEqual(later['events'], []);
  });

  test('a request that needs a person waits for one, who is not the agent', async () => {
    const agent = await newAgent({ egress: [{ ...policy, approval: 'always' }] });
    const { tenant } = agent;
    const { result: made } = await agent.call('create_placeholder', { token_id: 'api-key' });
    destination.requests.splice(0);
    const headers = { authorization: `Bearer ${made['placeholder']}` };
    const sending = agent.call('http_request', { method: 'POST', url, headers });
    const waiting = async () => {
      const { body } = await tenant.send('GET', '/approvals', { key: tenant.managementKey });
      return body.data as { id: string; method: string; host: string }[];
    };
    while ((await waiting()).length === 0) await nextLook();
    const [{ id, method, host } = { id: '', method: '', host: '' }] = await waiting();
    assert.deepEqual([method, host], ['POST', `localhost:${destination.port}`]);
    assert.deepEqual(destination.requests.splice(0), []);
    const path = `/approvals/${id}/approve`;
    // The key of the agent approves nothing.
    assert.equal((await tenant.send('POST', path, { key: agent.key })).status, 403);
    await tenant.send('POST', path, { key: tenant.managementKey });
    assert.equal((await sending).result['status'], 200);
    assert.equal(destination.requests.splice(0).length, 1);
  });

  test('a tool does no more than the key of its application may', async () => {
    const agent = await newAgent({ permissions: ['proxy:invoke'], rules: [] });
    for (const [name, given] of [
      ['list_tokens', {}],
      ['get_token', { id: 'card' }],
      ['tokenize_text', { text: visa }],
    ] as const) {
      const { isError, result } = await agent.call(name, given);
      assert.deepEqual([isError, result['status']], [true, 403], name);
    }
    assert.ok((await agent.tenant.logged('token')).includes('read denied'));
  });
});

/** Arguments with which each tool opens a value, if it opens any. */
const openings: Readonly<Record<string, readonly Given[]>> = {
  list_tokens: [{}, { id: ['card', 'api-key', 'iban', 'person'] }, { type: 'card' }],
  get_token: ['card', 'api-key', 'iban', 'person'].map((id) => ({ id })),
  create_placeholder: [
    { token_id: 'card', property: 'number' },
    { token_id: 'card', property: 'number', form: 'number' },
    { token_id: 'api-key' },
  ],
  list_destinations: [{}],
  http_request: [],
  tokenize_text: [{ text: `4242 4242 4242 4242 219-09-9999 DE89370400440532013000` }],
  list_events: [{}],
};

test('no tool shows the value of a token in any encoding, whatever the rules of its application reveal', async () => {
  const agent = await newAgent();
  const { tenant } = agent;
  const iban = 'DE89370400440532013000';
  await tenant.token({ id: 'iban', type: 'token', data: { iban } });
  await tenant.token({ id: 'person', type: 'social_security_number', data: '219-09-9999' });
  // With the same key, without a tool, all of them are shown.
  const { text } = await tenant.send('GET', '/tokens/card', { key: agent.key });
  assert.ok(text.includes(visa));
  const scan = createScanner([visa, apiKey, iban, '219-09-9999', '219099999']);
  const placeholders: string[] = [];
  for (const name of await agent.names()) {
    const given = openings[name];
    assert.ok(given, `${name} has arguments in this test`);
    for (const one of given) {
      const { whole, result } = await agent.call(name, one);
      assert.deepEqual(scan(name, Buffer.from(whole)), [], whole);
      if (name === 'create_placeholder') placeholders.push(String(result['placeholder']));
    }
  }
  const [card, digits, secret] = placeholders;
  for (const headers of [{ authorization: `Bearer ${secret}` }, {}]) {
    for (const number of [card, digits]) {
      const sent = { method: 'POST', url, headers, json: { card: { number } } };
      const { whole, isError } = await agent.call('http_request', sent);
      assert.deepEqual([isError, scan('http_request', Buffer.from(whole))], [false, []], whole);
    }
  }
});

suite('/mcp', () => {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
  const post = (key: string | undefined, sent: object = {}) =>
    vault.send('POST', '/mcp', { ...(key !== undefined && { key }), body: message, ...sent });

  test('is for private keys, one message, of a bounded size, from no page of a browser', async () => {
    const { tenant, key } = await newAgent();
    assert.equal((await post(key)).status, 200);
    assert.equal((await post(undefined)).status, 401);
    assert.equal((await post(tenant.managementKey)).status, 403);
    const shown = await tenant.application({ type: 'public', permissions: ['token:create'] });
    assert.equal((await post(shown)).status, 403);
    assert.equal((await post(key, { body: [message, message] })).status, 400);
    assert.equal(
      (await post(key, { body: { ...message, params: 'x'.repeat(1_100_000) } })).status,
      413,
    );
    for (const origin of ['https://evil.example', vault.url, 'null']) {
      const { status } = await post(key, { headers: { origin, host: 'evil.example' } });
      assert.equal(status, 403, origin);
    }
    assert.equal((await vault.send('GET', '/mcp', { key })).status, 405);
    assert.equal((await vault.send('DELETE', '/mcp', { key })).status, 405);
  });

  test('streams that would stay open are refused', async () => {
    const { key } = await newAgent();
    const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' };
    const params = { _meta: meta, notifications: { toolsListChanged: true } };
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' };
    const { text } = await post(key, {
      body: { ...message, method: 'subscriptions/listen', params },
      headers,
    });
    assert.ok('error' in JSON.parse(text), text);
  });

  test('is not there without a forward proxy', async (t) => {
    const without = await startVault(t, engineOf('sqlite'));
    const tenant = await newTenant(without);
    assert.equal(
      (await without.send('POST', '/mcp', { key: tenant.key, body: message })).status,
      404,
    );
  });

  test('its requests are counted, and those of each operation that a tool performs', async (t) => {
    const limits = [
      { routes: ['POST /mcp'], per: ['key'], requests: 8, window_seconds: 60 },
      { routes: ['GET /tokens/:id'], per: ['key'], requests: 2, window_seconds: 60 },
    ];
    const file = join(temporaryDirectory(t), 'limits.json');
    writeFileSync(file, JSON.stringify({ limits }));
    const limited = await startVault(t, engineOf('sqlite'), {
      environment: { STRONGROOM_EGRESS_ADDRESS: '127.0.0.1:0', STRONGROOM_RATE_LIMITS: file },
    });
    const { key } = await newTenant(limited);
    const get = {
      ...message,
      method: 'tools/call',
      params: { name: 'get_token', arguments: { id: 'x' } },
    };
    const statuses: number[] = [];
    for (let times = 0; times < 4; times += 1) {
      const { body } = await limited.send('POST', '/mcp', { key, body: get });
      statuses.push(body.result.structuredContent.status);
    }
    assert.deepEqual(statuses, [404, 404, 429, 429]);
    for (let times = 0; times < 4; times += 1) {
      assert.equal((await limited.send('POST', '/mcp', { key, body: message })).status, 200);
    }
    assert.equal((await limited.send('POST', '/mcp', { key, body: message })).status, 429);
  });
});
