/** A disk that fills up: what grows is refused in time, reading and deleting go on, and nothing is lost. */
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { engineOf } from '../support/engines.ts';
import { environmentOf, spawnVault } from '../support/process.ts';
import { verifyLog } from '../support/rows.ts';
import { freeOn, smallDisk } from '../support/small-disk.ts';
import { createApplication, managementKey, request } from '../support/vault.ts';

/** What a caller can write, by route, with any body that the route takes. */
const floods: Readonly<Record<string, [method: string, path: string, body: unknown]>> = {
  tokens: ['POST', '/tokens', { type: 'token', data: 'a'.repeat(20_000) }],
  tokenize: ['POST', '/tokenize', { a: 'b'.repeat(20_000), c: 'd'.repeat(20_000) }],
  'token intents': ['POST', '/token-intents', { type: 'token', data: 'a'.repeat(20_000) }],
  updates: ['PATCH', '/tokens/token-0', { data: 'u'.repeat(30_000) }],
  searches: ['POST', '/tokens/search', { query: 'data:nothing' }],
};

for (const [name, flood] of Object.entries(floods)) {
  test(`after a flood of ${name} on a small disk reading and deleting go on`, async (t) => {
    const disk = smallDisk(t, 48);
    if (disk === undefined) return t.diagnostic('nobody may mount a small disk here: not tested');
    const place = { databaseUrl: undefined, dataDir: join(disk, 'data') };
    const vault = await spawnVault(t, environmentOf(place));
    const key = await createApplication(vault.url);
    const intents = await createApplication(vault.url, {
      name: 'intents',
      type: 'private',
      permissions: ['token-intent:create'],
    });
    const send = (method: string, path: string, body?: unknown) =>
      request(`${vault.url}${path}`, method, { key, ...(body !== undefined && { body }) });
    const acknowledged: string[] = [];
    for (let n = 0; n < 20; n++) {
      const id = `token-${n}`;
      assert.equal((await send('POST', '/tokens', { id, type: 'token', data: id })).status, 201);
      if (n > 0) acknowledged.push(id);
    }
    // Another program takes most of the disk.
    writeFileSync(join(disk, 'other'), Buffer.alloc(Math.max(0, freeOn(disk) - 12 * 2 ** 20)));
    const refused = new Set<number>();
    for (let round = 0; round < 60; round++) {
      const sent = Array.from({ length: 20 }, () => {
        const [method, path, body] = flood;
        const by = path === '/token-intents' ? intents : key;
        return request(`${vault.url}${path}`, method, { key: by, body });
      });
      for (const { status, body } of await Promise.all(sent)) {
        const isToken = flood[1] === '/tokens' && status === 201;
        if (isToken) acknowledged.push(body.id);
        if (status >= 400) refused.add(status);
      }
      if (refused.has(507)) break;
    }
    assert.deepEqual(
      [...refused].filter((status) => status !== 507),
      [],
      'nothing fails with anything else',
    );
    if (name === 'tokens' || name === 'tokenize')
      assert.ok(refused.has(507), 'the disk was filled');
    for (let round = 0; round < 25; round++) {
      const reads = Array.from({ length: 20 }, () => send('GET', '/tokens/token-1'));
      for (const { status } of await Promise.all(reads)) assert.equal(status, 200);
    }
    for (const id of acknowledged.slice(-40)) {
      assert.equal((await send('GET', `/tokens/${id}`)).status, 200);
    }
    assert.equal((await send('DELETE', '/tokens/token-2')).status, 204);
    assert.equal((await request(`${vault.url}/readyz`, 'GET')).status, 200);
    assert.equal((await request(`${vault.url}/logs`, 'GET', { key: managementKey })).status, 200);
    rmSync(join(disk, 'other'));
    const recovered = await send('POST', '/tokens', { type: 'token', data: 'again' });
    assert.equal(recovered.status, 201, 'it recovers by itself');
    await verifyLog(engineOf('sqlite'), place);
  });
}

test('what is deleted makes room for what is created, though the file stays as large', async (t) => {
  const disk = smallDisk(t, 64);
  if (disk === undefined) return t.diagnostic('nobody may mount a small disk here: not tested');
  const place = { databaseUrl: undefined, dataDir: join(disk, 'data') };
  const vault = await spawnVault(t, environmentOf(place));
  const key = await createApplication(vault.url);
  const create = (n: number) =>
    request(`${vault.url}/tokens`, 'POST', {
      key,
      body: { id: `token-${n}`, type: 'token', data: 'a'.repeat(100_000) },
    });
  let made = 0;
  for (; made < 1000; made++) {
    const { status, body } = await create(made);
    if (status === 201) continue;
    assert.equal(status, 507);
    assert.equal(body.type, 'urn:strongroom:problem:insufficient_storage');
    break;
  }
  assert.ok(made > 10 && made < 1000, String(made));
  const send = (method: string, n: number) =>
    request(`${vault.url}/tokens/token-${n}`, method, { key });
  // One after another they are quick, and together they are one commit, which is larger than the room that is left.
  for (let n = 0; n < 100; n++) {
    const { status, text } = await send('DELETE', n);
    assert.equal(status, 204, `${text}\n${vault.output().slice(-2000)}`);
  }
  for (let n = 100; n + 100 < made; n += 100) {
    const deleted = Array.from({ length: 100 }, (_, place) => send('DELETE', n + place));
    const read = Array.from({ length: 20 }, () => send('GET', made - 1));
    for (const { status, text } of await Promise.all(deleted)) {
      assert.equal(status, 204, `${text}\n${vault.output().slice(-2000)}`);
    }
    for (const { status, text } of await Promise.all(read)) assert.equal(status, 200, text);
  }
  // The log may just have been emptied, which is not repeated at once, so the pages come back a moment later.
  let status = 507;
  for (let tries = 0; status === 507 && tries < 100; tries++) ({ status } = await create(0));
  assert.equal(status, 201);
});
