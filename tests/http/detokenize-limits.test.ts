/** How much one POST /detokenize may refer to, and write. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dataLengthMax } from '../../src/tokens/contents/contents.ts';
import { referencedBytesMax } from '../../src/tokens/tokenization/reference-rows.ts';
import { onBothEngines } from '../support/engines.ts';
import { tenantsOf } from '../support/tenant.ts';

onBothEngines('the limits of POST /detokenize', (engine) => {
  const tenants = tenantsOf(engine);

  test('200 and 400: tokens are referred to up to a number of bytes, before any is opened', async () => {
    const tenant = await tenants();
    const count = referencedBytesMax / dataLengthMax + 1;
    const length = Math.floor(referencedBytesMax / count) - 200;
    const fill = async (name: string, more: number) => {
      const ids = Array.from({ length: count }, (_, at) => `${name}-${at}`);
      for (const id of ids) {
        await tenant.token({ id, type: 'token', data: 'x'.repeat(length + more) });
      }
      return ids.map((id) => `{{ ${id} | last4 }}`);
    };
    const filled = await fill('within', 0);
    const within = await tenant.send('POST', '/detokenize', { body: filled });
    assert.equal(within.status, 200, within.text);
    await tenant.token({ id: 'plain', type: 'token', data: 1 });
    const metadata = { a: 'm'.repeat(450), b: 'm'.repeat(450) };
    await tenant.token({ id: 'with metadata', type: 'token', data: 1, metadata });
    for (const [id, status] of [
      ['plain', 200],
      ['with metadata', 400],
    ]) {
      const body = [...filled, `{{ ${id} }}`];
      assert.equal((await tenant.send('POST', '/detokenize', { body })).status, status);
    }
    const body = await fill('beyond', 400);
    const refused = await tenant.send('POST', '/detokenize', { body });
    assert.equal(refused.status, 400);
    assert.match(refused.body.errors.body[0], new RegExp(String(referencedBytesMax)));
  });

  test('400: intents count with the tokens, and few as well as many', async () => {
    const tenant = await tenants();
    const permissions = ['token-intent:create', 'token-intent:read'];
    const rule = { priority: 1, container: '/', permissions: ['token:read'], transform: 'reveal' };
    const key = await tenant.application({ permissions, rules: [rule] });
    const part = '€'.repeat(300_000);
    const intents: string[] = [];
    for (const id of ['one', 'two']) {
      await tenant.token({ id, type: 'token', data: { a: part } });
      for (const name of ['b', 'c']) {
        const body = { data: { [name]: part } };
        assert.equal((await tenant.send('PATCH', `/tokens/${id}`, { body })).status, 200);
      }
      const body = { type: 'token', data: part };
      const made = await tenant.send('POST', '/token-intents', { key, body });
      intents.push(`{{ token_intent: ${made.body.id} | json: '$.type' }}`);
    }
    const small = Array.from({ length: 5 }, (_, at) => `small-${at}`);
    for (const id of small) await tenant.token({ id, type: 'token', data: 1 });
    const [one, two, ...many] = ['one', 'two', ...small].map((id) => `{{ ${id} | json: '$.x' }}`);
    const [intent, other] = intents;
    const statusOf = async (...body: readonly unknown[]) =>
      (await tenant.send('POST', '/detokenize', { key, body })).status;
    assert.equal(await statusOf(one), 200);
    assert.equal(await statusOf(intent, other, two), 400);
    assert.equal(await statusOf(one, two), 400);
    assert.equal(await statusOf(one, intent, ...many), 200);
    assert.equal(await statusOf(one, intent, other, ...many), 400);
    assert.equal(await statusOf(one, two, ...many), 400);
  });

  test('400 and 403: nobody learns how large a token is who may not read it, or once it has expired', async () => {
    const tenant = await tenants();
    const rule = {
      priority: 1,
      container: '/mine/',
      permissions: ['token:create', 'token:read'],
      transform: 'reveal',
    };
    const key = await tenant.application({ permissions: [], rules: [rule] });
    const own = { type: 'token', data: 'x'.repeat(900_000), containers: ['/mine/'] };
    const padding: string[] = [];
    for (let at = 0; at < 5; at++) {
      const { status } = await tenant.send('POST', '/tokens', {
        key,
        body: { id: `pad-${at}`, ...own },
      });
      assert.equal(status, 201);
      padding.push(`{{ pad-${at} | last4 }}`);
    }
    const expires_at = new Date(tenant.vault.clock.now() + 60_000).toISOString();
    await tenant.token({ id: 'theirs', type: 'token', data: 'x' });
    await tenant.token({
      id: 'gone',
      type: 'token',
      data: 'x',
      containers: ['/mine/'],
      expires_at,
    });
    tenant.vault.clock.advance(61_000);
    const ask = async (id: string) =>
      tenant.send('POST', '/detokenize', { key, body: [...padding, `{{ ${id} }}`] });
    assert.equal((await ask('theirs')).status, 403);
    const [gone, missing] = [await ask('gone'), await ask('none')];
    assert.deepEqual([gone.status, missing.status], [400, 400]);
    assert.equal(gone.text.replaceAll('gone', 'none'), missing.text);
    assert.equal((await ask('pad-0')).status, 400);
    assert.match((await ask('pad-0')).body.errors.body[0], new RegExp(String(referencedBytesMax)));
  });

  test('400: what is masked or redacted is refused by its magnitude, and not by its length', async () => {
    const tenant = await tenants();
    const ruleOf = (container: string, transform: string, priority: number) => ({
      priority,
      container,
      permissions: ['token:create', 'token:read'],
      transform,
    });
    const rules = [
      ruleOf('/mine/', 'reveal', 1),
      ruleOf('/masked/', 'mask', 2),
      ruleOf('/none/', 'redact', 3),
    ];
    const key = await tenant.application({ permissions: [], rules });
    const sealing = 47;
    const make = async (id: string, container: string, stored: number) => {
      const data = 'x'.repeat(stored - sealing);
      await tenant.token({ id, type: 'token', data, containers: [container] });
    };
    const parts = [900_000, 900_000, 900_000, 900_000, referencedBytesMax - 3_600_000 - 1024];
    for (const [at, stored] of parts.entries()) await make(`own-${at}`, '/mine/', stored);
    await make('own-byte', '/mine/', 48);
    const own = parts.map((_, at) => `{{ own-${at} | last4 }}`);
    for (const container of ['/masked/', '/none/']) {
      for (const stored of [513, 700, 1024]) {
        const id = `${container.slice(1, -1)}-${stored}`;
        await make(id, container, stored);
        const fits = await tenant.send('POST', '/detokenize', {
          key,
          body: [...own, `{{ ${id} }}`],
        });
        assert.equal(fits.status, 200, fits.text);
        const body = [...own, `{{ ${id} }}`, '{{ own-byte }}'];
        assert.equal((await tenant.send('POST', '/detokenize', { key, body })).status, 400);
      }
    }
  });

  test('400: what a response writes is bounded, however often it names a large token', async () => {
    const tenant = await tenants();
    await tenant.token({ id: 'large', type: 'token', data: 'x'.repeat(900_000) });
    const times = (count: number) => new Array<string>(count).fill('{{ large }}');
    const few = await tenant.send('POST', '/detokenize', { body: times(4) });
    assert.equal(few.status, 200, few.text.slice(0, 200));
    assert.equal((await tenant.send('POST', '/detokenize', { body: times(5) })).status, 400);
  });
});
