/** Large responses of destinations, whose masks run in threads: what is appended changes nothing else. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { jsonValuesMax } from '../../src/proxies/calls/json-body.ts';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { proxyOf, startCalled } from '../support/proxy-calls.ts';
import { tenantsOf } from '../support/tenant.ts';

const { destination, url, environment } = await startCalled({ after });

const json = ['Content-Type', 'application/json'];

onBothEngines('A large response', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  test('is masked and appended to, and every other byte is the one that was sent', async () => {
    const tenant = await newTenant();
    const call = await proxyOf(tenant, {
      destination_url: url,
      response_transforms: [
        { type: 'mask', matcher: 'regex', expression: '"pan":\\s*"(.*?)"', replacement: '*' },
        { type: 'append_json', options: { value: 'yes', location: '$.seen' } },
      ],
    });
    const sent = (number: string) =>
      `{ "pan": "${number}", "large": 12345678901234567890,\n "a": 1.0, "a": "${'é'.repeat(300_000)}"`;
    destination.behave(answer(200, json, `${sent('4242424242424242')} }`));
    const received = await call('GET', '/');
    assert.equal(received.text, `${sent('*'.repeat(16))},"seen":"yes" }`);
  });

  test('that takes too much work to mask is refused, and shows nothing', async () => {
    const tenant = await newTenant();
    const call = await proxyOf(tenant, {
      destination_url: url,
      response_transforms: [
        { type: 'mask', matcher: 'regex', expression: '((((.*)*)*)*)[xy]', replacement: '*' },
      ],
    });
    destination.behave(answer(200, ['Content-Type', 'text/plain'], 'a'.repeat(1_000_000)));
    const received = await call('GET', '/');
    assert.equal(received.status, 502);
    assert.match(received.text, /needs more than 32000000 units of work/);
    assert.doesNotMatch(received.text, /aa/);
  });

  test('is read by transforms up to 50,000 values, of which nobody else waits for more', async () => {
    const tenant = await newTenant();
    const key = await tenant.application({ permissions: ['proxy:invoke', 'token:create'] });
    const value = '{{ res[0] }}';
    const append = { type: 'append_header', options: { value, location: 'X-First' } };
    const text = (values: number, first = '"a"') =>
      `[${first}${',{}'.repeat(values - 2)}]${' '.repeat(100_000)}`;
    const call = await proxyOf(tenant, { destination_url: url, response_transforms: [append] });
    destination.behave(answer(200, json, text(jsonValuesMax)));
    assert.equal((await call('GET', '', { key })).headers.get('x-first'), 'a');
    destination.behave(answer(200, json, text(jsonValuesMax + 1, '"4242424242424242"')));
    const refused = await call('GET', '', { key });
    assert.equal(refused.status, 502);
    assert.match(refused.text, /more than 50000 values/);
    assert.doesNotMatch(refused.text, /4242/);
    const unread = await proxyOf(tenant, {
      destination_url: url,
      response_transforms: [{ type: 'append_json', options: { value: 'x', location: '$[0]' } }],
    });
    assert.equal((await unread('GET', '', { key })).text, text(jsonValuesMax + 1, '"x"'));
    destination.behave(answer(200, [], `${text(jsonValuesMax)}}`));
    assert.equal((await call('GET', '', { key })).status, 200, 'what is no JSON is a text');
  });

  test('and so is a request', async () => {
    const tenant = await newTenant();
    const key = await tenant.application({ permissions: ['proxy:invoke', 'token:create'] });
    const token = { type: 'token', data: '{{ proxy.request.body[0] }}' };
    const call = await proxyOf(tenant, {
      destination_url: url,
      request_transforms: [{ type: 'tokenize', options: { identifier: 'a', token } }],
    });
    destination.behave(answer());
    const send = (values: number) =>
      call('POST', '', {
        key,
        headers: { 'content-type': 'application/json' },
        body: `["a"${',{}'.repeat(values - 2)}]`,
      });
    assert.equal((await send(jsonValuesMax)).status, 200);
    const refused = await send(jsonValuesMax + 1);
    assert.equal(refused.status, 400);
    assert.match(refused.text, /body has more than 50000 values/);
  });

  test('in UTF-16, where a mask would find nothing, is refused', async () => {
    const call = await proxyOf(await newTenant(), {
      destination_url: url,
      response_transforms: [
        { type: 'mask', matcher: 'regex', expression: '([0-9]{16})', replacement: '*' },
      ],
    });
    const body = Buffer.from('4242424242424242', 'utf16le');
    for (const charset of ['utf-16le', '"UTF-16"', ' utf-32']) {
      destination.behave(answer(200, ['Content-Type', `text/plain; charset=${charset}`], body));
      const received = await call('GET', '');
      assert.equal(received.status, 502, received.text);
      assert.match(received.text, /not text in UTF-8/);
    }
    destination.behave(answer(200, ['Content-Type', 'text/plain; charset=UTF-8'], '4'.repeat(16)));
    assert.equal((await call('GET', '')).text, '*'.repeat(16));
  });
});
