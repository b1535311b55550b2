/** Forwarded requests that fail: each in its own way, never in silence, and without quoting anything. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { OutboundError, type OutboundFailure } from '../../src/outbound/error.ts';
import type { Resolve } from '../../src/outbound/resolve.ts';
import {
  answer,
  type Behavior,
  hang,
  lyingAboutLength,
  raw,
  resetAfter,
  startDestination,
} from '../support/destination.ts';
import { calling, fails, startForwarding } from '../support/forwarding.ts';
import { startHost } from '../support/host.ts';
import { freePort } from '../support/temporary.ts';

const none = { allow: new Set<string>() };

function resolving(addresses: readonly string[], code = 'ENOTFOUND'): Resolve {
  const error = addresses.length > 0 ? null : Object.assign(new Error(), { code });
  return (_name, give) =>
    give(
      error,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
}

test('loopback is not called unless allowed, however it is written', async (t) => {
  const { port, sockets } = await startDestination(t);
  const forward = calling(none);
  const written = ['127.0.0.1', '127.1', '0x7f.1', '2130706433', '[::1]', '[::ffff:127.0.0.1]'];
  for (const name of [...written, 'localhost', 'LOCALHOST']) {
    await fails(forward(`https://${name}:${port}/`), 'forbidden_address');
  }
  assert.equal(sockets.length, 0);
});

test('a name is connected to at its public addresses alone', async (t) => {
  const { port, sockets } = await startDestination(t);
  const inside = ['127.0.0.1', '::1', '10.1.2.3', '169.254.169.254', 'fd00:ec2::254'];
  const forward = calling({ ...none, resolve: resolving(inside) });
  await fails(forward(`https://rebind.example:${port}/`), 'forbidden_address');
  assert.equal(sockets.length, 0);
});

test('only https is called, without a user name, and not at the port of the database', async (t) => {
  const host = await startHost(t);
  const forward = calling({ allow: new Set([host.name]), databasePorts: [5432] });
  const urls = [
    host.url,
    'http://shop.example/',
    'https://shop.example:5432/',
    'https://user:word@shop.example/',
    'https://user@shop.example/',
    'ftp://shop.example/',
  ];
  for (const url of urls) await fails(forward(url), 'forbidden_url');
  assert.equal(host.requests.length, 0);
});

test('a name that does not resolve and a port where nobody listens fail differently', async () => {
  for (const code of ['ENOTFOUND', 'EAI_AGAIN', 'ENODATA']) {
    const forward = calling({ ...none, resolve: resolving([], code) });
    await fails(forward('https://nowhere.example/'), 'dns');
  }
  const name = `127.0.0.1:${await freePort()}`;
  await fails(calling({ allow: new Set([name]) })(`https://${name}/`), 'connect');
});

test('a host that is not trusted, or speaks no TLS 1.2, gets no request', async (t) => {
  const { destination } = await startForwarding(t);
  await fails(calling({ allow: new Set([destination.name]) })(destination.url), 'tls');
  const other = await startForwarding(t, { hosts: ['shop.example'] });
  await fails(other.forward(other.destination.url), 'tls');
  await fails(other.forward(`https://localhost:${other.destination.port}/`), 'tls');
  const ciphers = 'DEFAULT@SECLEVEL=0';
  const old = await startForwarding(t, {
    tls: { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers },
  });
  await fails(old.forward(old.destination.url), 'tls');
  const plain = await startHost(t);
  await fails(calling({ allow: new Set([plain.name]) })(`https://${plain.name}/`), 'tls');
  assert.deepEqual(
    [destination, other.destination].flatMap(({ requests }) => requests),
    [],
  );
});

test('the environment cannot turn the verification of certificates off', async (t) => {
  const destination = await startDestination(t);
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
  t.after(() => void delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']);
  await fails(calling({ allow: new Set([destination.name]) })(destination.url), 'tls');
});

test('a connection that breaks within the handshake is a failure of TLS', async (t) => {
  const server = createServer((socket) => socket.once('data', () => socket.resetAndDestroy()));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => void server.close());
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  const name = `127.0.0.1:${address.port}`;
  await fails(calling({ allow: new Set([name]) })(`https://${name}/`), 'tls');
});

const head = 'HTTP/1.1 200 OK\r\n';
const broken: readonly (readonly [string, Behavior, OutboundFailure])[] = [
  ['nothing, until the time is up', hang, 'timeout'],
  ['nothing, and ends', raw('', 'end'), 'reset'],
  ['nothing, and breaks', raw('', 'reset'), 'reset'],
  ['half a head', raw('HTTP/1.1 200 OK\r\nX-A: ', 'end'), 'reset'],
  ['another protocol', raw('SSH-2.0-OpenSSH_9.9\r\n'), 'invalid_response'],
  [
    'two lengths',
    raw(`${head}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`),
    'invalid_response',
  ],
  [
    'a length and chunks',
    raw(`${head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`),
    'invalid_response',
  ],
  [
    'a coding that was not asked for',
    raw(`${head}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`),
    'invalid_response',
  ],
  [
    'another protocol on the same connection',
    raw('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
    'invalid_response',
  ],
];

for (const [name, behavior, reason] of broken) {
  test(`a destination that sends ${name}: ${reason}, and the connection is closed`, async (t) => {
    const { destination, forward } = await startForwarding(t);
    destination.behave(behavior);
    const timeoutMs = reason === 'timeout' ? 300 : 20_000;
    await fails(forward(destination.url, { timeoutMs }), reason);
    const [socket] = destination.sockets;
    if (socket?.closed === false) await once(socket, 'close');
  });
}

const truncated: readonly (readonly [string, Behavior, OutboundFailure])[] = [
  ['breaks after some bytes', resetAfter(5), 'reset'],
  ['sends less than it announced', lyingAboutLength(10, 5), 'reset'],
  [
    'ends before its last chunk',
    raw(`${head}Transfer-Encoding: chunked\r\n\r\n5\r\nxxxxx\r\n`, 'end'),
    'reset',
  ],
  [
    'sends a broken chunk',
    raw(`${head}Transfer-Encoding: chunked\r\n\r\n5\r\nxxxxx\r\nz\r\n`),
    'invalid_response',
  ],
  ['falls silent', raw(`${head}Content-Length: 10\r\n\r\nxxxxx`), 'timeout'],
];

for (const [name, behavior, reason] of truncated) {
  test(`the body of a destination that ${name} fails: ${reason}`, async (t) => {
    const { destination, forward } = await startForwarding(t);
    destination.behave(behavior);
    const timeoutMs = reason === 'timeout' ? 500 : 20_000;
    const { body } = await forward(destination.url, { timeoutMs });
    await fails(text(body), reason);
    // Whoever comes later finds it failed too, not empty, also the first one who asks for it.
    await fails(text(body), reason);
    const late = await forward(destination.url, { timeoutMs });
    const socket = destination.sockets.at(-1);
    if (socket && !socket.closed) await new Promise((done) => socket.once('close', done));
    for (let turns = 0; turns < 10; turns += 1) await new Promise(setImmediate);
    await fails(text(late.body), reason);
  });
}

test('what a destination sends beyond its length belongs to no answer', async (t) => {
  const { destination, forward } = await startForwarding(t);
  const second = `${head}Content-Length: 6\r\n\r\nforged`;
  destination.behave(raw(`${head}Content-Length: 5\r\n\r\nxxxxx${second}`));
  assert.equal(await text((await forward(destination.url)).body), 'xxxxx');
  destination.behave(answer(200, [], 'own'));
  assert.equal(await text((await forward(destination.url)).body), 'own');
  assert.equal(destination.sockets.length, 2);
});

test('a body of another length than it announced is never taken for a whole one', async (t) => {
  const { destination, forward } = await startForwarding(t);
  for (const length of ['3', '5']) {
    const body = Readable.from(['four']);
    const headers = ['content-length', length];
    await fails(forward(destination.url, { method: 'POST', headers, body }), 'aborted');
  }
  assert.deepEqual(destination.requests, []);
});

test('a body that breaks off ends the request, also when it had broken off before', async (t) => {
  const { destination, forward } = await startForwarding(t);
  const body = new Readable({ read: () => undefined });
  const call = forward(destination.url, { method: 'POST', body });
  body.push('some');
  body.destroy();
  await fails(call, 'aborted');
  await fails(forward(destination.url, { method: 'POST', body }), 'aborted');
  assert.deepEqual(destination.requests, []);
});

test('a failure leaves the body as it is, for its caller is still to hear of it', async (t) => {
  const { destination, forward } = await startForwarding(t);
  destination.behave(({ reset }) => reset());
  const body = new Readable({ read: () => undefined });
  body.push('some');
  await fails(forward(destination.url, { method: 'PUT', body }), 'reset');
  assert.equal(body.destroyed, false);
  assert.deepEqual(
    ['data', 'end', 'error', 'close'].map((name) => body.listenerCount(name)),
    [0, 0, 0, 0],
  );
});

test('a caller who goes away closes the connection, before the answer and within it', async (t) => {
  const { destination, forward } = await startForwarding(t);
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  destination.behave(() => resolve());
  const first = new AbortController();
  const call = forward(destination.url, { signal: first.signal });
  await asked;
  const closed = once(destination.sockets[0] as never, 'close');
  first.abort();
  await fails(call, 'aborted');
  await closed;
  destination.behave(raw(`${head}Content-Length: 10\r\n\r\nxxxxx`));
  const second = new AbortController();
  const { body } = await forward(destination.url, { signal: second.signal });
  const closedToo = once(destination.sockets[1] as never, 'close');
  second.abort();
  await fails(text(body), 'aborted');
  await closedToo;
  await fails(forward(destination.url, { signal: second.signal }), 'aborted');
  assert.equal(destination.sockets.length, 2);
});

test('an answer that its reader leaves closes the connection', async (t) => {
  const { destination, forward } = await startForwarding(t);
  destination.behave(raw(`${head}Content-Length: 10\r\n\r\nxxxxx`));
  const { body } = await forward(destination.url);
  const closed = once(destination.sockets[0] as never, 'close');
  body.destroy();
  await closed;
});

test('what HTTP does not allow is not sent', async (t) => {
  const { destination, forward } = await startForwarding(t);
  const given = [
    { headers: ['x-key', 'a\r\nb: c'] },
    { headers: ['x-key', 'a\0'] },
    { headers: ['x-key', '\u{1F511}'] },
    { headers: ['x key', 'a'] },
    { method: 'GET /' },
  ];
  for (const wrong of given) await fails(forward(destination.url, wrong), 'invalid_request');
  assert.equal(destination.sockets.length, 0);
});

test('no failure repeats anything of the URL, the headers or the body', async (t) => {
  const { destination, forward } = await startForwarding(t);
  const secret = 'sealed-4111';
  const given = { method: 'POST', body: Buffer.from(secret), headers: ['x-key', secret] };
  const urls = [`${destination.url}/${secret}`, `https://127.0.0.1/${secret}`, `ftp://${secret}/`];
  const calls = [
    ...urls.map((url) => () => forward(url, given)),
    () => forward(destination.url, { headers: [secret, `${secret}\n`] }),
    () => forward(destination.url, { headers: [`${secret}:`, ''] }),
    () => calling({ ...none, resolve: resolving([]) })(`https://${secret}.example/`),
    () => calling({ allow: new Set([destination.name]) })(`${destination.url}/${secret}`),
  ];
  destination.behave(raw(`HTTP/1.1 ${secret}\r\n\r\n`));
  for (const call of calls) {
    const error = await call().catch((failure: unknown) => failure);
    assert.ok(error instanceof OutboundError);
    assert.doesNotMatch(`${error.stack}${JSON.stringify(error)}`, /4111/);
    assert.equal(error.cause, undefined);
  }
});
