/** Forwarded requests against a real HTTPS destination: what goes through, in both directions. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { forwardHeaderBytesMax, slotLimits } from '../../src/outbound/forward.ts';
import {
  answer,
  type Behavior,
  chunked,
  echo,
  informed,
  raw,
  slowly,
  startDestination,
  withoutLength,
} from '../support/destination.ts';
import { fails, type Given, startForwarding } from '../support/forwarding.ts';

test('a request arrives as given, and its answer comes back as sent', async (t) => {
  const { destination, forward } = await startForwarding(t);
  destination.behave(answer(418, ['X-Kind', 'teapot', 'x-kind', 'kettle'], 'short\0stout'));
  const { status, headers, body } = await forward(`${destination.url}/a%20b/?c=%2F#d`, {
    method: 'POST',
    headers: ['X-Key', 'k', 'x-key', 'l', 'Host', 'elsewhere.example'],
    body: Buffer.from('tää'),
  });
  assert.equal(status, 418);
  assert.deepEqual(headers.slice(0, 4), ['X-Kind', 'teapot', 'x-kind', 'kettle']);
  assert.equal(await text(body), 'short\0stout');
  const [request] = destination.requests;
  assert.deepEqual([request?.method, request?.url], ['POST', '/a%20b/?c=%2F']);
  assert.equal(request?.body.toString(), 'tää');
  assert.deepEqual(request?.headers, [
    ...['Host', destination.name, 'X-Key', 'k', 'x-key', 'l'],
    ...['CDN-Loop', 'strongroom-0000000000000000', 'Content-Length', '5'],
    ...['Connection', 'keep-alive'],
  ]);
});

test('headers of the hop do not reach the destination', async (t) => {
  const { destination, forward } = await startForwarding(t);
  const { body } = await forward(destination.url, {
    headers: [
      ...['Connection', 'close, X-Hop', 'connection', 'x-other', 'X-Hop', '1', 'x-OTHER', '2'],
      ...['Keep-Alive', 'timeout=5', 'Proxy-Authorization', 'p', 'Proxy-Connection', 'close'],
      ...['TE', 'trailers', 'Trailer', 'x', 'Transfer-Encoding', 'chunked', 'Upgrade', 'h2c'],
      ...['Expect', '100-continue', 'X-Stays', '3'],
    ],
  });
  await text(body);
  assert.deepEqual(destination.requests[0]?.headers, [
    ...['Host', destination.name, 'X-Stays', '3'],
    ...['CDN-Loop', 'strongroom-0000000000000000', 'Connection', 'keep-alive'],
  ]);
});

test('headers of the hop do not come back from the destination', async (t) => {
  const { destination, forward } = await startForwarding(t);
  destination.behave(
    raw(
      'HTTP/1.1 200 OK\r\nConnection: X-Hop, Keep-Alive\r\nKeep-Alive: timeout=9\r\nX-Hop: 1\r\n' +
        'Proxy-Authenticate: Basic\r\nUpgrade: h2c\r\nX-Stays: 2\r\nContent-Length: 2\r\n\r\nok',
    ),
  );
  const { headers, body } = await forward(destination.url);
  assert.deepEqual(headers, ['X-Stays', '2', 'Content-Length', '2']);
  assert.equal(await text(body), 'ok');
});

const stream = () => Readable.from([Buffer.from('four')]);
const length = (value: string) => ['Content-Length', value];
const framings: readonly (readonly [string, Given, string | undefined, string | undefined])[] = [
  ['a GET without a body', {}, undefined, undefined],
  ['a DELETE with an empty one', { method: 'DELETE', body: Buffer.of() }, undefined, undefined],
  ['a POST without a body', { method: 'POST' }, '0', undefined],
  [
    'a PUT with an empty one',
    { method: 'PUT', body: Buffer.of(), headers: length('7') },
    '0',
    undefined,
  ],
  ['bytes', { method: 'POST', body: Buffer.from('four') }, '4', undefined],
  [
    'bytes under a wrong length',
    { method: 'POST', body: Buffer.from('four'), headers: length('5') },
    '4',
    undefined,
  ],
  ['a stream', { method: 'POST', body: stream() }, undefined, 'chunked'],
  ['a stream of a GET', { body: stream() }, undefined, 'chunked'],
  [
    'a stream under its length',
    { method: 'POST', body: stream(), headers: length('4') },
    '4',
    undefined,
  ],
  [
    'a stream under two lengths',
    { method: 'POST', body: stream(), headers: [...length('4'), ...length('4')] },
    undefined,
    'chunked',
  ],
  [
    'a stream under no number',
    { method: 'POST', body: stream(), headers: length('4x') },
    undefined,
    'chunked',
  ],
];

test('a body is announced in exactly one way, and rightly', async (t) => {
  const { destination, forward } = await startForwarding(t);
  for (const [name, given, expectedLength, expectedCoding] of framings) {
    const { body } = await forward(destination.url, given);
    await text(body);
    const request = destination.requests.at(-1);
    const sentAs = (wanted: string) => {
      const index = request?.headers.findIndex((header) => header.toLowerCase() === wanted) ?? -1;
      return index < 0 ? undefined : request?.headers[index + 1];
    };
    assert.equal(sentAs('content-length'), expectedLength, name);
    assert.equal(sentAs('transfer-encoding'), expectedCoding, name);
    const sent = given.body instanceof Readable ? 4 : (given.body?.length ?? 0);
    assert.equal(request?.bodyBytes, sent, name);
  }
});

test('a stream is sent as it comes, and the answer to it too', async (t) => {
  const { destination, forward } = await startForwarding(t);
  destination.behave(echo);
  const given = new Readable({ read: () => undefined });
  given.push('one ');
  const { body } = await forward(destination.url, { method: 'POST', body: given });
  for (const piece of ['one ', 'two ', 'three']) {
    if (piece !== 'one ') given.push(piece);
    const [chunk] = await once(body, 'data');
    assert.equal(String(chunk), piece);
  }
  given.push(null);
  await text(body);
  assert.equal(destination.requests[0]?.body.toString(), 'one two three');
});

const gzipped = gzipSync('{"a":1}');
const answers: Readonly<Record<string, readonly [Behavior, number, string | Uint8Array]>> = {
  'of no bytes': [answer(200, ['content-length', '0']), 200, ''],
  'without a body (204)': [raw('HTTP/1.1 204 No Content\r\n\r\n'), 204, ''],
  'not modified (304)': [raw('HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n'), 304, ''],
  'in chunks': [chunked(['one ', 'two']), 200, 'one two'],
  'without a length': [withoutLength('until the end'), 200, 'until the end'],
  'that comes byte by byte': [slowly('drop by drop'), 200, 'drop by drop'],
  'that is compressed': [answer(200, ['content-encoding', 'gzip'], gzipped), 200, gzipped],
  'after others that inform': [
    informed(['100 Continue', '102 Processing', '103 Early Hints\r\nLink: </a>'], 'final'),
    200,
    'final',
  ],
};

for (const [name, [behavior, status, expected]] of Object.entries(answers)) {
  test(`an answer ${name} comes whole, and the next one after it`, async (t) => {
    const { destination, forward } = await startForwarding(t);
    for (const next of [behavior, behavior, answer(200, [], 'next')]) {
      destination.behave(next);
      const received = await forward(destination.url);
      const whole = await buffer(received.body);
      const isNext = destination.requests.length === 3;
      assert.equal(received.status, isNext ? 200 : status);
      assert.deepEqual(whole, Buffer.from(isNext ? 'next' : (expected as string)));
    }
  });
}

test('the answer to HEAD has the length of the body that it lacks', async (t) => {
  const { destination, forward } = await startForwarding(t);
  destination.behave(raw('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n'));
  for (let round = 0; round < 2; round += 1) {
    const { headers, body } = await forward(destination.url, { method: 'HEAD' });
    assert.deepEqual(headers, ['Content-Length', '1000']);
    assert.equal(await text(body), '');
  }
  assert.ok(destination.sockets.length < slotLimits.destinationMax);
});

test('a length that does not hold for the caller is not passed on', async (t) => {
  const { destination, forward } = await startForwarding(t);
  destination.behave(raw('HTTP/1.1 204 No Content\r\nContent-Length: 0\r\nX-Stays: 1\r\n\r\n'));
  assert.deepEqual((await forward(destination.url)).headers, ['X-Stays', '1']);
});

test('trailers come after the body', async (t) => {
  const { destination, forward } = await startForwarding(t);
  destination.behave(chunked(['all'], ['X-Sum: 7', 'Proxy-Status: x']));
  const { body, trailers } = await forward(destination.url);
  assert.equal(await text(body), 'all');
  assert.deepEqual(trailers(), ['X-Sum', '7']);
});

test('a redirect is an answer like any other', async (t) => {
  const { destination, forward } = await startForwarding(t);
  const behind = await startDestination(t);
  for (const status of [301, 302, 303, 307, 308]) {
    destination.behave(answer(status, ['location', behind.url]));
    const redirected = await forward(destination.url);
    assert.equal(redirected.status, status);
    assert.deepEqual(redirected.headers.slice(0, 2), ['location', behind.url]);
  }
  assert.equal(behind.sockets.length, 0);
});

test('the head of an answer may have 16 KiB, and not more', async (t) => {
  const { destination, forward } = await startForwarding(t);
  destination.behave(answer(200, ['x-long', 'x'.repeat(forwardHeaderBytesMax - 300)]));
  assert.equal((await forward(destination.url)).status, 200);
  destination.behave(answer(200, ['x-long', 'x'.repeat(forwardHeaderBytesMax)]));
  await fails(forward(destination.url), 'invalid_response');
});

test('no header is lost, however many there are', async (t) => {
  const { destination, forward } = await startForwarding(t);
  const many = 'a:\r\n'.repeat(3000);
  destination.behave(raw(`HTTP/1.1 200 OK\r\n${many}Content-Length: 0\r\n\r\n`));
  assert.equal((await forward(destination.url)).headers.length, 2 * 3001);
});

test('an answer that comes before the request has ended is passed on', async (t) => {
  const { destination, forward } = await startForwarding(t);
  destination.behave(({ response }) => void response.writeHead(413).end('too much'));
  const given = new Readable({ read: () => undefined });
  given.push('begun');
  const { status, body } = await forward(destination.url, { method: 'POST', body: given });
  assert.deepEqual([status, await text(body)], [413, 'too much']);
  given.push(null);
});

test('answers that nobody reads hold no slot and no connection', async (t) => {
  const { destination, forward } = await startForwarding(t);
  for (const [status, body] of [
    [204, ''],
    [200, 'small'],
  ] as const) {
    destination.behave(answer(status, [], body));
    for (let count = 0; count <= slotLimits.destinationMax; count += 1) {
      assert.equal((await forward(destination.url)).status, status);
    }
  }
  assert.ok(destination.sockets.length < slotLimits.destinationMax);
});

test('a request that falls silent after its whole answer ends at the time limit', async (t) => {
  const { destination, forward } = await startForwarding(t);
  destination.behave(({ response }) => void response.writeHead(413).end('too much'));
  const given = new Readable({ read: () => undefined });
  given.push('begun');
  const { body } = await forward(destination.url, { method: 'POST', body: given, timeoutMs: 500 });
  const [socket] = destination.sockets;
  assert.ok(socket);
  // Not `once`, which fails because the request breaks off.
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  assert.equal(await text(body), 'too much');
  await closed;
  assert.equal(given.destroyed, false);
});
