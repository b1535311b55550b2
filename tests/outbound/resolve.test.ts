/** Names that anybody may choose are looked up without holding up anybody else. */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { promises } from 'node:dns';
import { once } from 'node:events';
import { test } from 'node:test';
import { resolvingPublicNames } from '../../src/outbound/resolve.ts';

test('names whose server is silent hold up no other name, and no thread of the pool', async (t) => {
  const silent = createSocket('udp4').bind(0, '127.0.0.1');
  t.after(() => silent.close());
  await once(silent, 'listening');
  const servers = [`127.0.0.1:${silent.address().port}`];
  const resolve = resolvingPublicNames({ servers, responseMs: 500 });
  const ended: string[] = [];
  const waiting = Array.from(
    { length: 50 },
    (_, at) =>
      new Promise<void>((done) => {
        resolve(`silent-${at}.example`, (error) => {
          ended.push(error?.code ?? 'found');
          done();
        });
      }),
  );
  await promises.lookup('localhost');
  assert.deepEqual(ended, [], 'the look-up of the system did not wait for these');
  await Promise.all(waiting);
  assert.deepEqual([...new Set(ended)], ['ETIMEOUT']);
});

test('the own name of a machine leads to itself, and asks no server', async () => {
  for (const name of ['localhost', 'LOCALHOST.', 'vault.localhost']) {
    const found = await new Promise((resolve) => {
      resolvingPublicNames()(name, (_, addresses) => resolve(addresses));
    });
    assert.deepEqual(found, [{ address: '127.0.0.1', family: 4 }]);
  }
});
