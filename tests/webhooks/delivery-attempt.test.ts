/** An attempt to deliver: what a receiver does decides its outcome, and nothing of what it says. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createForward } from '../../src/outbound/forward.ts';
import { attempt, responseBytesMax } from '../../src/webhooks/deliveries/attempt.ts';
import {
  answer,
  type Behavior,
  type Destination,
  hang,
  large,
  raw,
  resetAfter,
  startDestination,
} from '../support/destination.ts';
import { freePort, type Lender } from '../support/temporary.ts';

const message = {
  body: Buffer.from('{"event":{}}'),
  headers: ['content-type', 'application/json', 'webhook-id', 'an id'],
};

async function startReceiver(t: Lender) {
  const receiver = await startDestination(t);
  const { name, authority } = receiver;
  const forward = createForward({
    vaultName: 'strongroom-0000000000000000',
    allow: new Set([name]),
    authorities: [authority.cert],
  });
  const deliver = (given: { readonly url?: string; readonly timeoutMs?: number } = {}) => {
    const url = new URL(given.url ?? `${receiver.url}/hook?a=1`);
    return attempt(forward, { ...given, url, message, tenant: 'one' });
  };
  return { receiver, deliver };
}

/** Without the time it took. */
async function outcomeOf(attempted: ReturnType<typeof attempt>) {
  const { milliseconds, ...outcome } = await attempted;
  assert.ok(Number.isInteger(milliseconds) && milliseconds >= 0);
  return outcome;
}

const none = { status: undefined, error: undefined, retryAfter: undefined };

test('any 2xx is a success; the bytes, the path and the headers arrive as they were signed', async (t) => {
  const { receiver, deliver } = await startReceiver(t);
  for (const status of [200, 201, 202, 204, 299]) {
    receiver.behave(answer(status));
    assert.deepEqual(await outcomeOf(deliver()), { ...none, status });
  }
  const [request] = receiver.requests;
  assert.equal(request?.method, 'POST');
  assert.equal(request?.url, '/hook?a=1');
  assert.deepEqual(request?.body, message.body);
  const sent = request?.headers.slice(2, 6).map((text) => text.toLowerCase());
  assert.deepEqual(sent, message.headers);
});

test('deliveries of one tenant share a connection, also after a body of some length', async (t) => {
  const { receiver, deliver } = await startReceiver(t);
  receiver.behave(answer(200, [], 'x'.repeat(responseBytesMax)));
  for (let count = 0; count < 3; count++) await deliver();
  assert.deepEqual(new Set(receiver.requests.map(({ connection }) => connection)), new Set([0]));
});

test('a connection that the receiver has closed meanwhile costs no attempt', async (t) => {
  const { receiver, deliver } = await startReceiver(t);
  assert.equal((await deliver()).status, 200);
  receiver.behave(({ reset, request, response, received }) => {
    const isFirst = receiver.sockets.indexOf(request.socket as Destination['sockets'][0]) === 0;
    return isFirst ? reset() : answer()({ reset, request, response, received } as never);
  });
  assert.deepEqual(await outcomeOf(deliver()), { ...none, status: 200 });
  assert.equal(receiver.sockets.length, 2);
});

test('every other status is a failure, and no redirect is followed', async (t) => {
  const { receiver, deliver } = await startReceiver(t);
  const other = await startDestination(t);
  for (const status of [301, 302, 303, 307, 308]) {
    for (const location of [other.url, `${receiver.url}/elsewhere`, 'http://127.0.0.1:1/']) {
      receiver.behave(answer(status, ['location', location]));
      assert.deepEqual(await outcomeOf(deliver()), { ...none, status, error: 'status' });
    }
  }
  for (const status of [400, 404, 410, 500]) {
    receiver.behave(answer(status));
    assert.deepEqual(await outcomeOf(deliver()), { ...none, status, error: 'status' });
  }
  assert.equal(other.requests.length, 0);
  assert.deepEqual(new Set(receiver.requests.map(({ url }) => url)), new Set(['/hook?a=1']));
});

test('the wish of a receiver for patience is handed on', async (t) => {
  const { receiver, deliver } = await startReceiver(t);
  receiver.behave(answer(503, ['retry-after', '120']));
  const expected = { status: 503, error: 'status', retryAfter: '120' };
  assert.deepEqual(await outcomeOf(deliver()), expected);
});

test('a receiver that hangs, or trickles its headers, is cut at the time limit', async (t) => {
  const { receiver, deliver } = await startReceiver(t);
  const trickle: Behavior = ({ socket }) => {
    const timer = setInterval(() => socket.write('x'), 20);
    socket.write('HTTP/1.1 200 OK\r\nx-slow: ');
    socket.once('close', () => clearInterval(timer));
  };
  for (const behavior of [hang, trickle]) {
    receiver.behave(behavior);
    assert.deepEqual(await outcomeOf(deliver({ timeoutMs: 300 })), { ...none, error: 'timeout' });
  }
});

test('a receiver that resets the connection, sends no HTTP or cannot be reached has failed', async (t) => {
  const { receiver, deliver } = await startReceiver(t);
  receiver.behave(({ reset }) => reset());
  assert.deepEqual(await outcomeOf(deliver()), { ...none, error: 'reset' });
  receiver.behave(raw('nonsense\r\n\r\n', 'end'));
  assert.deepEqual(await outcomeOf(deliver()), { ...none, error: 'invalid_response' });
  const closed = `https://127.0.0.1:${await freePort()}/`;
  assert.deepEqual(await outcomeOf(deliver({ url: closed })), {
    ...none,
    error: 'forbidden_address',
  });
});

test('of a body that never ends, or of 100 MB, little is read; the success stands', async (t) => {
  const { receiver, deliver } = await startReceiver(t);
  let sent = 0;
  receiver.behave(
    large(100_000_000, (bytes) => {
      sent += bytes;
    }),
  );
  assert.deepEqual(await outcomeOf(deliver()), { ...none, status: 200 });
  assert.ok(sent < 20_000_000, `${sent} bytes were sent`);
  for (const behavior of [resetAfter(10), raw('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx')]) {
    receiver.behave(behavior);
    assert.deepEqual(await outcomeOf(deliver()), { ...none, status: 200 });
  }
});

test('a response that fails in the very packet of its head ends the attempt', async (t) => {
  const { receiver, deliver } = await startReceiver(t);
  const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
  for (const body of ['nonsense\r\n', '5\r\nhello!', `1${'f'.repeat(20)}\r\nx`]) {
    receiver.behave(raw(head + body, 'end'));
    assert.deepEqual(await outcomeOf(deliver()), { ...none, status: 200 });
  }
});

test('a flood of interim responses, or of headers, ends at the limits', async (t) => {
  const { receiver, deliver } = await startReceiver(t);
  const interim: Behavior = ({ socket }) => {
    const write = () => void (socket.destroyed || socket.write('HTTP/1.1 102 Wait\r\n\r\n', write));
    write();
  };
  receiver.behave(interim);
  assert.deepEqual(await outcomeOf(deliver({ timeoutMs: 300 })), { ...none, error: 'timeout' });
  receiver.behave(raw(`HTTP/1.1 200 OK\r\n${'x-long: y\r\n'.repeat(100_000)}\r\n`, 'end'));
  assert.deepEqual(await outcomeOf(deliver()), { ...none, error: 'invalid_response' });
});
