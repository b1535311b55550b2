/** A stop finishes what is in flight and waits for nobody else; a slow client holds nothing for long. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { finishMsMax, requestTimeoutMs } from '../../src/http/transport.ts';
import { writeCertificate } from '../support/certificate.ts';
import { onBothEngines } from '../support/engines.ts';
import { environmentOf, spawnVault } from '../support/process.ts';
import { beginRequest, type Connection, connectTo, untilClosed } from '../support/raw-request.ts';
import { rowsOf, verifyLog } from '../support/rows.ts';
import { askUnread } from '../support/unread.ts';
import { createApplication, request, startVault } from '../support/vault.ts';

const inFlight = 20;
/** Below the 30 s that a request may take, and the 72 s for which an idle connection is kept alive. */
const promptMs = 20_000;
const shortTimeoutMs = 300;

/** More bytes of body than a trickle brings in any of these tests. */
const endless = 100_000;

/** Together more than connections hold by themselves. */
const largeText = 'x'.repeat(1_000_000);

const creation = JSON.stringify({ type: 'token', data: 'in flight' });

onBothEngines('SIGTERM', (engine) => {
  test('what is in flight is answered, idle connections hold nothing, and the exit code is 0', async (t) => {
    const place = await engine.place(t);
    const vault = await spawnVault(t, environmentOf(place));
    const key = await createApplication(vault.url);
    const idle = await connectTo(vault.url);
    const requests = await Promise.all(
      Array.from({ length: inFlight }, () => beginCreation(vault.url, key)),
    );
    for (const { socket } of requests) socket.write(creation.slice(0, 10));

    vault.terminate();
    await untilClosed(vault.url);
    const stopping = performance.now();
    for (const { socket } of requests) socket.write(creation.slice(10));
    const answers = await Promise.all(requests.map(({ answer }) => answer));
    const { code, stderr } = await vault.finished;

    assert.equal(code, 0, stderr);
    assert.equal(await idle.answer, '');
    assert.ok(performance.now() - stopping < promptMs, 'connections are not kept alive');
    for (const answer of answers) {
      assert.match(answer, /\r\nHTTP\/1\.1 201 Created\r\n/);
      assert.match(answer, /\r\nconnection: close\r\n/i);
    }
    const ids = answers.map((answer) => /"id":"([^"]+)"/.exec(answer)?.[1]).sort();
    const stored = (await rowsOf(engine, place, 'tokens')).map((row) => row.token_id);
    assert.deepEqual(stored, ids, 'what was answered is stored, and nothing else');
    await verifyLog(engine, place);
  });
});

onBothEngines('a stop', (engine) => {
  test('gives requests 3 seconds, so that all of it takes less than 5', () => {
    assert.equal(finishMsMax, 3_000);
  });

  for (const threads of ['1', '2']) {
    test(`cuts off clients that hold it and loses nothing acknowledged, with ${threads} threads`, async (t) => {
      const place = await engine.place(t);
      const vault = await spawnVault(t, environmentOf(place, { STRONGROOM_THREADS: threads }));
      const key = await createApplication(vault.url);
      const acknowledged = await Promise.all(
        Array.from({ length: inFlight }, async () => {
          const { status, body } = await request(`${vault.url}/tokens`, 'POST', {
            key,
            body: { type: 'token', data: largeText },
          });
          assert.equal(status, 201);
          return body.id;
        }),
      );
      const halfBody = await beginCreation(vault.url, key);
      halfBody.socket.write(creation.slice(0, 10));
      const halfUpload = await beginUpload(vault.url, key);
      halfUpload.socket.write(chunk(`${creation}\n${creation.slice(0, 10)}`));
      await once(halfUpload.socket, 'data');
      const deaf = await askUnread({ url: `${vault.url}/tokens?size=20`, key });

      const stopping = performance.now();
      vault.terminate();
      const { code, stderr } = await vault.finished;

      assert.equal(code, 0, stderr);
      assert.ok(performance.now() - stopping < promptMs, 'nobody holds the stop');
      assert.equal((await deaf.read()).complete, false);
      assert.doesNotMatch(await halfBody.answer, /201 Created/);
      const line = /"token":\{"id":"([^"]+)"/.exec(await halfUpload.answer)?.[1];
      assert.ok(line, 'the line that was complete was answered');
      const stored = (await rowsOf(engine, place, 'tokens')).map((row) => row.token_id);
      assert.deepEqual(stored.sort(), [...acknowledged, line].sort());
      await verifyLog(engine, place);
    });
  }
});

onBothEngines('a client that is slow', (engine) => {
  test('is given 30 seconds for a request', () => {
    assert.equal(requestTimeoutMs, 30_000);
  });

  test('in its headers gets a 408 and is cut off', async (t) => {
    const vault = await startVault(t, engine, { requestTimeoutMs: shortTimeoutMs });
    const slow = await connectTo(vault.url);
    slow.socket.write('POST /tokens HTTP/1.1\r\n');
    trickle(slow, 'a: b\r\n');
    assertTimeout(await slow.answer);
  });

  test('in its body gets a 408 and is cut off, and nothing is stored', async (t) => {
    const vault = await startVault(t, engine, { requestTimeoutMs: shortTimeoutMs });
    const slow = await beginCreation(vault.url, await vault.application(), endless);
    trickle(slow, ' ');
    assertTimeout(await slow.answer);
    assert.deepEqual(await rowsOf(engine, vault.place, 'tokens'), []);
    assert.deepEqual(
      vault.logged.filter(({ fields }) => (fields?.status ?? 0) >= 500),
      [],
      'a client that gives up is not the failure of the vault',
    );
  });

  test('in its TLS handshake is cut off, and does not hold a stop', async (t) => {
    const place = await engine.place(t);
    const { certFile, keyFile } = writeCertificate(place.dataDir);
    const environment = { STRONGROOM_TLS_CERT: certFile, STRONGROOM_TLS_KEY: keyFile };
    const options = { place, environment, requestTimeoutMs: shortTimeoutMs };
    const vault = await startVault(t, engine, options);
    const silent = await connectTo(vault.url);
    const begun = await connectTo(vault.url);
    begun.socket.write(Buffer.from('160301020001', 'hex'));
    assert.deepEqual(await Promise.all([silent.answer, begun.answer]), ['', '']);
    const late = await connectTo(vault.url);
    await vault.stop();
    assert.equal(await late.answer, '');
  });

  test('does not hold a stop for longer than a request may take', async (t) => {
    const vault = await startVault(t, engine, { requestTimeoutMs: shortTimeoutMs });
    const slow = await beginCreation(vault.url, await vault.application(), endless);
    trickle(slow, ' ');
    await vault.stop();
    await slow.answer;
  });
});

function beginUpload(url: string, key: string): Promise<Connection> {
  const headers = { 'svc-api-key': key, 'content-type': 'application/x-ndjson' };
  return beginRequest({ url, method: 'POST', path: '/tokens/bulk', headers });
}

function chunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

function beginCreation(url: string, key: string, length = creation.length): Promise<Connection> {
  const headers = { 'svc-api-key': key };
  return beginRequest({ url, method: 'POST', path: '/tokens', headers, length });
}

/** Sends the same bytes again and again, always in time to look alive. */
function trickle({ socket }: Connection, bytes: string): void {
  const timer = setInterval(() => socket.write(bytes), shortTimeoutMs / 20);
  socket.once('close', () => clearInterval(timer));
}

function assertTimeout(answer: string): void {
  assert.match(answer, /HTTP\/1\.1 408 Request Timeout\r\n/);
  assert.match(answer, /\r\ncontent-type: application\/problem\+json/);
  assert.match(answer, /"type":"urn:strongroom:problem:request_timeout"/);
}
