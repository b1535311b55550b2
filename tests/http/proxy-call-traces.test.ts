/** Calls of proxies in traces, and in the answer to "who saw it". */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { headerOf, proxyOf, startCalled } from '../support/proxy-calls.ts';
import { tenantsOf } from '../support/tenant.ts';

const { destination, url, environment } = await startCalled({ after });
destination.behave(answer());

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const traceparent = `00-${traceId}-00f067aa0ba902b7-01`;

onBothEngines('A call of a proxy', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  test('continues the trace of its caller at the destination, in a span of its own', async () => {
    const tenant = await newTenant();
    const key = await tenant.application({ permissions: ['proxy:invoke'] });
    const call = await proxyOf(tenant, { destination_url: url });
    const received = await call('GET', '', { key, headers: { traceparent } });
    assert.equal(received.status, 200, received.text);
    const sent = headerOf(destination.requests.at(-1)?.headers ?? [], 'traceparent');
    assert.match(sent ?? '', new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`));
    assert.notEqual(sent, traceparent);
  });

  test('is in the log as how the destination saw each token, and can be searched by it', async () => {
    const tenant = await newTenant();
    await tenant.token({ id: 'used', type: 'token', data: 'a value' });
    const key = await tenant.application({ permissions: ['proxy:invoke'] });
    const call = await proxyOf(tenant, { destination_url: url });
    const body = { value: '{{ used }}' };
    assert.equal((await call('POST', '', { key, body })).status, 200);
    const log = await tenant.send('GET', '/logs?through=proxy', { key: tenant.managementKey });
    const [entry, ...others] = log.body.data;
    assert.deepEqual(others, []);
    const { entity_id, operation, shown, through } = entry;
    assert.deepEqual([entity_id, operation, shown, through], ['used', 'use', 'revealed', 'proxy']);
  });
});
