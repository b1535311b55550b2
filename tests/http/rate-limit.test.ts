/** Rate limits that the operator sets: counted before a request costs anything, shared where servers are. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { engineOf, onBothEngines, onPostgres } from '../support/engines.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { configFor, managementKey, type Received, startVault } from '../support/vault.ts';

type Limit = Readonly<Record<string, unknown>>;

function fileOf(t: TestContext, content: unknown): string {
  const file = join(temporaryDirectory(t), 'limits.json');
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  return file;
}

const limiting = (t: TestContext, ...limits: Limit[]) => ({
  STRONGROOM_RATE_LIMITS: fileOf(t, { limits }),
});

const body = { type: 'token', data: 1 };

/** Fails unless these answers were given and exactly the last of them refused. */
function assertLimited(answers: readonly Received[], allowed: number): void {
  assert.deepEqual(
    answers.map(({ status }) => status === 429),
    answers.map((_, index) => index >= allowed),
  );
}

async function times<T>(count: number, send: () => Promise<T>): Promise<T[]> {
  const answers: T[] = [];
  for (let turn = 0; turn < count; turn += 1) answers.push(await send());
  return answers;
}

onBothEngines('Rate limits', (engine) => {
  test('are off when the operator says so: no request is counted or gets rate limit headers', async (t) => {
    const vault = await startVault(t, engine, {
      environment: { STRONGROOM_RATE_LIMITS: 'off' },
    });
    const answers = await times(60, () => vault.send('GET', '/logs', { key: managementKey }));
    assertLimited(answers, 60);
    assert.equal(answers[0]?.headers.has('ratelimit-limit'), false);
  });

  test('429: over the limit, with the time to wait, before key and body are looked at', async (t) => {
    const limit = { per: ['address'], requests: 3, window_seconds: 60 };
    const vault = await startVault(t, engine, { environment: limiting(t, limit) });
    const wrong = () => vault.send('POST', '/tokens', { key: 'nobody', body: '{' });
    const answers = await times(5, wrong);
    assert.deepEqual(
      answers.map(({ status }) => status),
      [401, 401, 401, 429, 429],
    );
    assert.deepEqual(
      answers.map(({ headers }) => headers.get('ratelimit-remaining')),
      ['2', '1', '0', '0', '0'],
    );
    const refused = answers[3];
    assert.equal(refused?.body.type, 'urn:strongroom:problem:too_many_requests');
    assert.equal(refused?.body.status, 429);
    const wait = Number(refused?.headers.get('retry-after'));
    assert.ok(wait > 50 && wait <= 60);
    assert.equal(refused?.headers.get('ratelimit-limit'), '3');
    assert.equal(refused?.headers.get('ratelimit-reset'), String(wait));
    assert.equal(refused?.headers.get('x-ratelimit-limit'), '3');
    assert.equal(refused?.headers.get('x-ratelimit-remaining'), '0');
    const reset = Number(refused?.headers.get('x-ratelimit-reset')) - vault.clock.now() / 1000;
    assert.ok(reset > 50 && reset <= 61);
    assert.equal((await vault.send('GET', '/healthz')).status, 200);
  });

  test('end with their window, and a block goes on for as long as it says', async (t) => {
    const short = { per: ['key'], requests: 2, window_seconds: 1, routes: ['GET /tokens/{id}'] };
    const long = {
      ...short,
      window_seconds: 10,
      block_seconds: 60,
      routes: ['DELETE /tokens/{id}'],
    };
    const vault = await startVault(t, engine, { environment: limiting(t, short, long) });
    const key = await vault.application();
    const send = (method: string) => () => vault.send(method, '/tokens/none', { key });
    // So many at once that they are too many also for the windows of a slow machine.
    const answers = await Promise.all(Array.from({ length: 30 }, send('GET')));
    const refused = answers.find(({ status }) => status === 429);
    assert.equal(refused?.headers.get('retry-after'), '1');
    while ((await send('GET')()).status === 429);
    const blocked = await times(4, send('DELETE'));
    assertLimited(blocked, 2);
    for (const { headers } of blocked.slice(2)) {
      const wait = Number(headers.get('retry-after'));
      assert.ok(wait > 50 && wait <= 60, `${wait}`);
    }
  });

  test('count each key apart, kinds by themselves, and routes of one rule together', async (t) => {
    const shared = ['POST /tokens', 'PATCH /tokens/{id}'];
    const perKey = { per: ['key'], requests: 3, window_seconds: 60, routes: shared };
    const publicOnly = { per: ['key', 'address'], key_kinds: ['public'], requests: 1 };
    const vault = await startVault(t, engine, {
      environment: limiting(t, perKey, { ...publicOnly, window_seconds: 60 }),
    });
    const [one, other] = [await vault.application(), await vault.application()];
    const create = (key: string) => vault.send('POST', '/tokens', { key, body });
    await times(2, () => create(one));
    const patch = await vault.send('PATCH', '/tokens/none', { key: one, body: {} });
    assert.equal(patch.status, 404);
    assert.equal((await create(one)).status, 429);
    assert.equal((await vault.send('GET', '/tokens/none', { key: one })).status, 404);
    assert.equal((await create(other)).status, 201);
    const open = await vault.application({ type: 'public', permissions: ['token:create'] });
    assertLimited(await times(2, () => create(open)), 1);
  });

  test('of several rules the headers describe the tightest', async (t) => {
    const wide = { per: ['address'], requests: 50, window_seconds: 60 };
    const tight = { per: ['key'], requests: 7, window_seconds: 60, routes: ['GET /tokens/{id}'] };
    const vault = await startVault(t, engine, { environment: limiting(t, wide, tight) });
    const key = await vault.application();
    const read = await vault.send('GET', '/tokens/none', { key });
    assert.equal(read.headers.get('ratelimit-limit'), '7');
    assert.equal(read.headers.get('ratelimit-remaining'), '6');
    const other = await vault.send('POST', '/tokens', { key, body });
    assert.equal(other.headers.get('ratelimit-limit'), '50');
  });

  test('legacy-2024 is the retired table: 200 creations in 10 seconds, then a block', async (t) => {
    const vault = await startVault(t, engine, {
      environment: { STRONGROOM_RATE_LIMITS: 'legacy-2024' },
    });
    const key = await vault.application();
    // Those that fail are counted too, and so many of them fit into ten seconds on any machine.
    const create = () => vault.send('POST', '/tokens', { key, body: {} });
    const answers = await Promise.all(Array.from({ length: 205 }, create));
    assert.equal(answers.filter(({ status }) => status === 400).length, 200);
    const refused = answers.filter(({ status }) => status === 429);
    const waits = refused.map(({ headers }) => Number(headers.get('retry-after')));
    assert.equal(Math.max(...waits), 10);
    assert.equal((await vault.send('GET', '/tokens/none', { key })).status, 404);
  });

  test('take the word of a trusted proxy on the address, and of nobody else', async (t) => {
    const limit = { per: ['address'], requests: 1, window_seconds: 60 };
    const environment = limiting(t, limit);
    const from = (address: string) => ({ headers: { 'x-forwarded-for': address } });
    const direct = await startVault(t, engine, { environment });
    const [first, second] = [from('192.0.2.1'), from('192.0.2.2')];
    assert.equal((await direct.send('GET', '/logs', first)).status, 401);
    assert.equal((await direct.send('GET', '/logs', second)).status, 429);
    const behind = await startVault(t, engine, {
      environment: { ...environment, STRONGROOM_TRUSTED_PROXIES: '10.0.0.0/8, 127.0.0.1' },
    });
    assert.equal((await behind.send('GET', '/logs', first)).status, 401);
    assert.equal((await behind.send('GET', '/logs', second)).status, 401);
    assert.equal((await behind.send('GET', '/logs', first)).status, 429);
    // What is not an address is nobody's word: these are all counted as the proxy's own.
    assert.equal((await behind.send('GET', '/logs', from('192.0.2.3:1'))).status, 401);
    assert.equal((await behind.send('GET', '/logs', from('192.0.2.3:2'))).status, 429);
    assert.equal((await behind.send('GET', '/logs', from('x'.repeat(10_000)))).status, 429);
  });
});

onPostgres('servers on one PostgreSQL count together, whatever their clocks say', async (t) => {
  const engine = engineOf('postgres');
  const limit = { per: ['address'], requests: 10, window_seconds: 60 };
  const environment = limiting(t, limit);
  const one = await startVault(t, engine, { environment });
  const other = await startVault(t, engine, { environment, place: one.place });
  other.clock.advance(60_000);
  const send = (index: number) => (index % 2 === 0 ? one : other).send('GET', '/logs');
  const answers = await Promise.all(Array.from({ length: 30 }, (_, index) => send(index)));
  assert.equal(answers.filter(({ status }) => status === 401).length, 10);
  assert.equal(answers.filter(({ status }) => status === 429).length, 20);
});

test('the start is refused when the limits are not right, without repeating them', async (t) => {
  const rule = { per: ['address'], requests: 1, window_seconds: 1 };
  const refused: [unknown, RegExp][] = [
    ['{', /names a file that is not JSON/],
    [{ limits: [{ ...rule, requests: 0 }] }, /limits\[0\]\.requests/],
    [{ limits: [rule, { ...rule, per: ['planet'] }] }, /limits\[1\]\.per\[0\] must be one of/],
    [{ limits: [{ ...rule, window: 1 }] }, /limits\[0\]\.window is not a known attribute/],
    [{ limits: [], failed_authentication: { requests: 0, window_seconds: 1 } }, /failed_auth/],
    [{ limits: [{ per: ['key'] }] }, /limits\[0\]\.window_seconds is required/],
  ];
  const engine = engineOf('sqlite');
  const place = await engine.place(t);
  for (const [content, problem] of refused) {
    const environment = { STRONGROOM_RATE_LIMITS: fileOf(t, content) };
    assert.throws(() => configFor(place, environment), problem);
  }
  const missing = { STRONGROOM_RATE_LIMITS: 'legacy-1999' };
  assert.throws(() => configFor(place, missing), /^ConfigError: STRONGROOM_RATE_LIMITS/);
  const proxies = { STRONGROOM_TRUSTED_PROXIES: '10.0.0.0/33' };
  assert.throws(() => configFor(place, proxies), /^ConfigError: STRONGROOM_TRUSTED_PROXIES/);
  const environment = limiting(t, { ...rule, routes: ['POST /tokenz'] });
  await assert.rejects(startVault(t, engine, { environment }), /do not exist: POST \/tokenz/);
});
