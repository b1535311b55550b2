/** A crash between commit and answer: the retry is answered with what was done, and nothing is done twice. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import { type Engine, onBothEngines, type Place } from '../support/engines.ts';
import { environmentOf, spawnVault } from '../support/process.ts';
import { seeded } from '../support/random.ts';
import { rowsOf } from '../support/rows.ts';
import { createApplication, type Received, request } from '../support/vault.ts';

/** Passes requests on, and of the answers lets nothing through but the knowledge that one came. */
async function swallowingProxy(t: TestContext, target: string) {
  const answered = Promise.withResolvers<void>();
  const proxy = createServer((client) => {
    const server = connect(Number(new URL(target).port), '127.0.0.1');
    client.pipe(server);
    server.on('data', () => answered.resolve());
    for (const socket of [client, server]) socket.on('error', () => undefined);
    server.on('close', () => client.destroy());
    client.on('close', () => server.destroy());
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  t.after(() => void proxy.close());
  const { port } = proxy.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, answered: answered.promise };
}

const count = async (engine: Engine, place: Place, query: string) => {
  const [row] = await engine.run(place, `select count(*) as n from ${query}`);
  return Number(row?.['n']);
};

const entriesOf = async (engine: Engine, place: Place, operation: string) =>
  (await rowsOf(engine, place, 'logs')).filter(
    (entry) => entry.entity_type === 'token' && entry.operation === operation,
  ).length;

onBothEngines('A crash between commit and answer', (engine) => {
  test('the retry of each kind of request is answered with what was done', async (t) => {
    const place = await engine.place(t);
    let vault = await spawnVault(t, environmentOf(place));
    const key = await createApplication(vault.url);
    const body = { id: 'own id', type: 'token', data: { n: 0 }, metadata: { a: 'b' } };
    const requests = [
      { method: 'POST', path: '/tokens', body },
      { method: 'PATCH', path: '/tokens/own%20id', body: { data: { n: 1 }, metadata: { c: 'd' } } },
      { method: 'POST', path: '/tokens', body: { type: 'token', data: 'another' } },
    ];
    for (const [index, { method, path, body }] of requests.entries()) {
      const sent = { key, body, headers: { 'svc-idempotency-key': `k-${index}` } };
      const proxy = await swallowingProxy(t, vault.url);
      const lost = assert.rejects(request(proxy.url + path, method, sent));
      await proxy.answered;
      await vault.kill();
      await lost;
      vault = await spawnVault(t, environmentOf(place));
      const retried = await request(vault.url + path, method, sent);
      assert.equal(retried.status, method === 'POST' ? 201 : 200, retried.text);
      const id = encodeURIComponent(retried.body.id);
      const read = await request(`${vault.url}/tokens/${id}`, 'GET', { key });
      assert.deepEqual(retried.body.data, read.body.data);
      assert.equal((await request(vault.url + path, method, sent)).text, retried.text);
    }
    assert.equal(await count(engine, place, 'tokens'), 2);
    assert.equal(await count(engine, place, 'replies'), 3);
    assert.deepEqual(
      [await entriesOf(engine, place, 'create'), await entriesOf(engine, place, 'update')],
      [2, 1],
    );
  });

  test('clients that retry until they are answered have each of their effects once', async (t) => {
    const below = seeded(t);
    const place = await engine.place(t);
    let vault = await spawnVault(t, environmentOf(place));
    const key = await createApplication(vault.url);
    const keysPerClient = 40;
    const clients = 6;
    let answersLeft = 20 + below(60);
    let restarted = Promise.resolve();
    const restart = async () => {
      await vault.kill();
      vault = await spawnVault(t, environmentOf(place));
    };
    const responseOf = async (idempotencyKey: string): Promise<Received> => {
      const sent = {
        key,
        body: { type: 'token', data: idempotencyKey },
        headers: { 'svc-idempotency-key': idempotencyKey },
      };
      for (;;) {
        await restarted;
        const answer = await request(`${vault.url}/tokens`, 'POST', sent).catch(() => undefined);
        answersLeft -= 1;
        if (answersLeft === 0) restarted = restart();
        if (answersLeft < -60) answersLeft = 20 + below(60);
        if (answer?.status === 201) return answer;
        if (answer) assert.ok([409, 503].includes(answer.status), answer.text);
      }
    };
    const ids = await Promise.all(
      Array.from({ length: clients }, async (_, client) => {
        const own: string[] = [];
        for (let turn = 0; turn < keysPerClient; turn += 1) {
          // Every other key is used by two clients at the same time.
          const name = turn % 2 === 0 ? `${client}-${turn}` : `${client % 3}-${turn}`;
          const answer = await responseOf(name);
          assert.equal(answer.body.data, name);
          own.push(`${name} ${answer.body.id}`);
        }
        return own;
      }),
    );
    await restarted;
    const answered = new Set(ids.flat());
    const names = new Set([...answered].map((text) => text.split(' ')[0]));
    assert.equal(answered.size, names.size, 'each key was answered with one token');
    assert.equal(await count(engine, place, 'tokens'), names.size);
    assert.equal(await entriesOf(engine, place, 'create'), names.size);
  });
});
