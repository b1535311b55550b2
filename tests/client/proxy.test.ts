/** `vault.proxy.fetch` has the shape of `fetch`: values reach the destination, and its response the caller. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import {
  ApiError,
  ConfigurationError,
  NotFoundError,
  PermissionError,
} from '../../packages/client/src/client.ts';
import { clientOf, clientsOf } from '../support/client.ts';
import { answer, echo, hang } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { headerOf, startCalled } from '../support/proxy-calls.ts';
import { tenantsOf } from '../support/tenant.ts';
import { visa } from '../support/values.ts';

const { destination, url, environment } = await startCalled({ after });
const last = () => {
  const request = destination.requests.at(-1);
  assert.ok(request);
  return request;
};

onBothEngines('calls of proxies by the client', (engine) => {
  const tenants = tenantsOf(engine, { environment });

  test('a call has the values of tokens, and gives the response of the destination as it is', async () => {
    const { vault, admin } = await clientsOf(await tenants());
    await vault.tokens.create({ id: 'the-card', type: 'card', data: visa });
    const proxy = await admin.proxies.create({ name: 'p', destination_url: `${url}/v1` });
    destination.behave(
      answer(402, ['content-type', 'application/json', 'x-own', 'yes'], '{"a":1}'),
    );
    const response = await vault.proxy.fetch('/charges?x=1&y=%7B', {
      proxy: proxy.key,
      method: 'post',
      headers: { 'content-type': 'application/json', authorization: 'Bearer b' },
      body: JSON.stringify({ number: "{{ the-card | json: '$.number' }}" }),
    });
    assert.ok(response instanceof Response);
    assert.equal(response.status, 402);
    assert.equal(response.headers.get('x-own'), 'yes');
    assert.deepEqual(await response.json(), { a: 1 });
    assert.equal(last().method, 'POST');
    assert.equal(last().url, '/v1/charges?x=1&y=%7B');
    assert.deepEqual(JSON.parse(last().body.toString()), { number: visa.number });
    assert.equal(headerOf(last().headers, 'authorization'), 'Bearer b');
    assert.equal(headerOf(last().headers, 'svc-api-key'), undefined);
  });

  test('the address of a call is a path, an address below a proxy, or a destination', async () => {
    const { vault, admin } = await clientsOf(await tenants());
    const proxy = await admin.proxies.create({ name: 'p', destination_url: `${url}/v1` });
    destination.behave(answer());
    await vault.proxy.fetch(`${url}/v1/a?b=c#d`, { proxy });
    assert.equal(last().url, '/v1/a?b=c');
    await vault.proxy.fetch('/e', { proxy });
    assert.equal(last().url, '/v1/e');
    await vault.proxy.fetch(new URL(`${url}/whole/path?q=1`));
    assert.equal(last().url, '/whole/path?q=1');
    assert.throws(
      () => vault.proxy.fetch('https://elsewhere.example.com/v1', { proxy }),
      ConfigurationError,
    );
    assert.throws(() => vault.proxy.fetch('/a'), ConfigurationError);
    // A part of the path may come from a stranger, who would choose what is asked of the vault itself.
    for (const path of [
      '/../tokens/a',
      '/a/../../tokens/a',
      '/%2e%2E/tokens',
      '/..\\tokens',
      '/.\t./tokens',
    ]) {
      assert.throws(() => vault.proxy.fetch(path, { proxy }), ConfigurationError, path);
    }
    await vault.proxy.fetch('/a/../b?c=../..', { proxy });
    assert.equal(last().url, '/v1/b?c=../..');
  });

  test('bodies stream in both directions', async () => {
    const { vault, admin } = await clientsOf(await tenants());
    const { key } = await admin.proxies.create({ name: 'p', destination_url: url });
    destination.behave(echo);
    const parts = ['one ', 'two ', 'three'];
    const body = new ReadableStream({
      pull: (control) => {
        const part = parts.shift();
        if (part === undefined) control.close();
        else control.enqueue(new TextEncoder().encode(part));
      },
    });
    const headers = { 'content-type': 'application/octet-stream' };
    const response = await vault.proxy.fetch('/', { proxy: key, method: 'POST', headers, body });
    assert.equal(await response.text(), 'one two three');
  });

  test('a redirect of the destination is given, and not followed', async () => {
    const { vault, admin } = await clientsOf(await tenants());
    const { key } = await admin.proxies.create({ name: 'p', destination_url: url });
    destination.behave(answer(302, ['location', 'https://elsewhere.example.com/']));
    const response = await vault.proxy.fetch('/', { proxy: key });
    assert.equal(response.status, 302);
  });

  test('what the vault refuses is thrown, with its problem', async () => {
    const tenant = await tenants();
    const { vault, admin } = await clientsOf(tenant);
    const { key } = await admin.proxies.create({ name: 'p', destination_url: url, timeout: 1 });
    destination.behave(answer());
    await assert.rejects(vault.proxy.fetch('/', { proxy: 'a'.repeat(38) }), NotFoundError);
    const reader = clientOf(tenant, {
      apiKey: await tenant.application({ permissions: ['token:read'] }),
    });
    await assert.rejects(reader.proxy.fetch('/', { proxy: key }), PermissionError);
    const unknown = JSON.stringify({ a: '{{ token: no-such-token }}' });
    const sent = { proxy: key, method: 'POST', body: unknown };
    await assert.rejects(vault.proxy.fetch('/', sent), (error: unknown) => {
      assert.ok(error instanceof ApiError);
      assert.equal(error.status, 400);
      assert.match(error.problem.detail, /no-such-token/);
      return true;
    });
    await assert.rejects(
      vault.proxy.fetch('/', { proxy: 'a'.repeat(38), method: 'HEAD' }),
      ApiError,
    );
  });

  test('a signal ends a call that has begun, its body included', async () => {
    const { vault, admin } = await clientsOf(await tenants());
    const { key } = await admin.proxies.create({ name: 'p', destination_url: url });
    destination.behave(hang);
    const control = new AbortController();
    const reason = new Error('enough');
    const pending = vault.proxy.fetch('/', { proxy: key, signal: control.signal });
    control.abort(reason);
    await assert.rejects(pending, reason);
    destination.behave(({ response }) => {
      response.writeHead(200).write('begun');
    });
    const later = new AbortController();
    const response = await vault.proxy.fetch('/', { proxy: key, signal: later.signal });
    later.abort(reason);
    await assert.rejects(response.text());
  });
});
