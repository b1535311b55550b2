/** Which forwarded requests share a connection, and what becomes of a kept one that was closed. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { Connections } from '../../src/outbound/connections.ts';
import { slotLimits } from '../../src/outbound/forward.ts';
import {
  answer,
  type Behavior,
  type Destination,
  type Exchange,
  raw,
  startDestination,
} from '../support/destination.ts';
import {
  calling,
  type Forwarding,
  fails,
  type Given,
  startForwarding,
} from '../support/forwarding.ts';
import { startHost } from '../support/host.ts';

async function ask(forward: Forwarding, url: string, given: Given = {}): Promise<string> {
  const { body } = await forward(url, given);
  return text(body);
}

const connectionsOf = ({ requests }: Destination) => requests.map(({ connection }) => connection);

test('requests of one partition to one host share a connection, and no others do', async (t) => {
  const { destination, forward } = await startForwarding(t);
  const byName = `https://localhost:${destination.port}`;
  const requests: readonly (readonly [string, Given])[] = [
    [destination.url, {}],
    [`${destination.url}/path?query`, { method: 'POST', body: Buffer.from('a') }],
    [destination.url, { partition: 'two' }],
    [byName, {}],
    [destination.url, {}],
    [byName, {}],
  ];
  for (const [url, given] of requests) await ask(forward, url, given);
  assert.deepEqual(connectionsOf(destination), [0, 0, 1, 2, 0, 2]);
});

test('a client certificate is shown where it is given, on connections of its own', async (t) => {
  const { destination, forward } = await startForwarding(t, { clientCertificates: true });
  const [one, two] = [destination.issue('shop one'), destination.issue('shop two')];
  for (const clientCertificate of [one, two, { ...one }]) {
    await ask(forward, destination.url, { clientCertificate });
  }
  assert.deepEqual(
    destination.requests.map(({ clientName }) => clientName),
    ['shop one', 'shop two', 'shop one'],
  );
  assert.deepEqual(connectionsOf(destination), [0, 1, 0]);
});

test('without the client certificate that it requires a destination gets no request', async (t) => {
  // In TLS 1.3 the client has sent its request by the time the certificate is refused.
  const tls = { maxVersion: 'TLSv1.2' } as const;
  const { destination, forward } = await startForwarding(t, { clientCertificates: true, tls });
  const stranger = (await startDestination(t)).issue('stranger');
  await fails(forward(destination.url), 'tls');
  await fails(forward(destination.url, { clientCertificate: stranger }), 'tls');
  const { cert } = destination.issue('one');
  const { key } = destination.issue('two');
  await fails(forward(destination.url, { clientCertificate: { cert, key } }), 'tls');
  await fails(forward(destination.url, { clientCertificate: { cert: 'no PEM', key } }), 'tls');
  assert.deepEqual(destination.requests, []);
});

/** Answers, except to the second request. */
function failingOnce(fail: (exchange: Exchange) => void): Behavior {
  let requests = 0;
  return async (exchange) => {
    requests += 1;
    await exchange.received;
    if (requests === 2) fail(exchange);
    else exchange.response.end(`answer ${requests}`);
  };
}

const closings: Readonly<Record<string, (exchange: Exchange) => void>> = {
  broken: ({ reset }) => reset(),
  closed: ({ socket }) => void socket.end(),
};

for (const [how, close] of Object.entries(closings)) {
  test(`a kept connection that was ${how} costs an idempotent request nothing`, async (t) => {
    const { destination, forward } = await startForwarding(t);
    for (const [index, method] of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS'].entries()) {
      const partition = method;
      destination.behave(failingOnce(close));
      await ask(forward, destination.url, { partition });
      const given = { method, partition, body: method === 'PUT' ? Buffer.from('p') : undefined };
      const received = await ask(forward, destination.url, given);
      assert.equal(received, method === 'HEAD' ? '' : 'answer 3', method);
      const [first, second, third] = connectionsOf(destination).slice(index * 3);
      assert.equal(first, second, method);
      assert.notEqual(second, third, method);
    }
  });
}

test('a request is sent once when its outcome is not certain', async (t) => {
  const { destination, forward } = await startForwarding(t);
  const stream = () => Readable.from([Buffer.from('b')]);
  const uncertain: readonly (readonly [string, Given, (exchange: Exchange) => void])[] = [
    ['a POST', { method: 'POST', body: Buffer.from('b') }, ({ reset }) => reset()],
    ['a PATCH', { method: 'PATCH' }, ({ reset }) => reset()],
    ['a stream', { method: 'PUT', body: stream() }, ({ reset }) => reset()],
    ['a begun answer', {}, ({ socket }) => void socket.end('HTTP/1.1 2')],
  ];
  for (const [index, [name, given, fail]] of uncertain.entries()) {
    const partition = name;
    destination.behave(failingOnce(fail));
    await ask(forward, destination.url, { partition });
    await fails(forward(destination.url, { ...given, partition }), 'reset');
    assert.equal(destination.requests.length, 2 * (index + 1), name);
  }
});

test('a new connection that breaks is not tried again, nor is a second one', async (t) => {
  const { destination, forward } = await startForwarding(t);
  destination.behave(async ({ reset, received }) => {
    await received;
    reset();
  });
  await fails(forward(destination.url), 'reset');
  assert.equal(destination.requests.length, 1);
  destination.behave(answer());
  await ask(forward, destination.url);
  destination.behave(async ({ reset, received }) => {
    await received;
    reset();
  });
  await fails(forward(destination.url), 'reset');
  assert.equal(destination.requests.length, 4);
});

test('a connection that its host ends is not used again', async (t) => {
  const { destination, forward } = await startForwarding(t);
  destination.behave(answer(200, ['connection', 'close']));
  for (let round = 0; round < 2; round += 1) await ask(forward, destination.url);
  assert.deepEqual(connectionsOf(destination), [0, 1]);
});

test('what comes on an idle connection is never the answer to the next request', async (t) => {
  const { destination, forward } = await startForwarding(t);
  const { promise: idle, resolve } = Promise.withResolvers<() => void>();
  destination.behave(async ({ response, socket, received }) => {
    await received;
    response.end('own');
    resolve(() => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged'));
  });
  await ask(forward, destination.url);
  const [socket] = destination.sockets;
  assert.ok(socket);
  const closed = once(socket, 'close');
  (await idle)();
  await closed;
  assert.equal(await ask(forward, destination.url), 'own');
  assert.deepEqual(connectionsOf(destination), [0, 1]);
});

test('an idle connection is closed after some seconds, or when its host announces it', async (t) => {
  const { destination, forward } = await startForwarding(t);
  await ask(forward, destination.url);
  destination.behave(raw('HTTP/1.1 200 OK\r\nKeep-Alive: timeout=2\r\nContent-Length: 0\r\n\r\n'));
  await ask(forward, destination.url, { partition: 'two' });
  const closed: number[] = [];
  const all = destination.sockets.map(async (socket, index) => {
    await once(socket, 'close');
    closed.push(index);
  });
  await Promise.all(all);
  assert.deepEqual(closed, [1, 0]);
});

test('of too many idle connections the one unused for the longest time is closed', async (t) => {
  // So few are connected long before the first of them was idle for too long.
  const idleMax = 8;
  const { destination, forward } = await startForwarding(t, {}, new Connections(idleMax));
  const partitions = Array.from({ length: idleMax }, (_, index) => String(index));
  const ended = () => destination.sockets.filter(({ readableEnded }) => readableEnded).length;
  await Promise.all(partitions.map((partition) => ask(forward, destination.url, { partition })));
  assert.equal(ended(), 0);
  await ask(forward, destination.url, { partition: 'one more' });
  const closings = destination.sockets.map(async (socket) => {
    await once(socket, 'close');
    return socket;
  });
  await Promise.race(closings);
  assert.equal(ended(), 1);
});

test('at most 64 requests go to one place at once, and the next waits for its turn', async (t) => {
  const { destination, forward } = await startForwarding(t);
  const waiting: (() => void)[] = [];
  const { promise: full, resolve: filled } = Promise.withResolvers<void>();
  destination.behave(({ response }) => {
    waiting.push(() => response.end());
    if (waiting.length === slotLimits.destinationMax) filled();
  });
  const statuses = Array.from({ length: slotLimits.destinationMax + 1 }, async () => {
    const { status, body } = await forward(destination.url);
    body.resume();
    return status;
  });
  await full;
  await fails(forward(destination.url, { timeoutMs: 50 }), 'timeout');
  assert.equal(waiting.length, slotLimits.destinationMax);
  destination.behave(answer());
  for (const end of waiting.splice(0)) end();
  assert.deepEqual(new Set(await Promise.all(statuses)), new Set([200]));
});

test('a proxy named in the environment is not used', async (t) => {
  const { destination, forward } = await startForwarding(t);
  const proxy = await startHost(t);
  t.after(http.setGlobalProxyFromEnv({ http_proxy: proxy.url, https_proxy: proxy.url }));
  await ask(forward, destination.url);
  assert.equal(proxy.requests.length, 0);
  assert.equal(destination.requests.length, 1);
});

test('an authority is trusted besides the public ones, not by other clients', async (t) => {
  const [one, two] = [await startDestination(t), await startDestination(t)];
  const allow = new Set([one.name, two.name]);
  const forward = calling({ allow, authorities: [one.authority.cert, two.authority.cert] });
  for (const { url } of [one, two]) assert.equal((await forward(url)).status, 200);
  const other = calling({ allow, authorities: [one.authority.cert] });
  assert.equal((await other(one.url)).status, 200);
  await fails(other(two.url), 'tls');
});
