/** Requests that a client sends before it has the responses to those before. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { test } from 'node:test';
import { createPipelining } from '../../src/http/protocol/pipelining.ts';
import { onBothEngines } from '../support/engines.ts';
import { connectTo } from '../support/raw-request.ts';
import { startVault } from '../support/vault.ts';

onBothEngines('several requests in one packet', (engine) => {
  test('begin one after the other, so that each meets what those before have done', async (t) => {
    const vault = await startVault(t, engine);
    const key = await vault.application();
    const head = `Host: x\r\nSVC-API-KEY: ${key}\r\n`;
    const create = (id: string) => {
      const body = JSON.stringify({ id, type: 'token', data: id });
      const type = 'Content-Type: application/json\r\n';
      return `POST /tokens HTTP/1.1\r\n${head}${type}Content-Length: ${body.length}\r\n\r\n${body}`;
    };
    const get = (id: string, more = '') => `GET /tokens/${id} HTTP/1.1\r\n${head}${more}\r\n`;
    const { socket, answer } = await connectTo(vault.url);
    const ids = ['one', 'two', 'three'];
    const pairs = ids.map((id) => create(id) + get(id)).join('');
    socket.write(pairs + get('none', 'Connection: close\r\n'));
    const statuses = [...(await answer).matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, one]) => one);
    assert.deepEqual(statuses, ['201', '200', '201', '200', '201', '200', '404']);
  });

  test('end the connection where they are very many, and no other one', async (t) => {
    const vault = await startVault(t, engine);
    const { socket, answer } = await connectTo(vault.url);
    const other = await connectTo(vault.url);
    const get = 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n';
    socket.write(get.repeat(1_000));
    const answered = [...(await answer).matchAll(/HTTP\/1\.1 200 /g)].length;
    assert.ok(answered < 100, `${answered} of 1,000`);
    other.socket.write(get.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
    assert.match(await other.answer, /^HTTP\/1\.1 200 /);
  });
});

const unusual: Readonly<Record<string, string>> = {
  'an expectation that is not known': 'GET /openapi.json HTTP/1.1\r\nHost: x\r\nExpect: x\r\n\r\n',
  'no Host': 'GET /openapi.json HTTP/1.1\r\n\r\n',
};

onBothEngines('Requests that Node would respond to itself', (engine) => {
  for (const [name, request] of Object.entries(unusual)) {
    test(`take their turn like all others: ${name}`, async (t) => {
      const vault = await startVault(t, engine);
      const { socket, answer } = await connectTo(vault.url);
      socket.write(request.repeat(1_000));
      const answered = [...(await answer).matchAll(/HTTP\/1\.1 (\d{3}) /g)].length;
      assert.ok(answered < 100, `${answered} of 1,000`);
      const one = await connectTo(vault.url);
      one.socket.write(request.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
      assert.match(await one.answer, /^HTTP\/1\.1 [24]00 .*\r\nsvc-trace-id: /s);
    });
  }
});

test('requests behind those that may wait are not parsed, and each that waits is charged', async (t) => {
  let ahead = 0;
  const turns = createPipelining({
    onAhead: () => {
      ahead += 1;
    },
  });
  let parsed = 0;
  const server = createServer((request, response) => {
    parsed += 1;
    turns.take(request, response, () => undefined);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => undefined);
  client.write('GET / HTTP/1.1\r\nHost: vault\r\n\r\n'.repeat(2_000));
  client.resume();
  await once(client, 'close');
  assert.ok(parsed < 100, `${parsed} of 2,000`);
  assert.equal(ahead, parsed - 1);
});

test('what follows a response that ends its connection is not begun, as it could never end', async (t) => {
  const turns = createPipelining();
  const begun: string[] = [];
  const server = createServer((request, response) => {
    turns.take(request, response, () => {
      begun.push(request.url ?? '');
      if (request.url === '/last') response.setHeader('connection', 'close');
    });
    if (request.url === '/next') server.emit('next', response);
    else server.once('next', () => response.end());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const head = (path: string) => `GET ${path} HTTP/1.1\r\nHost: vault\r\n\r\n`;
  client.end(head('/last') + head('/next'));
  client.resume();
  await once(client, 'close');
  assert.deepEqual(begun, ['/last']);
});
