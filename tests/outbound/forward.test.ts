/** Forwarded requests against a real HTTPS destination: what goes through whole, and how it fails. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { OutboundError, type OutboundFailure } from '../../src/outbound/error.ts';
import {
  createForward,
  type ForwardRequest,
  forwardHeaderBytesMax,
  slotLimits,
} from '../../src/outbound/forward.ts';
import {
  answer,
  type Destination,
  type DestinationOptions,
  echo,
  startDestination,
} from '../support/destination.ts';

type Given = Partial<Omit<ForwardRequest, 'url'>>;

const usual = { method: 'GET', headers: [], body: undefined, timeoutMs: 10_000, partition: 'one' };

function forwarding({ name, authority }: Destination) {
  const forward = createForward({ allow: new Set([name]), authorities: [authority.cert] });
  return (url: string, given: Given = {}) => forward({ ...usual, url: new URL(url), ...given });
}

function fails(call: Promise<unknown>, reason: OutboundFailure): Promise<void> {
  return assert.rejects(call, (error) => {
    assert.ok(error instanceof OutboundError, String(error));
    assert.equal(error.reason, reason, error.message);
    return true;
  });
}

async function start(t: TestContext, options?: DestinationOptions) {
  const destination = await startDestination(t, options);
  return { destination, forward: forwarding(destination) };
}

test('a request arrives as given, and its answer comes back as sent', async (t) => {
  const { destination, forward } = await start(t);
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
    ...['Host', destination.name, 'X-Key', 'k', 'x-key', 'l', 'Content-Length', '5'],
    ...['Connection', 'keep-alive'],
  ]);
});

test('a stream is sent as it comes, and the answer to it too', async (t) => {
  const { destination, forward } = await start(t);
  destination.behave(echo);
  const pieces = ['one ', 'two ', 'three'];
  const { body } = await forward(destination.url, { method: 'POST', body: Readable.from(pieces) });
  assert.equal((await buffer(body)).toString(), pieces.join(''));
});

test('the next request uses the same connection', async (t) => {
  const { destination, forward } = await start(t);
  for (let round = 0; round < 3; round += 1) {
    const { body } = await forward(destination.url);
    await text(body);
  }
  assert.deepEqual(
    destination.requests.map(({ connection }) => connection),
    [0, 0, 0],
  );
});

test('at most 64 requests go to one place at once, and the next waits for its turn', async (t) => {
  const { destination, forward } = await start(t);
  const waiting: (() => void)[] = [];
  const { promise: full, resolve: filled } = Promise.withResolvers<void>();
  destination.behave(({ response }) => {
    waiting.push(() => response.end());
    if (waiting.length === slotLimits.placeMax) filled();
  });
  const statuses = Array.from({ length: slotLimits.placeMax + 1 }, async () => {
    const { status, body } = await forward(destination.url);
    body.resume();
    return status;
  });
  await full;
  await fails(forward(destination.url, { timeoutMs: 50 }), 'timeout');
  const elsewhere = forward(destination.url, { partition: 'two' });
  waiting.shift()?.();
  await statuses[0];
  destination.behave(({ response }) => void response.end());
  for (const end of waiting.splice(0)) end();
  assert.deepEqual(new Set(await Promise.all(statuses)), new Set([200]));
  await elsewhere;
});

test('the head of an answer may have 16 KiB, and not more', async (t) => {
  const { destination, forward } = await start(t);
  destination.behave(answer(200, ['x-long', 'x'.repeat(forwardHeaderBytesMax - 300)]));
  assert.equal((await forward(destination.url)).status, 200);
  destination.behave(answer(200, ['x-long', 'x'.repeat(forwardHeaderBytesMax)]));
  await fails(forward(destination.url), 'invalid_response');
});
