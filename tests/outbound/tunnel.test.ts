/** Tunnels have a number, and one that cannot be opened for it waits for none. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { createTunnels } from '../../src/outbound/tunnel.ts';

test('a tenant has so many tunnels at once, and another one does not notice', async (t) => {
  const server = createServer((socket) => socket.resume()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const limits = { destinationMax: 2, partitionMax: 2, totalMax: 4 };
  const open = createTunnels(
    { allow: new Set([host]) },
    { ...limits, waitingMax: 0, waitingOfPartitionMax: 0 },
  );
  const url = new URL(`https://${host}`);
  const [first, second] = [await open(url, 'one'), await open(url, 'one')];
  await assert.rejects(open(url, 'one'), { message: 'too many requests wait to be sent' });
  const other = await open(url, 'two');
  first.destroy();
  await once(first, 'close');
  const third = await open(url, 'one');
  for (const socket of [second, third, other]) socket.destroy();
});
