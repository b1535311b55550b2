/** Clients that make no progress, reading or sending, are cut off; slow ones that make it are not. */
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { connect as connectSecurely } from 'node:tls';
import { progressBytesMin } from '../../src/http/protocol/progress.ts';
import { requestTimeoutMs } from '../../src/http/transport.ts';
import { writeCertificate } from '../support/certificate.ts';
import { type Engine, onBothEngines, type Place } from '../support/engines.ts';
import { beginRequest, type Connection } from '../support/raw-request.ts';
import type { Lender } from '../support/temporary.ts';
import { untilCut } from '../support/unread.ts';
import { request, startVault } from '../support/vault.ts';

/** Longer than a busy machine takes for an answer of a megabyte. */
const patienceMs = 1_500;
/** How often a slow client does something. */
const stepMs = 50;

/** Of a megabyte each: more than the connections of an operating system hold by themselves. */
const answers = 16;
const large = { id: 'large', type: 'token', data: 'x'.repeat(1_000_000) };

interface Filled {
  readonly place: Place;
  readonly key: string;
}

/** A place in which a vault has stored a large token. */
async function fill(t: Lender, engine: Engine): Promise<Filled> {
  const vault = await startVault(t, engine);
  const key = await vault.application();
  assert.equal((await vault.send('POST', '/tokens', { key, body: large })).status, 201);
  await vault.stop();
  return { place: vault.place, key };
}

/** Asks for the token again and again on one connection. */
function askAgainAndAgain(socket: Socket, key: string): void {
  socket.on('error', () => undefined);
  const head = `GET /tokens/large HTTP/1.1\r\nhost: localhost\r\nsvc-api-key: ${key}\r\n\r\n`;
  socket.write(head.repeat(answers));
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

onBothEngines('a client that reads', (engine) => {
  test('has 30 seconds for its next KiB', () => {
    assert.equal(requestTimeoutMs, 30_000);
    assert.equal(progressBytesMin, 1_024);
  });

  test('nothing of its answers is cut off', async (t) => {
    const { place, key } = await fill(t, engine);
    const vault = await startVault(t, engine, { place, requestTimeoutMs: patienceMs });
    const { hostname, port } = new URL(vault.url);
    const socket = connect(Number(port), hostname).pause();
    askAgainAndAgain(socket, key);
    await untilCut(vault);
    socket.resume();
    await closed(socket);
  });

  test('nothing of its answers is cut off, over TLS as well', async (t) => {
    const { place, key } = await fill(t, engine);
    const { certFile, keyFile, cert } = writeCertificate(place.dataDir);
    const environment = { STRONGROOM_TLS_CERT: certFile, STRONGROOM_TLS_KEY: keyFile };
    const options = { place, environment, requestTimeoutMs: patienceMs };
    const vault = await startVault(t, engine, options);
    const { hostname, port } = new URL(vault.url);
    const socket = connectSecurely({ host: hostname, port: Number(port), ca: cert }).pause();
    askAgainAndAgain(socket, key);
    await untilCut(vault);
    socket.resume();
    await closed(socket);
  });

  test('slowly gets all of it, however long that takes', async (t) => {
    const { place, key } = await fill(t, engine);
    const vault = await startVault(t, engine, { place, requestTimeoutMs: patienceMs });
    const { hostname, port } = new URL(vault.url);
    const socket = connect(Number(port), hostname);
    askAgainAndAgain(socket, key);
    const began = performance.now();
    let received = 0;
    const all = new Promise<void>((resolve, reject) => {
      socket.once('close', () => reject(new Error(`cut after ${received} bytes`)));
      socket.on('data', (chunk: Buffer) => {
        received += chunk.length;
        if (received >= answers * large.data.length) resolve();
        socket.pause();
        // So slowly that twice the time has passed before the last answers are read.
        const share = received / (answers * large.data.length);
        const isAhead = performance.now() - began < share * 2 * patienceMs;
        setTimeout(() => socket.resume(), isAhead ? stepMs : 0);
      });
    });
    await all;
    assert.ok(performance.now() - began > patienceMs);
    socket.destroy();
  });
});

onBothEngines('a client that sends lines', (engine) => {
  test('byte by byte is cut off, however steadily the bytes come', async (t) => {
    const vault = await startVault(t, engine, { requestTimeoutMs: patienceMs });
    const slow = await beginLines(vault.url, await vault.application());
    trickle(slow, ' ');
    await untilCut(vault);
    await slow.answer;
  });

  test('of which one arrives slowly is waited for as long as it makes progress', async (t) => {
    const vault = await startVault(t, engine, { requestTimeoutMs: patienceMs });
    const key = await vault.application();
    const { socket, answer } = await beginLines(vault.url, key);
    const began = performance.now();
    const line = JSON.stringify({ id: 'slow', type: 'token', data: 'x'.repeat(500_000) });
    const steps = (2 * patienceMs) / stepMs;
    const part = Math.ceil(line.length / steps);
    assert.ok(part > progressBytesMin);
    let at = 0;
    const timer = setInterval(() => {
      sendChunk(socket, line.slice(at, at + part));
      at += part;
      if (at < line.length) return;
      clearInterval(timer);
      socket.write('0\r\n\r\n');
    }, stepMs);
    socket.once('close', () => clearInterval(timer));
    assert.match(await answer, /"status":201/);
    assert.ok(performance.now() - began > patienceMs);
    assert.equal((await request(`${vault.url}/tokens/slow`, 'GET', { key })).status, 200);
  });
});

onBothEngines('a client whose body never comes', (engine) => {
  test('gets one response, whatever was wrong with its request, and is then cut off', async (t) => {
    const vault = await startVault(t, engine, { requestTimeoutMs: patienceMs });
    const key = await vault.application();
    const requests = [
      { path: '/nowhere', headers: {}, status: 404 },
      { path: '/tokens', headers: {}, status: 401 },
      {
        path: '/tokens',
        headers: { 'svc-api-key': key, 'content-type': 'text/plain' },
        status: 415,
      },
      { path: '/tokens', headers: { 'svc-api-key': key }, status: 408 },
    ];
    await Promise.all(
      requests.map(async ({ path, headers, status }) => {
        const sent = { url: vault.url, method: 'POST', path, headers, length: 10 };
        const all = await (await beginRequest(sent)).answer;
        const statuses = [...all.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, found]) => Number(found));
        assert.deepEqual(statuses, [100, status], path);
      }),
    );
  });
});

function beginLines(url: string, key: string): Promise<Connection> {
  const headers = {
    'content-type': 'application/x-ndjson',
    'svc-api-key': key,
    connection: 'close',
  };
  return beginRequest({ url, method: 'POST', path: '/tokens/bulk', headers });
}

function sendChunk(socket: Socket, text: string): void {
  socket.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
}

/** Sends the same bytes again and again, always in time to look alive. */
function trickle({ socket }: Connection, bytes: string): void {
  const timer = setInterval(() => sendChunk(socket, bytes), stepMs);
  socket.once('close', () => clearInterval(timer));
}
