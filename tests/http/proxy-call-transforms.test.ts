/** Transforms of proxies: what requests make tokens of, and what responses become. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { answer, echo } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { sendProxy } from '../support/proxies.ts';
import { headerOf, proxyOf, startCalled } from '../support/proxy-calls.ts';
import { tenantsOf } from '../support/tenant.ts';
import { visa } from '../support/values.ts';

const { destination, url, environment } = await startCalled({ after });
const last = () => {
  const request = destination.requests.at(-1);
  assert.ok(request);
  return request;
};

const json = ['Content-Type', 'application/json'];
const card = JSON.stringify({ card: visa, id: 12345678901234567890n.toString() }).replace(
  /"(\d{20})"/,
  '$1',
);
const number = { type: 'mask', matcher: 'regex', expression: '"number":"(.*?)"', replacement: '*' };
const tokenizing = (identifier: string, data: unknown, more: object = {}) => ({
  type: 'tokenize',
  options: { identifier, token: { type: 'card', data, ...more } },
});
const fromCard = {
  number: '{{ res.card.number }}',
  expiration_month: '{{ res.card.expiration_month }}',
  expiration_year: '{{ res.card.expiration_year }}',
};

onBothEngines('Transforms of proxies', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  test('responses are masked, tokenized and appended to, in order', async () => {
    const tenant = await newTenant();
    destination.behave(answer(200, [...json, 'ETag', '"x"'], card));
    const call = await proxyOf(tenant, {
      destination_url: url,
      configuration: { NAME: 'configured' },
      response_transforms: [
        number,
        tokenizing('made', fromCard, { mask: '{{ data.number | reveal_last: 4 }}' }),
        {
          type: 'append_json',
          options: {
            location: '$.token.id',
            value: "{{ transform_identifier: 'made' | json: '$.id' }}",
          },
        },
        { type: 'append_header', options: { location: 'X-Name', value: '{{ config: NAME }}' } },
        { type: 'append_text', options: { value: '\n' } },
      ],
    });
    const asked = { 'accept-encoding': 'gzip', range: 'bytes=0-1' };
    const received = await call('GET', '/card', { headers: asked });
    assert.equal(received.status, 200, received.text);
    assert.doesNotMatch(received.text, new RegExp(visa.number));
    const { token, card: shown } = JSON.parse(received.text);
    assert.equal(shown.number, '*'.repeat(visa.number.length));
    assert.match(received.text, /"id":12345678901234567890,/);
    assert.ok(received.text.endsWith('}\n'));
    assert.equal(received.headers.get('x-name'), 'configured');
    assert.equal(received.headers.get('content-length'), String(Buffer.byteLength(received.text)));
    assert.equal(received.headers.get('etag'), null);
    assert.equal(headerOf(last().headers, 'accept-encoding'), 'identity');
    assert.equal(headerOf(last().headers, 'range'), undefined);
    const stored = await tenant.send('GET', `/tokens/${token.id}`);
    assert.equal(stored.body.data.number, visa.number);
    assert.equal(stored.body.mask, '{{ data.number | reveal_last: 4 }}');
    assert.deepEqual(await tenant.logged(), ['create', 'read']);
  });

  test('only successful responses are transformed, and those without a body keep none', async () => {
    const tenant = await newTenant();
    const response_transforms = [
      number,
      { type: 'append_text', options: { value: 'more' } },
      { type: 'append_header', options: { location: 'X-Added', value: 'yes' } },
    ];
    const call = await proxyOf(tenant, { destination_url: url, response_transforms });
    for (const status of [302, 404, 500]) {
      destination.behave(answer(status, [], 'as it is'));
      const received = await call('GET', '');
      assert.equal(received.text, 'as it is');
      assert.equal(received.headers.get('x-added'), null);
    }
    destination.behave(answer(204));
    const empty = await call('GET', '');
    assert.equal(empty.status, 204);
    assert.equal(empty.headers.get('x-added'), 'yes');
    destination.behave(answer(200, ['Content-Length', '99']));
    const head = await call('HEAD', '');
    assert.equal(head.headers.get('content-length'), null);
    destination.behave(answer(200, [], 'text'));
    assert.equal((await call('GET', '')).text, 'textmore');
  });

  test('a packed response is unpacked, within a limit', async () => {
    const tenant = await newTenant();
    const call = await proxyOf(tenant, { destination_url: url, response_transforms: [number] });
    for (const [encoding, pack] of [
      ['gzip', gzipSync],
      ['deflate', deflateSync],
      ['br', brotliCompressSync],
    ] as const) {
      destination.behave(answer(200, ['Content-Encoding', encoding], pack(card)));
      const received = await call('GET', '');
      assert.match(received.text, /\*{16}/);
      assert.equal(received.headers.get('content-encoding'), null);
    }
    const max = 5 * 1024 * 1024;
    for (const [headers, body, status] of [
      [['Content-Encoding', 'gzip'], gzipSync(Buffer.alloc(max, 'x')), 200],
      [['Content-Encoding', 'gzip'], gzipSync(Buffer.alloc(max + 1, 'x')), 502],
      [['Content-Encoding', 'gzip'], 'not packed', 502],
      [['Content-Encoding', 'gzip, br'], 'x', 502],
      [[], Buffer.alloc(max, 'x'), 200],
      [[], Buffer.alloc(max + 1, 'x'), 502],
      [
        ['Content-Type', 'text/plain; charset=utf-16le'],
        Buffer.from('ä"number":"1"', 'latin1'),
        502,
      ],
    ] as [string[], Buffer | string, number][]) {
      destination.behave(answer(200, headers, body));
      const received = await call('GET', '');
      assert.equal(received.status, status, received.text.slice(0, 200));
      if (status !== 502) continue;
      assert.equal(received.headers.get('svc-proxy-destination-status'), null);
      assert.match(received.body.proxy_error.detail, /cannot be transformed/);
    }
  });

  test('a response that cannot be transformed is a 502, and makes no token', async () => {
    const tenant = await newTenant();
    const call = await proxyOf(tenant, {
      destination_url: url,
      response_transforms: [
        tokenizing('made', fromCard),
        { type: 'append_json', options: { location: '$.card.number.x', value: 'x' } },
      ],
    });
    destination.behave(answer(200, json, card));
    assert.equal((await call('GET', '')).status, 502);
    destination.behave(answer(200, json, card.replace(visa.number, '4242424242424241')));
    const invalid = await call('GET', '');
    assert.equal(invalid.status, 502);
    assert.deepEqual(Object.keys(invalid.body.proxy_error.errors), [
      'response_transforms[0].options.token.data.number',
    ]);
    destination.behave(answer(200, [], 'no json'));
    assert.equal((await call('GET', '')).status, 502);
    assert.equal((await tenant.rows('tokens')).length, 0);
    assert.equal((await tenant.logged('proxy')).filter((one) => one === 'invoke').length, 3);
  });

  test('requests make tokens of what their caller sent, and name them', async () => {
    const tenant = await newTenant();
    const data = {
      number: "{{ proxy.request.body | json: '$.number' }}",
      expiration_month: 12,
      expiration_year: 2030,
    };
    const call = await proxyOf(tenant, {
      destination_url: url,
      request_transforms: [tokenizing('card', data)],
      response_transforms: [
        {
          type: 'append_json',
          options: {
            location: '$.made',
            value: "{{ transform_identifier: 'card' | json: '$.id' }}",
          },
        },
      ],
    });
    destination.behave(echo);
    const body = { number: visa.number, id: "{{ tokenize_transform: 'card' | json: '$.id' }}" };
    const received = await call('POST', '', { body });
    assert.equal(received.status, 200, received.text);
    const { id } = JSON.parse(last().body.toString());
    assert.equal(received.body.made, id);
    assert.equal((await tenant.send('GET', `/tokens/${id}`)).body.data.number, visa.number);
    const hidden = { ...body, id: "{{ tokenize_transform: 'card' | json: '$.data.number' }}" };
    await call('POST', '', { body: hidden });
    assert.equal(JSON.parse(last().body.toString()).id, null);
    const count = destination.requests.length;
    const wrong = await call('POST', '', { body: { ...body, number: '4242424242424241' } });
    assert.equal(wrong.status, 400);
    const path = 'request_transforms[0].options.token.data.number';
    assert.deepEqual(Object.keys(wrong.body.proxy_error.errors), [path]);
    const key = await tenant.application({ permissions: ['proxy:invoke'] });
    const forbidden = await call('POST', '', { key, body });
    assert.equal(forbidden.status, 403);
    assert.match(forbidden.body.proxy_error.detail, /token:create/);
    assert.equal(destination.requests.length, count);
  });

  test('equal values that arrive at once become one token', async () => {
    const tenant = await newTenant();
    destination.behave(answer(200, json, card));
    const call = await proxyOf(tenant, {
      destination_url: url,
      response_transforms: [
        tokenizing('made', fromCard, { deduplicate_token: true }),
        {
          type: 'append_json',
          options: {
            location: '$.made',
            value: "{{ transform_identifier: 'made' | json: '$.id' }}",
          },
        },
      ],
    });
    const all = await Promise.all(Array.from({ length: 8 }, () => call('GET', '')));
    const ids = new Set(all.map(({ body, text }) => body.made ?? text));
    assert.equal(ids.size, 1, [...ids].join(' '));
    assert.equal((await tenant.rows('tokens')).length, 1);
  });

  test('no transform refers to a token, or shows what was sent', async () => {
    const tenant = await newTenant();
    const { id } = (await tenant.token({ type: 'token', data: 's3cretvalue' })).body;
    const value = `{{ ${id} }}`;
    const wrong = { name: 'x', destination_url: url };
    for (const transform of [
      { type: 'append_json', options: { location: '$.x', value } },
      { type: 'append_text', options: { value } },
      { type: 'append_header', options: { location: 'X', value } },
      tokenizing('x', value),
    ]) {
      const refused = await sendProxy(tenant, 'POST', '', {
        body: { ...wrong, response_transforms: [transform] },
      });
      assert.equal(refused.status, 400, JSON.stringify(transform));
      assert.deepEqual(Object.keys(refused.body.errors), ['response_transforms[0].options']);
    }
    destination.behave(answer(200, [], 'ok'));
    for (const sent of ['{{ proxy.request.body }}', '{{ proxy.request.headers.X-A }}']) {
      const call = await proxyOf(tenant, {
        destination_url: url,
        response_transforms: [{ type: 'append_text', options: { value: sent } }],
      });
      const received = await call('POST', '', { body: { a: value }, headers: { 'X-A': value } });
      assert.equal(received.status, 502, received.text);
      assert.doesNotMatch(received.text, /s3cret/);
    }
  });
});
