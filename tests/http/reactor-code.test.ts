/** What the code of a reactor can do: requests to other hosts, and tokens with the rights that it is lent. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, test } from 'node:test';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { headerOf, startCalled } from '../support/proxy-calls.ts';
import { createReactor, invoker, react } from '../support/reactors.ts';
import { tenantsOf } from '../support/tenant.ts';

const { destination, url, environment } = await startCalled({ after });
const card = { number: '4242424242424242', expiration_month: 12, expiration_year: 2030 };
const json = ['Content-Type', 'application/json'];

/** Calls a method of `bt` and gives what came of it. */
const asking = (call: string) => `module.exports = async (req) => {
  try { return { raw: { got: await req.bt.${call} } } }
  catch (error) { return { raw: { status: error.status, message: error.message } } } }`;

onBothEngines('the code of a reactor', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  test('signs a request, posts it to a destination and tokenizes the answer', async () => {
    const tenant = await newTenant();
    destination.behave(answer(200, json, JSON.stringify({ card, approval: 'A-1' })));
    const { body: token } = await tenant.token({ type: 'card', data: card });
    const code = `const crypto = require('crypto');
      module.exports = async ({ args, configuration }) => {
        const body = JSON.stringify({ number: args.card.number, amount: args.amount });
        const signature = crypto.createHmac('sha256', configuration.SECRET).update(body).digest('hex');
        const response = await fetch(configuration.URL + '/charges', { method: 'POST', body,
          headers: { 'Content-Type': 'application/json', 'X-Signature': signature } });
        const answer = await response.json();
        return { raw: { status: response.status, approval: answer.approval },
          tokenize: { card: { type: 'card', data: answer.card } } } }`;
    const { id } = await createReactor(tenant, {
      code,
      configuration: { SECRET: 'sk_signing', URL: url },
      allowed_hosts: ['localhost'],
    });
    const key = await invoker(tenant, 'token:create');
    const args = { card: `{{ ${token.id} }}`, amount: 100 };
    const called = await tenant.send('POST', `/reactors/${id}/react`, { key, body: { args } });
    assert.equal(called.status, 200, called.text);
    assert.deepEqual(called.body.raw, { status: 200, approval: 'A-1' });
    const sent = destination.requests.at(-1);
    assert.ok(sent);
    assert.equal(sent.url, '/charges');
    assert.deepEqual(JSON.parse(sent.body.toString()), { number: card.number, amount: 100 });
    const signature = createHmac('sha256', 'sk_signing').update(sent.body).digest('hex');
    assert.equal(headerOf(sent.headers, 'x-signature'), signature);
    const made = await tenant.send('GET', `/tokens/${called.body.tokens.card.id}`);
    assert.deepEqual(made.body.data, card);
    const operations = (await tenant.rows('logs')).map(
      ({ entity_type, operation }) => `${entity_type} ${operation}`,
    );
    assert.ok(operations.indexOf('token use') < operations.indexOf('reactor complete'));
    assert.doesNotMatch(JSON.stringify(await tenant.rows('logs')), /4242424242424242|sk_signing/);
  });

  test('reaches no host but those that the reactor and the tenant allow, and no private address', async () => {
    const tenant = await newTenant();
    const code = `module.exports = async (req) => {
      try { await fetch(req.args.url); return { raw: 'reached' } }
      catch (error) { return { raw: error.message } } }`;
    const host = 'https://127.0.0.1:1/';
    for (const [given, called, message] of [
      [{ allowed_hosts: ['psp.example.com'] }, url, /not among the allowed_hosts/],
      [{ allowed_hosts: [] }, url, /not among the allowed_hosts/],
      [{}, host, /no public address/],
      [{}, 'http://psp.example.com/', /must be https/],
      [{ allowed_hosts: ['local*'] }, url, /^reached$/],
    ] as const) {
      const answered = await react(tenant, { code, ...given }, { args: { url: called } });
      assert.match(answered.body.raw, message, answered.text);
    }
    await tenant.set({ proxy_destinations: 'psp.example.com' });
    const refused = await react(tenant, { code }, { args: { url } });
    assert.match(refused.body.raw, /proxy_destinations of the tenant/);
  });

  test('is not shown where a redirect leads, nor more than 4 MiB of a response', async () => {
    const tenant = await newTenant();
    const code = `module.exports = async (req) => {
      try { const r = await fetch(req.args.url);
        return { raw: [r.status, (await r.text()).length] } }
      catch (error) { return { raw: error.message } } }`;
    destination.behave(answer(302, ['Location', 'https://127.0.0.1:1/'], ''));
    assert.deepEqual((await react(tenant, { code }, { args: { url } })).body.raw, [302, 0]);
    destination.behave(answer(200, [], 'x'.repeat(4 * 1024 * 1024 + 1)));
    const large = await react(tenant, { code }, { args: { url } });
    assert.match(large.body.raw, /exceeds the size limit/);
  });

  test('has no tokens of its own unless it is lent rights', async () => {
    const tenant = await newTenant();
    const none = 'module.exports = (req) => ({ raw: [req.bt, req.applicationOptions] })';
    assert.deepEqual((await react(tenant, { code: none })).body, { raw: [null, null] });
  });

  test('sees tokens as the linked application may, with its entry, and as it may at that moment', async () => {
    const tenant = await newTenant();
    const { body: token } = await tenant.token({
      type: 'token',
      data: 'secret',
      mask: "{{ data | reveal_last: 2, '*' }}",
      containers: ['/a/'],
    });
    const rule = { priority: 1, container: '/a/', permissions: ['token:read'] };
    const created = await tenant.send('POST', '/applications', {
      key: tenant.managementKey,
      body: { name: 'linked', type: 'private', rules: [{ ...rule, transform: 'mask' }] },
    });
    const application = { id: created.body.id };
    const retrieve = { code: asking('tokens.retrieve(req.args.id)'), application };
    const { id } = await createReactor(tenant, retrieve);
    const key = await invoker(tenant);
    const call = async (body = { args: { id: token.id } }) =>
      (await tenant.send('POST', `/reactors/${id}/react`, { key, body })).body.raw;
    assert.equal((await call()).got.data, '****et');
    const reads = (await tenant.rows('logs')).filter(({ operation }) => operation === 'read');
    const [read] = reads.filter(({ entity_id }) => entity_id === token.id);
    assert.equal(read?.actor_id, application.id);
    assert.equal(read?.message, `Token retrieved: by the code of reactor ${id}`);
    const { body: other } = await tenant.token({ type: 'token', data: 'x', containers: ['/b/'] });
    assert.equal((await call({ args: { id: other.id } })).status, 403);
    const path = `/applications/${application.id}`;
    await tenant.send('DELETE', path, { key: tenant.managementKey });
    assert.equal((await call()).status, 403);
  });

  test('does with permissions of its runtime what these allow, and nothing else', async () => {
    const tenant = await newTenant();
    const { body: token } = await tenant.token({ type: 'token', data: 'secret' });
    const lent = (permissions: readonly string[]) => ({ image: 'node22', permissions });
    const code = (call: string) => `module.exports = async (event) => {
      try { return { res: { body: { got: await event.bt.${call} } } } }
      catch (error) { return { res: { body: { status: error.status } } } } }`;
    for (const [call, permission, expected] of [
      ["tokens.create({ type: 'token', data: 'made' })", 'token:create', /"type":"token"/],
      ["tokens.update(event.req.id, { metadata: { a: 'b' } })", 'token:update', /"got"/],
      ["tokenize({ a: 'b' })", 'token:create', /"a":"[0-9a-f-]{36}"/],
      ["detokenize({ a: '{{ token: ' + event.req.id + ' }}' })", 'token:read', /"a":\{"id"/],
      ['tokens.delete(event.req.id)', 'token:delete', /"got":null|\{\}/],
    ] as const) {
      const body = { id: token.id };
      const other = permission === 'token:read' ? 'token:create' : 'token:read';
      const without = { code: code(call), runtime: lent([other]) };
      const refused = await react(tenant, without, { body });
      assert.equal(refused.body.status, 403, `${call} ${refused.text}`);
      const done = await react(tenant, { code: code(call), runtime: lent([permission]) }, { body });
      assert.match(done.text, expected, call);
    }
    assert.equal((await tenant.send('GET', `/tokens/${token.id}`)).status, 404);
  });
});
