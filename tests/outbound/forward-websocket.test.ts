/** Handshakes of WebSocket to other hosts: accepted by those that understood them, and counted while they are open. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createForward, slotLimits } from '../../src/outbound/forward.ts';
import { startDestination } from '../support/destination.ts';
import { fails } from '../support/forwarding.ts';
import type { Lender } from '../support/temporary.ts';
import { accept, handshakeKey } from '../support/websocket.ts';

async function start(t: Lender) {
  const destination = await startDestination(t);
  destination.upgrade((request, socket) => {
    socket.on('error', () => undefined);
    accept(request, socket);
  });
  const { name, authority, url } = destination;
  const forward = createForward(
    { allow: new Set([name]), authorities: [authority.cert], vaultName: 'strongroom-0' },
    { ...slotLimits, destinationMax: 1 },
  );
  const open = (given: { signal?: AbortSignal; timeoutMs?: number } = {}) =>
    forward({
      method: 'GET',
      url: new URL(url),
      headers: ['Sec-WebSocket-Key', handshakeKey, 'Sec-WebSocket-Version', '13'],
      body: undefined,
      timeoutMs: 20_000,
      partition: 'one',
      upgrade: true,
      ...given,
    });
  return { destination, open };
}

test('an open connection takes a slot until it ends', async (t) => {
  const { open } = await start(t);
  const first = await open();
  assert.equal(first.status, 101);
  await fails(open({ timeoutMs: 100 }), 'timeout');
  const second = open();
  first.upgraded?.destroy();
  assert.equal((await second).status, 101);
  (await second).upgraded?.destroy();
});

test('an open connection is not ended by the time limit of its request, and ends with its caller', async (t) => {
  const { open } = await start(t);
  const gone = new AbortController();
  const { upgraded } = await open({ signal: gone.signal, timeoutMs: 300 });
  assert.ok(upgraded);
  await fails(open({ timeoutMs: 600 }), 'timeout');
  assert.equal(upgraded.destroyed, false);
  const closed = new Promise((resolve) => upgraded.once('close', resolve));
  gone.abort();
  await closed;
});

test('a host that goes on with requests after its acceptance is not believed', async (t) => {
  const { destination, open } = await start(t);
  for (const added of [
    { 'sec-websocket-accept': handshakeKey },
    { upgrade: 'h2c' },
    { 'sec-websocket-extensions': 'permessage-deflate' },
  ]) {
    destination.upgrade((request, socket) => {
      socket.on('error', () => undefined);
      accept(request, socket, added);
    });
    await fails(open(), 'invalid_response');
  }
});
