/** JSON merge patch (RFC 7386) of data, mask and metadata, also by many at once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { newTenant, tenantsOf } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

/** RFC 7386, appendix A: original, patch, result. */
const published: readonly (readonly [original: string, patch: string, result: string])[] = [
  ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
  ['{"a":"b"}', '{"a":null}', '{}'],
  ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
  ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
  ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
  ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
  ['["a","b"]', '["c","d"]', '["c","d"]'],
  ['{"a":"b"}', '["c"]', '["c"]'],
  ['{"a":"foo"}', 'null', 'null'],
  ['{"a":"foo"}', '"bar"', '"bar"'],
  ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
  ['[1,2]', '{"a":"b","c":null}', '{"a":"b"}'],
  ['{}', '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
];

const isTextMap = (text: string) => /^\{("\w":"\w+"(,"\w":"\w+")*)?\}$/.test(text);

onBothEngines('Merge patch', (engine) => {
  const tenants = tenantsOf(engine);

  for (const [original, patch, result] of published) {
    test(`RFC 7386 on data and mask: ${original} with ${patch}`, async () => {
      const tenant = await tenants();
      const body = `{"id":"own","type":"token","data":${original},"mask":${original}}`;
      assert.equal((await tenant.send('POST', '/tokens', { body })).status, 201);
      const patched = await tenant.send('PATCH', '/tokens/own', { body: `{"mask":${patch}}` });
      assert.equal(JSON.stringify(patched.body.mask ?? null), result);
      const changed = await tenant.send('PATCH', '/tokens/own', { body: `{"data":${patch}}` });
      // A token without data is none: it is deleted, not patched away.
      if (result === 'null') assert.equal(changed.status, 400);
      else assert.equal(JSON.stringify(changed.body.data), result);
      const read = await tenant.send('GET', '/tokens/own');
      assert.equal(JSON.stringify(read.body.data), result === 'null' ? original : result);
    });
  }

  test('RFC 7386 on metadata, for those of its cases that are maps of texts', async () => {
    const tenant = await tenants();
    const cases = published.filter(
      ([original, patch]) => isTextMap(original) && isTextMap(patch.replaceAll('null', '"n"')),
    );
    assert.equal(cases.length, 4);
    for (const [original, patch, result] of cases) {
      const body = `{"type":"token","data":1,"metadata":${original}}`;
      const { id } = (await tenant.send('POST', '/tokens', { body })).body;
      const sent = { body: `{"metadata":${patch}}` };
      const patched = await tenant.send('PATCH', `/tokens/${id}`, sent);
      assert.equal(JSON.stringify(patched.body.metadata), result);
      const cleared = await tenant.send('PATCH', `/tokens/${id}`, { body: { metadata: null } });
      assert.equal('metadata' in cleared.body, false);
    }
  });

  test('a name such as __proto__ is a member like any other', async () => {
    const tenant = await tenants();
    await tenant.token({ id: 'own', type: 'token', data: { a: 1 } });
    const body = '{"data":{"__proto__":{"x":1},"constructor":2}}';
    const patched = await tenant.send('PATCH', '/tokens/own', { body });
    assert.ok(patched.text.includes('"data":{"a":1,"__proto__":{"x":1},"constructor":2}'));
    const removal = '{"data":{"__proto__":{"x":null},"constructor":null}}';
    const removed = await tenant.send('PATCH', '/tokens/own', { body: removal });
    assert.ok(removed.text.includes('"data":{"a":1,"__proto__":{}}'), removed.text);
  });

  test('50 patches of different keys at once lose nothing, and each has its entry', async () => {
    const tenant = await tenants();
    await tenant.token({ id: 'own', type: 'token', data: {} });
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        tenant.send('PATCH', '/tokens/own', { body: { data: { [`k${index}`]: index } } }),
      ),
    );
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    const { data } = (await tenant.send('GET', '/tokens/own')).body;
    const expected = Object.fromEntries(answers.map((_, index) => [`k${index}`, index]));
    assert.deepEqual(data, expected);
    const updates = (await tenant.logged()).filter((one) => one === 'update');
    assert.equal(updates.length, 50);
  });

  test('50 patches at once over two servers lose nothing', async (t) => {
    const vault = await startVault(t, engine);
    const second = await startVault(t, engine, { place: vault.place, clock: vault.clock });
    const tenant = await newTenant(vault);
    await tenant.token({ id: 'own', type: 'token', data: {}, metadata: {} });
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        (index % 2 === 0 ? vault : second).send('PATCH', '/tokens/own', {
          key: tenant.key,
          body: { data: { [`k${index}`]: index } },
        }),
      ),
    );
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    const { data } = (await tenant.send('GET', '/tokens/own')).body;
    assert.equal(Object.keys(data).length, 50);
  });
});
