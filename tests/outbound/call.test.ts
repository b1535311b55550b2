/** Guarded calls against real hosts on loopback, which is forbidden unless the operator allows it. */
import assert from 'node:assert/strict';
import http from 'node:http';
import { type TestContext, test } from 'node:test';
import { createOutbound, type OutboundRequest } from '../../src/outbound/call.ts';
import { valuesOf } from '../../src/outbound/end-to-end.ts';
import { OutboundError, type OutboundFailure } from '../../src/outbound/error.ts';
import { createForward, type OutboundOptions } from '../../src/outbound/forward.ts';
import type { Resolve } from '../../src/outbound/resolve.ts';
import { startDestination } from '../support/destination.ts';
import { type Host, redirect, startHost } from '../support/host.ts';
import { freePort } from '../support/temporary.ts';

const limits = { method: 'GET', timeoutMs: 5000, responseBytesMax: 1000, redirectsMax: 3 };

type Given = Partial<Omit<OutboundRequest, 'url'>>;

/** Calls a URL with only these hosts allowed. */
function calling(hosts: readonly Host[], options: Partial<OutboundOptions> = {}) {
  const allow = new Set(hosts.map(({ name }) => name));
  const vaultName = 'strongroom-0000000000000000';
  const outbound = createOutbound(createForward({ allow, vaultName, ...options }));
  return (url: string, given: Given = {}) => outbound({ ...limits, url: new URL(url), ...given });
}

function fails(call: Promise<unknown>, reason: OutboundFailure): Promise<void> {
  return assert.rejects(call, (error) => {
    assert.ok(error instanceof OutboundError);
    assert.equal(error.reason, reason);
    return true;
  });
}

/** A name server of our own; names it does not know are left to fail. */
function names(known: Readonly<Record<string, readonly string[]>>) {
  const asked: string[] = [];
  const resolve: Resolve = (name, give) => {
    asked.push(name);
    const addresses = known[name] ?? [];
    const error = addresses.length > 0 ? null : Object.assign(new Error(), { code: 'ENOTFOUND' });
    give(
      error,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  };
  return { asked, resolve };
}

/** A host that is called and one behind it that must not be. */
async function twoHosts(t: TestContext) {
  return { front: await startHost(t), behind: await startHost(t) };
}

test('an allowed host gets the request as given, and its answer comes back whole', async (t) => {
  const host = await startHost(t);
  host.answer((response) => response.writeHead(418, { 'x-kind': 'teapot' }).end('short\0stout'));
  const headers = { 'x-key': 'k', accept: ['a/b', 'c/d'] };
  const answer = await calling([host])(`${host.url}/a?b=c#d`, {
    method: 'POST',
    headers,
    body: 'tää',
  });
  assert.equal(answer.status, 418);
  assert.deepEqual(valuesOf(answer.headers, 'x-kind'), ['teapot']);
  assert.equal(answer.body.toString(), 'short\0stout');
  const [request] = host.requests;
  assert.deepEqual([request?.method, request?.path, request?.body], ['POST', '/a?b=c', 'tää']);
  assert.equal(request?.headers['x-key'], 'k');
  assert.equal(request?.headers.accept, 'a/b, c/d');
  assert.equal(request?.headers['content-length'], '5');
  assert.equal(request?.headers.cookie, undefined);
});

test('cookies are not kept from one call to the next', async (t) => {
  const host = await startHost(t);
  host.answer((response) => response.writeHead(200, { 'set-cookie': 'a=b' }).end());
  const call = calling([host]);
  await call(host.url);
  await call(host.url);
  assert.equal(host.requests[1]?.headers.cookie, undefined);
});

test('loopback is not called unless allowed, however it is written', async (t) => {
  const host = await startHost(t);
  const call = calling([]);
  const written = ['127.0.0.1', '127.1', '0x7f.1', '2130706433', '[::1]', '[::ffff:127.0.0.1]'];
  for (const name of written) {
    await fails(call(`https://${name}:${host.port}/`), 'forbidden_address');
    await fails(call(`http://${name}:${host.port}/`), 'forbidden_url');
  }
  for (const name of ['localhost', 'LOCALHOST']) {
    await fails(call(`https://${name}:${host.port}/`), 'forbidden_address');
  }
  assert.equal(host.requests.length, 0);
});

test('an allowed host is allowed at its port alone', async (t) => {
  const { front, behind } = await twoHosts(t);
  await fails(calling([front])(behind.url), 'forbidden_url');
  await fails(calling([front])(`http://localhost:${front.port}/`), 'forbidden_url');
  assert.equal(front.requests.length + behind.requests.length, 0);
});

test('a name is looked up once, and only what that answer says is connected to', async (t) => {
  const host = await startHost(t);
  const inside = ['127.0.0.1', '::1', '10.1.2.3', '169.254.169.254', 'fd00:ec2::254'];
  const { asked, resolve } = names({ 'rebind.example': inside });
  const call = calling([], { resolve });
  await fails(call(`https://rebind.example:${host.port}/`), 'forbidden_address');
  assert.deepEqual(asked, ['rebind.example']);
  assert.equal(host.requests.length, 0);
});

test('a name that does not resolve and a connection that breaks fail differently', async (t) => {
  const host = await startHost(t);
  const { resolve } = names({});
  await fails(calling([], { resolve })('https://nowhere.example/'), 'dns');
  host.answer((response) => response.destroy());
  await fails(calling([host])(host.url), 'reset');
});

test('no call goes to the port of the database, nor carries a user name', async () => {
  const { asked, resolve } = names({});
  const call = calling([], { resolve, databasePorts: [5432] });
  await fails(call('https://bank.example:5432/'), 'forbidden_url');
  await fails(call('https://user:word@bank.example/'), 'forbidden_url');
  await fails(call('ftp://bank.example/'), 'forbidden_url');
  assert.deepEqual(asked, []);
});

test('a redirect to a forbidden address is not followed', async (t) => {
  const { front, behind } = await twoHosts(t);
  const { resolve } = names({ 'inside.example': ['127.0.0.1'] });
  const call = calling([front], { resolve });
  const forbidden: Readonly<Record<string, OutboundFailure>> = {
    [behind.url]: 'forbidden_url',
    [`https://${behind.name}/`]: 'forbidden_address',
    [`https://[::1]:${behind.port}/`]: 'forbidden_address',
    [`//${behind.name}/`]: 'forbidden_url',
    [`https://inside.example:${behind.port}/`]: 'forbidden_address',
    'https://169.254.169.254/latest/meta-data/': 'forbidden_address',
    'file:///etc/hostname': 'forbidden_url',
    'http://': 'bad_redirect',
  };
  for (const [location, reason] of Object.entries(forbidden)) {
    front.answer(redirect(location));
    await fails(call(front.url), reason);
  }
  assert.equal(behind.requests.length, 0);
});

test('redirects are followed up to the limit, and with 0 are an answer', async (t) => {
  const host = await startHost(t);
  host.answer((response, { path }) => {
    const left = Number(path?.slice(1));
    if (left > 0)
      redirect(`/${left - 1}`)(response, { method: 'GET', path, headers: {}, body: '' });
    else response.end('there');
  });
  const call = calling([host]);
  assert.equal((await call(`${host.url}/3`)).body.toString(), 'there');
  await fails(call(`${host.url}/4`), 'too_many_redirects');
  const answer = await call(`${host.url}/1`, { redirectsMax: 0 });
  assert.equal(answer.status, 302);
  assert.deepEqual(valuesOf(answer.headers, 'location'), ['/0']);
});

const body = { method: 'POST', body: 'secret', headers: { 'x-key': 'k', 'content-type': 'a/b' } };

test('a redirect within the origin keeps headers, and the body where the status says so', async (t) => {
  const host = await startHost(t);
  const call = calling([host]);
  for (const [status, method, sent] of [
    [301, 'GET', ''],
    [302, 'GET', ''],
    [303, 'GET', ''],
    [307, 'POST', 'secret'],
    [308, 'POST', 'secret'],
  ] as const) {
    host.answer((response, request) =>
      request.path === '/' ? redirect('/next', status)(response, request) : response.end(),
    );
    await call(host.url, body);
    const last = host.requests.at(-1);
    assert.deepEqual([last?.path, last?.method, last?.body], ['/next', method, sent], `${status}`);
    assert.equal(last?.headers['x-key'], 'k');
    assert.equal(last?.headers['content-type'], sent === '' ? undefined : 'a/b');
  }
});

test('a redirect to another origin takes neither headers nor body along', async (t) => {
  const { front, behind } = await twoHosts(t);
  const call = calling([front, behind]);
  for (const status of [307, 308]) {
    front.answer(redirect(behind.url, status));
    await fails(call(front.url, body), 'forbidden_redirect');
  }
  assert.equal(behind.requests.length, 0);
  front.answer(redirect(behind.url, 303));
  await call(front.url, body);
  assert.deepEqual([behind.requests[0]?.method, behind.requests[0]?.body], ['GET', '']);
  assert.equal(behind.requests[0]?.headers['x-key'], undefined);
});

test('the time limit holds for a late answer, a slow body and all redirects together', async (t) => {
  const host = await startHost(t);
  const call = calling([host]);
  const endings: readonly Parameters<Host['answer']>[0][] = [
    () => undefined,
    (response) => void response.write('never ended'),
    (response, request) => void setTimeout(() => redirect('/')(response, request), 40),
  ];
  for (const answer of endings) {
    host.answer(answer);
    await fails(call(host.url, { timeoutMs: 100, redirectsMax: 1000 }), 'timeout');
  }
});

test('an answer over the size limit is broken off, with its length announced or not', async (t) => {
  const host = await startHost(t);
  const call = calling([host]);
  host.answer((response) => response.end('x'.repeat(1000)));
  assert.equal((await call(host.url)).body.length, 1000);
  host.answer((response) => response.end('x'.repeat(1001)));
  await fails(call(host.url), 'too_large');
  host.answer((response) => {
    const send = (): void => void (response.write('x'.repeat(10_000)) && setImmediate(send));
    response.on('drain', send);
    send();
  });
  await fails(call(host.url), 'too_large');
  host.answer((response) => response.writeHead(200, { 'x-long': 'x'.repeat(20_000) }).end());
  await fails(call(host.url), 'invalid_response');
});

test('an authority of the operator is trusted, and no other', async (t) => {
  const { name, url, authority } = await startDestination(t);
  const allow = new Set([name]);
  await fails(calling([], { allow })(url), 'tls');
  const answer = await calling([], { allow, authorities: [authority.cert] })(url);
  assert.equal(answer.status, 200);
});

test('a port where nobody listens is not connected to', async () => {
  const name = `127.0.0.1:${await freePort()}`;
  await fails(calling([], { allow: new Set([name]) })(`http://${name}/`), 'connect');
});

test('a proxy named in the environment is not used', async (t) => {
  const { front, behind } = await twoHosts(t);
  const restore = http.setGlobalProxyFromEnv({ http_proxy: behind.url, https_proxy: behind.url });
  t.after(restore);
  await calling([front])(front.url);
  assert.equal(front.requests.length, 1);
  assert.equal(behind.requests.length, 0);
});

test('no failure repeats anything of the URL, the headers or the body', async (t) => {
  const host = await startHost(t);
  host.answer((response) => response.destroy());
  const secret = 'sealed-4111';
  const given = { method: 'POST', body: secret, headers: { 'x-key': secret } };
  const call = calling([host]);
  for (const url of [`${host.url}/${secret}`, `https://127.0.0.1/${secret}`, `ftp://${secret}/`]) {
    const error = await call(url, given).catch((failure: unknown) => failure);
    assert.ok(error instanceof OutboundError);
    assert.doesNotMatch(`${error.stack}${JSON.stringify(error)}`, /4111/);
    assert.equal(error.cause, undefined);
  }
});
