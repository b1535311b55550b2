/** What a body costs besides its bytes: chunks of it are counted, wherever it goes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { smallChunksMax } from '../../src/base/small-chunks.ts';
import { onBothEngines } from '../support/engines.ts';
import { connectTo } from '../support/raw-request.ts';
import { tenantsOf } from '../support/tenant.ts';

const chunkOf = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

/** JSON in so many chunks of one length; what arrives may be parted further. */
function inChunks(count: number, length: number): string {
  const text = `"${'x'.repeat(count * length - 2)}"`;
  const parts = Array.from({ length: count }, (_, at) =>
    text.slice(at * length, (at + 1) * length),
  );
  return `${parts.map(chunkOf).join('')}0\r\n\r\n`;
}

onBothEngines('A body in small chunks', (engine) => {
  const newTenant = tenantsOf(engine);

  test('is cut off where they cost more than what may be done with it', async () => {
    const tenant = await newTenant();
    const send = async (path: string, key: string, body: string) => {
      const { socket, answer } = await connectTo(tenant.vault.url);
      const type = path.endsWith('bulk') ? 'application/x-ndjson' : 'application/json';
      const head = [
        `POST ${path} HTTP/1.1`,
        'host: localhost',
        `svc-api-key: ${key}`,
        `content-type: ${type}`,
        'transfer-encoding: chunked',
        'connection: close',
      ];
      socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
      return (await answer).slice(0, 'HTTP/1.1 200'.length);
    };
    const { key } = tenant;
    assert.equal(await send('/tokenize', key, inChunks(smallChunksMax - 100, 1)), 'HTTP/1.1 200');
    assert.equal(await send('/tokenize', key, inChunks(2 * smallChunksMax, 32)), 'HTTP/1.1 200');
    const tooMany = inChunks(smallChunksMax + 100, 1);
    assert.equal(await send('/tokenize', key, tooMany), '');
    assert.equal(await send('/tokens/bulk', key, tooMany), '');
    // So is what is discarded, before a response and behind it.
    assert.equal(await send('/tokenize', 'unknown', tooMany), '');
  });
});
