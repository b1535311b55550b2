/** What a response costs besides its bytes, which a hostile host chooses. */
import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { smallChunksMax } from '../../src/base/small-chunks.ts';
import { interimResponsesMax } from '../../src/outbound/forward.ts';
import { chunked, informed } from '../support/destination.ts';
import { fails, startForwarding } from '../support/forwarding.ts';

const chunks = (count: number, length: number) => Array<string>(count).fill('x'.repeat(length));
/** More than a response may have that is written word by word for a minute. */
const tooMany = 10 * smallChunksMax;

test('a response in very small chunks ends, for every reader', async (t) => {
  const { destination, forward } = await startForwarding(t);
  destination.behave(chunked(chunks(tooMany, 1)));
  const { body } = await forward(destination.url);
  await fails(text(body), 'invalid_response');
  const dropped = await forward(destination.url);
  await dropped.drop({ bytesMax: 2 * tooMany, timeoutMs: 20_000 });
  await forward(destination.url);
  // No connection was used again.
  assert.equal(destination.sockets.length, 3);
});

test('a short response in small chunks, and a long one in larger ones, are whole', async (t) => {
  const { destination, forward } = await startForwarding(t);
  for (const [count, length] of [
    [smallChunksMax, 1],
    [2 * smallChunksMax, 32],
  ] as const) {
    destination.behave(chunked(chunks(count, length)));
    const { body } = await forward(destination.url);
    assert.equal((await text(body)).length, count * length);
  }
});

test('a host that sends interim responses without end is left', async (t) => {
  const { destination, forward } = await startForwarding(t);
  const early = (count: number) => Array<string>(count).fill('103 Early Hints');
  destination.behave(informed(early(interimResponsesMax), 'final'));
  assert.equal(await text((await forward(destination.url)).body), 'final');
  destination.behave(informed(early(interimResponsesMax + 1), 'final'));
  await fails(forward(destination.url), 'invalid_response');
});
