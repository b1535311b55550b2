/** POST /detokenize. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hour } from '../../src/base/clock.ts';
import { onBothEngines } from '../support/engines.ts';
import { bulk } from '../support/lines.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';

const card = { number: '4242424242424242', expiration_month: 12, expiration_year: 2030 };

async function cardAndNote(tenant: TestTenant): Promise<void> {
  await tenant.token({ id: 'a card', type: 'card', data: card, metadata: { name: 'Ada' } });
  await tenant.token({ id: 'note@x:1', type: 'token', data: { text: 'hello', list: [1, 2] } });
}

onBothEngines('POST /detokenize', (engine) => {
  const tenants = tenantsOf(engine, { environment: { STRONGROOM_HEADER_PREFIXES: 'SVC,BT' } });

  test('200: values by name, in any nesting, with filters and JSONPath, in their own types', async () => {
    const tenant = await tenants();
    await cardAndNote(tenant);
    const body = {
      number: "{{ a card | json: '$.number' }}",
      year: '{{token: a card | json: "$.data.expiration_year" }}',
      owner: "{{ token:a card | json: '$.metadata.name' }}",
      text: "Dear {{ token: a card | json: '$.metadata.name' }}, {{ note@x:1 | json: '$.text' }}!",
      nested: [{ list: '{{ note@x:1 | json: "$.list" }}', missing: "{{ a card | json: '$.x' }}" }],
      whole: '{{ note@x:1 }}',
      last: "{{ a card | json: '$.number' | last4 }}",
      plain: 'no expression',
      number_stays: 5,
      '{{ a card }}': null,
    };
    const answer = await tenant.send('POST', '/detokenize', { body });
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(answer.body, {
      number: card.number,
      year: 2030,
      owner: 'Ada',
      text: 'Dear Ada, hello!',
      nested: [{ list: [1, 2], missing: null }],
      whole: { text: 'hello', list: [1, 2] },
      last: '4242',
      plain: 'no expression',
      number_stays: 5,
      '{{ a card }}': null,
    });
  });

  test('200: a list of ids gives tokens; under another header prefix, their data', async () => {
    const tenant = await tenants();
    await cardAndNote(tenant);
    const body = {
      tokens: ['{{ a card }}', '{{ note@x:1 | json: "$.text" }}', '{{token: a card}}', 7],
    };
    const own = await tenant.send('POST', '/detokenize', { body });
    const [first, second, third, fourth] = own.body.tokens;
    assert.deepEqual([first.id, first.type, first.data], ['a card', 'card', card]);
    assert.deepEqual([second, third.data, fourth], ['hello', card, 7]);
    const { _extras, ...read } = (await tenant.send('GET', '/tokens/a%20card')).body;
    assert.deepEqual(first, read);
    const headers = { 'BT-API-KEY': tenant.key };
    const theirs = await tenant.vault.send('POST', '/detokenize', { headers, body });
    assert.deepEqual(theirs.body.tokens[0], card);
    assert.deepEqual(theirs.body.tokens[2].data, card);
    const more = { tokens: ['{{ a card }}'], other: 1 };
    assert.deepEqual((await tenant.send('POST', '/detokenize', { body: more })).body.tokens, [
      card,
    ]);
  });

  test('200: any JSON at the root; without expressions it comes back as it went', async () => {
    const tenant = await tenants();
    await cardAndNote(tenant);
    const text = '"{{ note@x:1 | json: \'$.text\' }}"';
    assert.equal((await tenant.send('POST', '/detokenize', { body: text })).text, '"hello"');
    for (const body of ['{}', '[]', '"plain"', '12', 'null', '{"a":{"b":[true]}}']) {
      assert.equal((await tenant.send('POST', '/detokenize', { body })).text, body);
    }
  });

  test('an intent is one, however its id is spelled, until it expires', async () => {
    const tenant = await tenants();
    const permissions = ['token-intent:create', 'token-intent:read'];
    const rule = { priority: 1, container: '/', permissions: ['token:read'], transform: 'reveal' };
    const key = await tenant.application({ permissions, rules: [rule] });
    const made = await tenant.send('POST', '/token-intents', {
      key,
      body: { type: 'card', data: card },
    });
    const spellings = [made.body.id, made.body.id.toUpperCase()];
    const body = spellings.map((id) => `{{ token_intent: ${id} | json: "$.data.number" }}`);
    const answer = await tenant.send('POST', '/detokenize', { key, body });
    assert.deepEqual(answer.body, [card.number, card.number]);
    assert.deepEqual(await tenant.logged('token_intent'), ['create', 'read']);
    tenant.vault.clock.advance(25 * hour);
    const expired = await tenant.send('POST', '/detokenize', { key, body });
    assert.equal(expired.status, 400);
    assert.match(expired.body.detail, /were not found/);
  });

  test('200 and 400: many tokens and intents at once, small, large and unknown ones', async () => {
    const tenant = await tenants();
    const key = await tenant.application({
      permissions: ['token:create', 'token-intent:create', 'token-intent:read'],
      rules: [
        {
          priority: 1,
          container: '/',
          permissions: ['token:create', 'token:read'],
          transform: 'reveal',
        },
      ],
    });
    // More than one query asks for, and every ninth too large to be read with the others.
    const lengths = Array.from({ length: 620 }, (_, at) => (at % 9 === 0 ? 9_000 : 10));
    const dataOf = (at: number) => `${at}`.padEnd(lengths[at] ?? 0, 'x');
    const lines = lengths.map((_, at) => ({ id: `many-${at}`, type: 'token', data: dataOf(at) }));
    const imported = await bulk(tenant, lines, key);
    assert.deepEqual(new Set(imported.map(({ status }) => status)), new Set([201]));
    const intent = { type: 'card', data: card };
    const made = await tenant.send('POST', '/token-intents', { key, body: intent });
    const body = {
      values: lengths.map((_, at) => `{{ many-${at} }}`),
      again: '{{ token: many-9 | json: "$.id" }}',
      intent: `{{ token_intent: ${made.body.id.toUpperCase()} | json: '$.data.number' }}`,
    };
    const answer = await tenant.send('POST', '/detokenize', { key, body });
    assert.deepEqual(answer.body, {
      values: lengths.map((_, at) => dataOf(at)),
      again: 'many-9',
      intent: card.number,
    });
    const stranger = await tenants();
    await stranger.token({ id: 'another', type: 'token', data: 'x' });
    const unknown = { body: { ...body, more: ['{{ another }}', '{{ none at all }}'] }, key };
    const refused = await tenant.send('POST', '/detokenize', unknown);
    assert.equal(refused.status, 400);
    assert.match(refused.body.detail, /: another, none at all\./);
  });

  test('200: data as the rule of each container shows it; what is redacted is null', async () => {
    const tenant = await tenants();
    await cardAndNote(tenant);
    const rule = (container: string, transform: string, priority: number) => ({
      priority,
      container,
      permissions: ['token:read'],
      transform,
    });
    const key = await tenant.application({
      rules: [rule('/pci/', 'mask', 1), rule('/general/', 'redact', 2)],
    });
    const body = {
      card: '{{ a card }}',
      note: '{{ note@x:1 }}',
      text: "<{{ note@x:1 | json: '$.text' }}>",
      type: "{{ token: note@x:1 | json: '$.type' }}",
    };
    const answer = await tenant.send('POST', '/detokenize', { key, body });
    assert.deepEqual(answer.body, {
      card: { number: 'XXXXXXXXXXXX4242', expiration_month: 12, expiration_year: 2030 },
      note: null,
      text: '<>',
      type: 'token',
    });
  });

  test('200: one log entry for each token, however often it is named', async () => {
    const tenant = await tenants();
    await cardAndNote(tenant);
    const body = [
      '{{ a card }}',
      '{{ token: a card }}',
      '{{ a card | json: "$.number" }}',
      '{{ note@x:1 }}',
    ];
    await tenant.send('POST', '/detokenize', { body });
    const read = (await tenant.rows('logs')).filter(({ operation }) => operation === 'read');
    assert.deepEqual(read.map(({ entity_id }) => entity_id).sort(), ['a card', 'note@x:1']);
    assert.deepEqual(await tenant.logged(), ['create', 'create', 'read', 'read']);
  });

  test('200: as many expressions as the Detokenize Limit; 400 with one more, naming the limit', async () => {
    const tenant = await tenants();
    await cardAndNote(tenant);
    const body = Array.from({ length: 1000 }, () => '{{ note@x:1 | json: "$.text" }}');
    const most = await tenant.send('POST', '/detokenize', { body });
    assert.deepEqual(new Set(most.body), new Set(['hello']));
    const over = await tenant.send('POST', '/detokenize', { body: [...body, '{{ a card }}'] });
    assert.equal(over.status, 400);
    assert.match(over.body.errors.body[0], /more than 1000 expressions.* 1000$/);
  });

  test('400: beyond the Detokenize Limit nothing is compiled any more', async () => {
    const tenant = await tenants();
    const body = ['{{ a }}', '{{ b }}', '{{ c }}', '{{ d | nope }}'];
    const flawed = await tenant.send('POST', '/detokenize', { body });
    assert.deepEqual(Object.keys(flawed.body.errors), ['[3]']);
    await tenant.setQuotas({ detokenize_limit: 2 });
    const over = await tenant.send('POST', '/detokenize', { body });
    assert.equal(over.status, 400);
    assert.match(over.body.errors.body[0], /more than 2 expressions/);
    assert.deepEqual(Object.keys(over.body.errors), ['body']);
  });

  test('400: a body without a byte, which is no JSON', async () => {
    const tenant = await tenants();
    const answer = await tenant.send('POST', '/detokenize', { body: '' });
    assert.deepEqual([answer.status, Object.keys(answer.body.errors)], [400, ['body']]);
    assert.deepEqual(await tenant.logged(), []);
  });

  test('400: unknown, expired, deleted and foreign tokens are listed, and nothing is shown', async () => {
    const tenant = await tenants();
    await cardAndNote(tenant);
    const foreign = (await (await tenants()).token({ type: 'token', data: 1 })).body.id;
    const expires_at = new Date(tenant.vault.clock.now() + 60_000).toISOString();
    await tenant.token({ id: 'mortal', type: 'token', data: 1, expires_at });
    await tenant.token({ id: 'deleted', type: 'token', data: 1 });
    await tenant.send('DELETE', '/tokens/deleted');
    tenant.vault.clock.advance(61_000);
    const unknown = ['missing', 'mortal', 'deleted', foreign];
    const body = {
      good: '{{ a card }}',
      bad: unknown.map((id) => `{{ ${id} }}`),
      again: '{{ missing }}',
    };
    const before = await tenant.counts();
    const answer = await tenant.send('POST', '/detokenize', { body });
    assert.equal(answer.status, 400);
    const listed = /tokens: (.*)\. They/.exec(answer.body.detail)?.[1]?.split(', ');
    assert.deepEqual(listed?.sort(), unknown.toSorted());
    assert.deepEqual(answer.body.errors, { body: ['must refer to tokens that exist'] });
    assert.deepEqual(await tenant.counts(), { ...before, logs: (before['logs'] ?? 0) + 1 });
    const read = (await tenant.rows('logs')).filter(({ operation }) => operation === 'read');
    assert.deepEqual(
      read.map(({ entity_id, result }) => [entity_id, result]),
      [['*', 'failed']],
    );
    assert.ok(
      tenant.vault.logged.every(({ fields }) => !JSON.stringify(fields ?? {}).includes('mortal')),
    );
  });

  test('400: an expression that fails says where and why, never on what; the read is logged', async () => {
    const tenant = await tenants();
    await cardAndNote(tenant);
    const wrong: [unknown, string][] = [
      [{ a: { b: ['{{ note@x:1 | json: "$.text" | to_number }}'] } }, 'a.b[0]'],
      [['x {{ note@x:1 | json: "$.list[*]" }}'], '[0]'],
      ['{{ note@x:1 | to_string }}', 'body'],
    ];
    for (const [body, path] of wrong) {
      const before = (await tenant.logged()).length;
      const answer = await tenant.send('POST', '/detokenize', { body: JSON.stringify(body) });
      assert.equal(answer.status, 400, answer.text);
      assert.deepEqual(Object.keys(answer.body.errors), [path]);
      assert.ok(!answer.text.includes('hello'));
      assert.equal((await tenant.logged()).length, before + 1);
    }
    for (const body of [{ a: '{{ x' }, { a: '{{ }}' }, { a: '{{ a card | nope }}' }]) {
      const answer = await tenant.send('POST', '/detokenize', { body });
      assert.deepEqual([answer.status, Object.keys(answer.body.errors)], [400, ['a']]);
    }
    const deep = `${'['.repeat(65)}1${']'.repeat(65)}`;
    assert.equal((await tenant.send('POST', '/detokenize', { body: deep })).status, 400);
  });

  test('403: one token without token:read refuses all; each denial is logged, nothing is read', async () => {
    const tenant = await tenants();
    await cardAndNote(tenant);
    const key = await tenant.holder({ container: '/pci/' });
    const body = ['{{ a card }}', '{{ note@x:1 }}'];
    const answer = await tenant.send('POST', '/detokenize', { key, body });
    assert.equal(answer.status, 403);
    assert.deepEqual(await tenant.logged(), ['create', 'create', 'read denied']);
    const creator = await tenant.application({ permissions: ['token:create'] });
    assert.equal(
      (await tenant.send('POST', '/detokenize', { key: creator, body: {} })).status,
      403,
    );
    assert.equal((await tenant.vault.send('POST', '/detokenize', { body: {} })).status, 401);
  });
});
