/** A request that is refused before its body has arrived leaves a connection on which nothing can be confused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bodyBytesMax } from '../../src/http/protocol/body.ts';
import { discarded, lingering } from '../../src/http/protocol/connection.ts';
import { onBothEngines } from '../support/engines.ts';
import { type Connection, connectTo } from '../support/raw-request.ts';
import { startVault } from '../support/vault.ts';

/** Whose bytes would be a request of their own, if they were not taken for a body. */
const smuggled = 'GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n';
const closing = /\r\nconnection: close\r\n/i;
const last = 'GET /ping HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n';

interface Sent {
  readonly key?: string;
  /** Without, the body comes in chunks. */
  readonly length?: number;
}

function head({ key = 'key_test_pvt_x', length }: Sent): string {
  const size = length === undefined ? 'transfer-encoding: chunked' : `content-length: ${length}`;
  return [
    'POST /tokens HTTP/1.1',
    'host: localhost',
    `svc-api-key: ${key}`,
    'content-type: application/json',
    `${size}\r\n\r\n`,
  ].join('\r\n');
}

const bodyOf = (length: number) => smuggled.padEnd(length, ' ');
const chunkOf = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
const statuses = (answer: string) =>
  [...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));

/** What has come back by the time that it holds the text. */
async function until({ socket }: Connection, text: string): Promise<string> {
  let received = '';
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    received += chunk;
    if (received.includes(text)) break;
  }
  return received;
}

onBothEngines('a body that is refused unread', (engine) => {
  test('has limits', () => {
    assert.deepEqual(discarded, { bytesMax: 65_536, msMax: 1_000 });
    assert.equal(lingering.msMax, 1_000);
    assert.ok(lingering.bytesMax > bodyBytesMax);
  });

  for (const [form, whole] of [
    ['with its length', (text: string) => head({ length: text.length }) + text],
    ['in chunks', (text: string) => `${head({})}${chunkOf(text)}0\r\n\r\n`],
  ] as const) {
    test(`is discarded up to 64 KiB, ${form}, and the next request is the next`, async (t) => {
      const vault = await startVault(t, engine);
      const connection = await connectTo(vault.url);
      connection.socket.write(whole(bodyOf(discarded.bytesMax)));
      connection.socket.write(last);
      const answer = await connection.answer;
      assert.deepEqual(statuses(answer), [401, 200]);
      assert.doesNotMatch(answer.slice(0, answer.indexOf('\r\n\r\n')), closing);
    });

    test(`ends the connection beyond that, ${form}, and the client reads why`, async (t) => {
      const vault = await startVault(t, engine);
      const connection = await connectTo(vault.url);
      connection.socket.write(whole(bodyOf(discarded.bytesMax + 1)));
      connection.socket.write(last);
      const answer = await connection.answer;
      assert.deepEqual(statuses(answer), [401]);
      assert.match(answer, closing);
      assert.match(answer, /"detail":"Send a valid API key in the header SVC-API-KEY\."\}$/);
    });
  }

  test('that is never sent ends the connection after a second', async (t) => {
    const vault = await startVault(t, engine);
    const connection = await connectTo(vault.url);
    connection.socket.write(head({ length: 10 }));
    connection.socket.write('12345');
    const answer = await connection.answer;
    assert.deepEqual(statuses(answer), [401]);
    assert.match(answer, closing);
  });

  test('that arrives within the second keeps the connection', async (t) => {
    const vault = await startVault(t, engine);
    const connection = await connectTo(vault.url);
    connection.socket.write(head({ length: 10 }));
    setImmediate(() => connection.socket.write(`1234567890${last}`));
    assert.deepEqual(statuses(await connection.answer), [401, 200]);
  });

  test('and is too large is refused in a response that a client reads after sending all', async (t) => {
    const vault = await startVault(t, engine);
    const key = await vault.application();
    const connection = await connectTo(vault.url);
    const half = bodyOf(bodyBytesMax / 2);
    connection.socket.write(head({ key, length: 2 * bodyBytesMax }));
    const answer = await until(connection, 'The body exceeds the limit.');
    assert.deepEqual(statuses(answer), [413]);
    assert.match(answer, closing);
    // The vault still reads: a reset would fail one of these writes.
    for (let part = 0; part < 4; part += 1) {
      await new Promise<void>((resolve, reject) =>
        connection.socket.write(half, (error) => (error ? reject(error) : resolve())),
      );
    }
  });

  test('and is not HTTP gets no second response', async (t) => {
    const vault = await startVault(t, engine);
    const connection = await connectTo(vault.url);
    connection.socket.write(head({}) + chunkOf(bodyOf(discarded.bytesMax + 1)));
    const answer = await until(connection, 'Send a valid API key in the header SVC-API-KEY.');
    assert.match(answer, closing);
    connection.socket.write('this is no chunk\r\n');
    assert.equal(statuses(answer + (await connection.answer).slice(answer.length)).length, 1);
  });
});
