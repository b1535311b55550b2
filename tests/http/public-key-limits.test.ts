/** What is limited without any setting: visitors with a public key, and attempts without a valid key. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pooledRandom } from '../../src/base/random.ts';
import { newApiKey } from '../../src/keys/api-key.ts';
import { onBothEngines } from '../support/engines.ts';
import { linesOfAnswer, linesSent } from '../support/lines.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { newTenant } from '../support/tenant.ts';
import { managementKey, type Received, startVault } from '../support/vault.ts';

/** An empty variable counts as one that is not set. */
const byDefault = { STRONGROOM_RATE_LIMITS: '' };
const allowed = 60;
const creating = { type: 'public', permissions: ['token:create'] };
const body = { type: 'token', data: 1 };
const from = (address: string) => ({ headers: { 'x-forwarded-for': address } });
const trusting = { ...byDefault, STRONGROOM_TRUSTED_PROXIES: '127.0.0.1' };

/** So many at once that they fit into one window on any machine. */
const atOnce = (count: number, send: (index: number) => Promise<Received>) =>
  Promise.all(Array.from({ length: count }, (_, index) => send(index)));

const counted = (answers: readonly Received[]) => {
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
};

onBothEngines('A public key', (engine) => {
  test('429: after 60 requests in 10 s from one address, over all routes, whatever the answers', async (t) => {
    const vault = await startVault(t, engine, { environment: byDefault });
    const key = await vault.application(creating);
    const answers = await atOnce(allowed + 15, (index) =>
      index % 3 === 0
        ? vault.send('POST', '/tokens', { key, body })
        : vault.send('GET', index % 3 === 1 ? '/tokens/one' : '/applications/key', { key }),
    );
    assert.equal(counted(answers)[429], 15);
    const refused = answers.find(({ status }) => status === 429);
    assert.equal(refused?.body.type, 'urn:strongroom:problem:too_many_requests');
    const wait = Number(refused?.headers.get('retry-after'));
    assert.ok(wait >= 1 && wait <= 10, `${wait}`);
    assert.equal(refused?.headers.get('ratelimit-limit'), String(allowed));
    assert.equal(refused?.headers.get('ratelimit-remaining'), '0');
    assert.equal(refused?.headers.get('ratelimit-reset'), String(wait));
  });

  test('each key is counted at each address by itself, and other kinds not at all', async (t) => {
    const vault = await startVault(t, engine, { environment: trusting });
    const key = await vault.application(creating);
    const create = (more: object) => vault.send('POST', '/tokens', { body, ...more });
    const one = { key, ...from('192.0.2.1') };
    assert.deepEqual(counted(await atOnce(allowed + 1, () => create(one))), { 201: 60, 429: 1 });
    assert.equal((await create({ key, ...from('192.0.2.2') })).status, 201);
    const other = await vault.application(creating);
    assert.equal((await create({ key: other, ...from('192.0.2.1') })).status, 201);
    assert.equal((await create({ key, ...from('::ffff:192.0.2.1') })).status, 429);
    for (const free of [await vault.application(), managementKey]) {
      const answers = await atOnce(allowed + 1, () =>
        vault.send('GET', '/applications/key', { key: free, ...from('192.0.2.1') }),
      );
      assert.equal(counted(answers)[429], undefined);
      assert.equal(answers[0]?.headers.has('ratelimit-limit'), false);
    }
  });

  test('sessions that it creates count with it at each address, authorized or not', async (t) => {
    const vault = await startVault(t, engine, { environment: trusting });
    const key = await vault.application(creating);
    const here = from('192.0.2.1');
    const opened = await atOnce(20, () => vault.send('POST', '/sessions', { key, ...here }));
    assert.deepEqual(counted(opened), { 201: 20 });
    const asks = (more: object) =>
      atOnce(20, (index) =>
        vault.send('GET', '/tokens/one', { key: opened[index]?.body.session_key, ...more }),
      );
    assert.deepEqual(counted(await asks(here)), { 403: 20 });
    const grant = { nonce: opened[0]?.body.nonce, permissions: ['token:create'] };
    const granter = await vault.application();
    const authorizing = { key: granter, body: grant, ...here };
    assert.equal((await vault.send('POST', '/sessions/authorize', authorizing)).status, 200);
    const session = opened[0]?.body.session_key;
    const creates = () => vault.send('POST', '/tokens', { key: session, body, ...here });
    assert.deepEqual(counted(await atOnce(25, creates)), { 201: 20, 429: 5 });
    assert.equal((await vault.send('POST', '/sessions', { key, ...here })).status, 429);
    assert.deepEqual(counted(await asks(from('192.0.2.2'))), { 403: 20 });
  });

  test('lines of a bulk body count one by one: those over the limit are 429 and cost nothing', async (t) => {
    const vault = await startVault(t, engine, { environment: byDefault });
    const owner = await newTenant(vault);
    const key = await owner.application(creating);
    const lines = Array.from({ length: allowed + 20 }, (_, index) => ({ ...body, data: index }));
    const answer = await owner.send('POST', '/tokens/bulk', { ...linesSent(lines), key });
    assert.equal(answer.status, 200);
    const results = linesOfAnswer(answer);
    assert.deepEqual(
      results.map(({ line, status }) => [line, status]),
      lines.map((_, index) => [index + 1, index < allowed ? 201 : 429]),
    );
    const { problem } = results.at(-1) ?? {};
    assert.equal(problem.type, 'urn:strongroom:problem:too_many_requests');
    assert.match(problem.detail, /try again in \d+ s/);
    assert.deepEqual(await owner.logged(), Array(allowed).fill('create'));
    assert.equal((await owner.send('POST', '/tokens', { key, body })).status, 429);
    const again = await owner.send('POST', '/tokens/bulk', { ...linesSent(lines), key });
    assert.equal(again.status, 429);
  });

  test('lines of a private key do not count', async (t) => {
    const vault = await startVault(t, engine, { environment: byDefault });
    const owner = await newTenant(vault);
    const lines = Array.from({ length: allowed + 20 }, () => body);
    const answer = await owner.send('POST', '/tokens/bulk', linesSent(lines));
    assert.deepEqual(new Set(linesOfAnswer(answer).map(({ status }) => status)), new Set([201]));
  });

  test('values to tokenize count one by one, and no body is done in part', async (t) => {
    const vault = await startVault(t, engine, { environment: byDefault });
    const owner = await newTenant(vault);
    const values = (count: number) => ({ list: Array.from({ length: count }, () => ({ v: 1 })) });
    const tokenize = (key: string, count: number) =>
      owner.send('POST', '/tokenize', { key, body: values(count) });
    const refused = await tokenize(await owner.application(creating), allowed + 1);
    assert.equal(refused.status, 429);
    assert.match(refused.body.detail, /^The body counts as 61 requests\. /);
    assert.equal(refused.headers.get('ratelimit-remaining'), '0');
    assert.ok(Number(refused.headers.get('retry-after')) >= 1);
    assert.equal((await owner.counts())['tokens'], 0);
    const key = await owner.application(creating);
    assert.equal((await tokenize(key, allowed)).status, 200);
    assert.equal((await tokenize(key, 0)).status, 429);
    assert.equal((await owner.counts())['tokens'], allowed);
  });

  test('is not limited by default where the operator set limits, or none', async (t) => {
    const limit = { per: ['key'], key_kinds: ['public'], requests: 3, window_seconds: 60 };
    const send = async (setting: string) => {
      const vault = await startVault(t, engine, {
        environment: { STRONGROOM_RATE_LIMITS: setting },
      });
      const key = await vault.application(creating);
      return counted(await atOnce(allowed + 5, () => vault.send('POST', '/tokens', { key, body })));
    };
    assert.deepEqual(await send(fileOf(t, { limits: [limit] })), { 201: 3, 429: 62 });
    assert.deepEqual(await send('off'), { 201: 65 });
  });
});

onBothEngines('Failed authentication', (engine) => {
  const unknown = () => newApiKey({ env: 'test', kind: 'pvt', random: pooledRandom() });
  const attempts = [undefined, 'nonsense', unknown(), 'plausible.but.unknown.key.of.an.operator'];

  test('429: after 60 failures in 10 s from one address; valid keys and other addresses pass', async (t) => {
    const vault = await startVault(t, engine, { environment: trusting });
    const [used, unused] = [await vault.application(), await vault.application()];
    const read = (key: string | undefined, address: string) =>
      vault.send('GET', '/applications/key', { key, ...from(address) });
    assert.equal((await read(used, '192.0.2.1')).status, 200);
    const answers = await atOnce(allowed, (index) => read(attempts[index % 4], '192.0.2.1'));
    assert.deepEqual(counted(answers), { 401: allowed });
    const more = await atOnce(40, (index) => read(attempts[index % 4], '192.0.2.1'));
    assert.deepEqual(counted(more), { 429: 40 });
    const wait = Number(more[0]?.headers.get('retry-after'));
    assert.ok(wait >= 1 && wait <= 10, `${wait}`);
    for (const key of [used, unused]) {
      assert.equal((await read(key, '192.0.2.1')).status, 200);
    }
    assert.equal((await read(unknown(), '192.0.2.2')).status, 401);
    vault.clock.advance(10_000);
    assert.equal((await read(unknown(), '192.0.2.1')).status, 401);
  });

  test('is limited as the file of limits says, and not at all with `off`', async (t) => {
    const fail = async (setting: string) => {
      const vault = await startVault(t, engine, {
        environment: { STRONGROOM_RATE_LIMITS: setting },
      });
      return counted(await atOnce(allowed + 5, () => vault.send('GET', '/logs', {})));
    };
    const limited = { limits: [], failed_authentication: { requests: 2, window_seconds: 60 } };
    assert.deepEqual(await fail(fileOf(t, limited)), { 401: 2, 429: 63 });
    assert.deepEqual(await fail(fileOf(t, { limits: [] })), { 401: 60, 429: 5 });
    assert.deepEqual(await fail('off'), { 401: 65 });
  });
});

function fileOf(t: TestContext, content: unknown): string {
  const file = join(temporaryDirectory(t), 'limits.json');
  writeFileSync(file, JSON.stringify(content));
  return file;
}
