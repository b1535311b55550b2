/** A hundred megabytes in either direction, of which only a bounded part is under way at any time. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { large } from '../support/destination.ts';
import { fails, startForwarding } from '../support/forwarding.ts';

const megabyte = 1_048_576;
const total = 100 * megabyte;
/** What the kernel and two TLS ends hold on loopback; our own buffers are below one megabyte. */
const underWayMax = 16 * megabyte;

/** Lets whoever is faster run ahead, as far as it can. */
const turn = promisify(setImmediate);

test('a large answer passes whole, and no faster than it is read', async (t) => {
  const { destination, forward } = await startForwarding(t);
  let sent = 0;
  destination.behave(
    large(total, (bytes) => {
      sent += bytes;
    }),
  );
  const { body } = await forward(destination.url);
  let received = 0;
  let underWay = 0;
  let buffered = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    received += chunk.length;
    underWay = Math.max(underWay, sent - received);
    buffered = Math.max(buffered, body.readableLength);
    await turn();
  }
  assert.equal(received, total);
  assert.ok(underWay < underWayMax, `${underWay} bytes were under way`);
  assert.ok(buffered < megabyte, `${buffered} bytes were buffered`);
});

test('a large body passes whole, and is read no faster than the destination takes it', async (t) => {
  const { destination, forward } = await startForwarding(t);
  let taken = 0;
  destination.behave(async ({ request, response }) => {
    request.pause();
    request.on('data', (chunk: Buffer) => {
      taken += chunk.length;
      request.pause();
      setImmediate(() => request.resume());
    });
    request.resume();
    await once(request, 'end');
    response.end();
  });
  const piece = Buffer.alloc(65_536, 'x');
  let given = 0;
  let underWay = 0;
  const body = new Readable({
    read() {
      given += piece.length;
      underWay = Math.max(underWay, given - taken);
      this.push(given > total ? null : piece);
    },
  });
  const headers = ['Content-Length', String(total)];
  const { status } = await forward(destination.url, { method: 'POST', headers, body });
  assert.equal(status, 200);
  assert.equal(destination.requests[0]?.bodyBytes, total);
  assert.ok(underWay < underWayMax, `${underWay} bytes were under way`);
});

test('what nobody reads is not fetched', async (t) => {
  const { destination, forward } = await startForwarding(t);
  let sent = 0;
  destination.behave(
    large(total, (bytes) => {
      sent += bytes;
    }),
  );
  const { body } = await forward(destination.url, { timeoutMs: 1000 });
  // Nothing moves any more, so the time limit ends it.
  await fails(once(body, 'end'), 'timeout');
  assert.ok(sent < underWayMax, `${sent} bytes were sent`);
});
