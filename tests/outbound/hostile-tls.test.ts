/** What a hostile destination makes the vault compute in a handshake, before its certificate is trusted. */
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { keyUpdatesMax } from '../../src/base/key-updates.ts';
import { newAuthority } from '../../src/keys/temporary-authority.ts';
import { Handshakes } from '../../src/outbound/handshakes.ts';
import { startDestination } from '../support/destination.ts';
import { expensiveChain } from '../support/expensive-chain.ts';
import { calling, fails } from '../support/forwarding.ts';
import { type RecordWriter, recordWriter, suite } from '../support/tls-records.ts';

/** The cipher suites in a ClientHello (RFC 8446, section 4.1.2), which fits into the first record. */
function suitesIn(record: Buffer): readonly number[] {
  const sessionAt = 5 + 4 + 2 + 32;
  const suitesAt = sessionAt + 1 + record.readUInt8(sessionAt);
  const length = record.readUInt16BE(suitesAt);
  return Array.from({ length: length / 2 }, (_, at) => record.readUInt16BE(suitesAt + 2 + 2 * at));
}

/** A host with that many certificates, each of which is expensive to verify. */
async function startExpensiveHost(t: TestContext, length: number) {
  const server = createTlsServer({ ...expensiveChain(length) }, (socket) => socket.destroy());
  server.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const name = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { name, url: `https://${name}/` };
}

test('no key exchange is offered whose numbers the host chooses', async (t) => {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const hello = new Promise<Buffer>((resolve) => {
    server.on('connection', (socket) => {
      socket.once('data', (record: Buffer) => {
        resolve(record);
        socket.destroy();
      });
    });
  });
  const name = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  await fails(calling({ allow: new Set([name]) })(`https://${name}/`), 'tls');
  const suites = suitesIn(await hello);
  const finiteField = [
    ...[0x0033, 0x0039, 0x0067, 0x006b, 0x009e, 0x009f, 0xccaa, 0xc09e, 0xc09f, 0xc0a2, 0xc0a3],
    ...[0x0032, 0x0038, 0x0040, 0x006a, 0x00a2, 0x00a3, 0xc052, 0xc053, 0xc056, 0xc057],
  ];
  assert.deepEqual(
    suites.filter((suite) => finiteField.includes(suite)),
    [],
  );
  // ECDHE with AES-128-GCM, of TLS 1.2, and the suite of TLS 1.3.
  assert.ok(suites.includes(0xc02f) && suites.includes(0x1301));
});

test('each handshake is charged to the request for which it was made, also one that fails', async (t) => {
  const callers = new AsyncLocalStorage<string>();
  const charged: (string | undefined)[] = [];
  const onStep = () => void charged.push(callers.getStore());
  const handshakes = new Handshakes({ onStep });
  const payers = () => [...new Set(charged)];
  const { name, url, authority } = await startDestination(t);
  const allow = new Set([name]);
  const trusting = calling({ allow, authorities: [authority.cert], handshakes });
  const finish = async () => {
    const response = await trusting(url);
    await response.drop({ bytesMax: 1, timeoutMs: 20_000 });
  };
  await callers.run('first', finish);
  // On the same connection.
  await callers.run('second', finish);
  assert.deepEqual(payers(), ['first']);
  await callers.run('third', () => fails(calling({ allow, handshakes })(url), 'tls'));
  assert.deepEqual(payers(), ['first', 'third']);
});

test('a host that sends more certificates than any needs is refused before they are verified', async (t) => {
  const { url, name } = await startExpensiveHost(t, 55);
  await fails(calling({ allow: new Set([name]) })(url), 'tls_too_large');
});

test('a host cannot repeat the handshake on a connection that is secured', async (t) => {
  const { name, url, authority, behave } = await startDestination(t, {
    tls: { maxVersion: 'TLSv1.2' },
  });
  const outcome = Promise.withResolvers<unknown>();
  behave(({ socket, response }) => {
    socket.renegotiate({ rejectUnauthorized: false }, (error) => {
      outcome.resolve(error);
      response.end();
    });
    socket.once('error', outcome.resolve);
    socket.once('close', () => outcome.resolve('closed'));
  });
  const forward = calling({ allow: new Set([name]), authorities: [authority.cert] });
  forward(url).catch(() => undefined);
  assert.notEqual(await outcome.promise, null);
});

test('a host that changes its keys again and again, in place of a response, is cut off', async (t) => {
  const authority = newAuthority();
  const server = createTlsServer({ ...authority.issue('host'), ciphers: suite });
  const sockets: Socket[] = [];
  server.on('connection', (socket) => sockets.push(socket));
  let records: RecordWriter | undefined;
  server.on('keylog', (line: Buffer) => {
    if (line.toString().startsWith('SERVER_TRAFFIC_SECRET_0 ')) records = recordWriter(line);
  });
  server.on('secureConnection', (socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => {
      assert.ok(records);
      sockets.at(-1)?.write(records.keyUpdates(keyUpdatesMax + 1));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const name = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const call = calling({ allow: new Set([name]), authorities: [authority.cert] });
  await fails(call(`https://${name}/`), 'key_updates');
});
