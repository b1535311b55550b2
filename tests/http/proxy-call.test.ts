/** Calling a proxy that was set up before: what reaches the destination, and what comes back. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { headerOf, proxyOf, startCalled } from '../support/proxy-calls.ts';
import { tenantsOf } from '../support/tenant.ts';
import { visa } from '../support/values.ts';

const { destination, url, environment } = await startCalled({ after });

onBothEngines('Calling a proxy', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  test('sends method, path, query, headers and body on, and gives back what comes', async () => {
    const tenant = await newTenant();
    const call = await proxyOf(tenant, { destination_url: `${url}/api/` });
    destination.behave(answer(201, ['X-Own', 'yes', 'Content-Type', 'text/plain'], 'done'));
    const received = await call('POST', '/foo/b%20r?a=%7b&b=x%27y', {
      body: { amount: 1 },
      headers: { authorization: 'Bearer caller', 'x-more': 'so' },
    });
    assert.equal(received.status, 201);
    assert.equal(received.text, 'done');
    assert.equal(received.headers.get('x-own'), 'yes');
    assert.equal(received.headers.get('svc-proxy-destination-status'), '201');
    const sent = destination.requests.at(-1);
    assert.equal(sent?.method, 'POST');
    assert.equal(sent?.url, '/api/foo/b%20r?a=%7b&b=x%27y');
    assert.equal(sent?.body.toString(), '{"amount":1}');
    assert.equal(headerOf(sent?.headers ?? [], 'authorization'), 'Bearer caller');
    assert.equal(headerOf(sent?.headers ?? [], 'host'), new URL(url).host);
    const own = sent?.headers.filter((name, at) => at % 2 === 0 && /^svc-/i.test(name));
    assert.deepEqual(own, []);
  });

  test('puts the values of tokens into a JSON body', async () => {
    const tenant = await newTenant();
    const { id } = (await tenant.token({ type: 'card', data: visa })).body;
    const key = await tenant.application({ permissions: ['proxy:invoke'] });
    const call = await proxyOf(tenant, { destination_url: url });
    const body = { number: `{{ ${id} | json: '$.number' }}`, amount: 5 };
    destination.behave(answer());
    const received = await call('POST', '/charge', { key, body });
    assert.equal(received.status, 200, received.text);
    const sent = destination.requests.at(-1);
    assert.deepEqual(JSON.parse(String(sent?.body)), { number: visa.number, amount: 5 });
  });
});
