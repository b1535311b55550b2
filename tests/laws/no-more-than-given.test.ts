/** No key opens more than it was given: what was done against a running vault, and is refused now. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { bulk } from '../support/lines.ts';
import { type Given, type TestTenant, tenantsOf } from '../support/tenant.ts';
import { mastercard, visa } from '../support/values.ts';
import type { Received } from '../support/vault.ts';

const pci = '/pci/high/';
const card = { type: 'card', data: visa };

/** What a browser's key holds in the template "Collect PCI Data", and the right to update. */
const collecting = {
  type: 'public',
  rules: [
    {
      priority: 1,
      container: pci,
      permissions: ['token:create', 'token:update'],
      transform: 'reveal',
    },
  ],
};

const contents = [
  'data',
  'mask',
  'metadata',
  'fingerprint_expression',
  'search_indexes',
  'fingerprint',
  'card',
];

type Transform = 'redact' | 'mask' | 'reveal';
type Grant = readonly [container: string, permissions: readonly string[], transform: Transform];

/** One rule for each grant, in their order. */
function rulesOf(...given: readonly Grant[]) {
  return given.map(([container, permissions, transform], index) => ({
    priority: index + 1,
    container,
    permissions,
    transform,
  }));
}

function assertRefused(answer: Received, ...names: readonly string[]): void {
  assert.equal(answer.status, 403, answer.text);
  assert.equal(answer.headers.get('content-type')?.split(';')[0], 'application/problem+json');
  for (const name of names) assert.match(JSON.stringify(answer.body), new RegExp(`\\b${name}\\b`));
}

/** Neither a response nor a row says a card number or a code. */
async function assertSecret(tenant: TestTenant, ...answers: readonly Received[]): Promise<void> {
  for (const { text } of answers) assert.doesNotMatch(text, /42424242|XXXX4242|"last4"|"123"/);
  const [tokens, logs] = [await tenant.rows('tokens'), await tenant.rows('logs')];
  assert.doesNotMatch(JSON.stringify([tokens, logs].flat().map(textsOf)), /42424242/);
}

const textsOf = (row: object) => Object.values(row).filter((value) => typeof value === 'string');

/** The entries of attempts that did not succeed, by the id of the token. */
async function attempts(tenant: TestTenant, id: string) {
  const entries = await tenant.rows('logs');
  return entries.filter(({ entity_id, result }) => entity_id === id && result !== 'success');
}

interface Denied {
  readonly id: string;
  readonly key: string;
  readonly patch: Given;
  readonly names: readonly string[];
}

onBothEngines('An update', (engine) => {
  const tenants = tenantsOf(engine);

  /** 403 that names what it has to, nothing of the token changed, and the log says who tried. */
  async function assertDenied(
    tenant: TestTenant,
    { id, key, patch, names }: Denied,
  ): Promise<void> {
    const before = await tenant.rows('tokens');
    const answer = await tenant.send('PATCH', `/tokens/${id}`, { key, body: patch });
    assertRefused(answer, ...names);
    assert.deepEqual(await tenant.rows('tokens'), before);
    assert.deepEqual(
      (await attempts(tenant, id)).map(({ operation, result }) => [operation, result]),
      [['update', 'denied']],
    );
    await assertSecret(tenant, answer);
  }

  const revealing: Readonly<Record<string, Given>> = {
    mask: { mask: { number: '{{ data.number }}', cvc: '{{ data.cvc }}' } },
    fingerprint_expression: { fingerprint_expression: '{{ data.number | slice: 3, 1 }}' },
    search_indexes: { search_indexes: ['{{ data.number | slice: 3, 1 }}'] },
  };
  const readers = { 'a public key': undefined, 'a key that reads redacted': 'redact' } as const;

  for (const [attribute, patch] of Object.entries(revealing)) {
    for (const [who, transform] of Object.entries(readers)) {
      test(`403: of ${attribute} by ${who}, also beside a part of the data`, async () => {
        for (const more of [{}, { data: { expiration_year: 2031 } }]) {
          const tenant = await tenants();
          const { body } = await tenant.token(card);
          const reading = rulesOf([pci, ['token:read', 'token:update'], transform ?? 'redact']);
          const key = await tenant.application(transform ? { rules: reading } : collecting);
          const names = [attribute, 'token:read'];
          await assertDenied(tenant, { id: body.id, key, patch: { ...patch, ...more }, names });
        }
      });
    }

    test(`200: of ${attribute} by a key that may reveal, or that brings the whole value`, async () => {
      const tenant = await tenants();
      const { body } = await tenant.token(card);
      const revealed = await tenant.send('PATCH', `/tokens/${body.id}`, { body: patch });
      assert.equal(revealed.status, 200, revealed.text);
      const plain = await tenant.token({ type: 'token', data: 'old', containers: [pci] });
      const key = await tenant.application(collecting);
      const brought = JSON.parse(JSON.stringify(patch).replaceAll(/data\.\w+/g, 'data'));
      const own = { ...brought, data: 'mine alone' };
      const answer = await tenant.send('PATCH', `/tokens/${plain.body.id}`, { key, body: own });
      assert.equal(answer.status, 200, answer.text);
    });
  }

  test('403: that takes away the mask which shows less than that of the type', async () => {
    const tenant = await tenants();
    const { body } = await tenant.token({ ...card, mask: 'hidden' });
    const rules = rulesOf([pci, ['token:read', 'token:update'], 'mask']);
    const key = await tenant.application({ rules });
    const names = ['mask', 'token:read'];
    await assertDenied(tenant, { id: body.id, key, patch: { mask: null }, names });
  });

  test('200: of data, metadata and expiry by a public key, which is shown no contents', async () => {
    const tenant = await tenants();
    const { body } = await tenant.token({ ...card, metadata: { owner: 'somebody' } });
    const key = await tenant.application(collecting);
    const patches = [
      { metadata: { mine: 'too' } },
      { expires_at: new Date(Date.now() + 86_400_000).toISOString() },
      { data: { expiration_year: 2031 } },
      {},
    ];
    for (const patch of patches) {
      const answer = await tenant.send('PATCH', `/tokens/${body.id}`, { key, body: patch });
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.body.id, body.id);
      assert.deepEqual(
        contents.filter((name) => name in answer.body),
        [],
      );
      await assertSecret(tenant, answer);
    }
  });

  test('403: that moves a token to where the caller sees more of it, from nothing or from little', async () => {
    const levels = [undefined, 'redact', 'mask', 'reveal'] as const;
    for (const [at, source] of levels.entries()) {
      for (const [to, destination] of levels.entries()) {
        const tenant = await tenants();
        const { body } = await tenant.token({ ...card, containers: ['/from/'] });
        const read = (container: string, transform: Transform | undefined) =>
          transform ? rulesOf([container, ['token:read'], transform]) : [];
        const rules = [
          ...rulesOf(['/', ['token:update'], 'reveal']),
          ...read('/from/', source),
          ...read('/to/', destination),
        ].map((rule, index) => ({ ...rule, priority: index + 1 }));
        const key = await tenant.application({ rules });
        const patch = { containers: ['/to/'] };
        if (to > at) {
          const names = ['containers', 'token:read'];
          await assertDenied(tenant, { id: body.id, key, patch, names });
          continue;
        }
        const answer = await tenant.send('PATCH', `/tokens/${body.id}`, { key, body: patch });
        assert.equal(answer.status, 200, answer.text);
        const read2 = await tenant.send('GET', `/tokens/${body.id}`, { key });
        if (destination) assert.deepEqual(answer.body, read2.body);
      }
    }
  });
});

onBothEngines('A conversion', (engine) => {
  const tenants = tenantsOf(engine);

  const revealing: Readonly<Record<string, Given>> = {
    id: { id: 'x-{{ data.number }}' },
    mask: { mask: '{{ data.number }}' },
    fingerprint_expression: { fingerprint_expression: '{{ data.number | slice: 3, 1 }}' },
    search_indexes: { search_indexes: ['{{ data.number | slice: 3, 1 }}'] },
  };

  const ways: Readonly<Record<string, (request: Given) => [string, unknown, string]>> = {
    'POST /tokens': (request) => ['/tokens', request, 'application/json'],
    'POST /tokenize': (request) => ['/tokenize', { a: [request] }, 'application/json'],
    'POST /tokens/bulk': (request) => [
      '/tokens/bulk',
      `${JSON.stringify(request)}\n`,
      'application/x-ndjson',
    ],
  };

  async function intentOf(tenant: TestTenant): Promise<string> {
    const key = await tenant.application({ permissions: ['token-intent:create'] });
    return (await tenant.send('POST', '/token-intents', { key, body: card })).body.id;
  }

  for (const [attribute, more] of Object.entries(revealing)) {
    test(`403: with an expression of the caller's own as ${attribute}, unless it may reveal there`, async () => {
      for (const [path, way] of Object.entries(ways)) {
        const tenant = await tenants();
        const token_intent_id = await intentOf(tenant);
        const redacting = rulesOf([pci, ['token:create'], 'redact']);
        const key = await tenant.application({ type: 'public', rules: redacting });
        const [target, body, type] = way({ token_intent_id, ...more });
        const sent = { key, body, headers: { 'content-type': type } };
        const answer = await tenant.send('POST', target, sent);
        const problem = answer.text.includes('"problem"')
          ? { ...answer, ...JSON.parse(answer.text).problem }
          : answer.body;
        assert.equal(problem.status, 403, `${path}: ${answer.text}`);
        assert.match(JSON.stringify(problem), new RegExp(`\\b${attribute}\\b`));
        assert.match(JSON.stringify(problem), /token:read/);
        assert.deepEqual(await tenant.rows('tokens'), []);
        assert.equal((await tenant.rows('token_intents')).length, 1);
        await assertSecret(tenant, answer);
      }
      const tenant = await tenants();
      const body = { token_intent_id: await intentOf(tenant), ...more };
      assert.equal((await tenant.send('POST', '/tokens', { body })).status, 201);
    });
  }

  test('201: shows nothing of the value to a key that may create in plaintext, and not read', async () => {
    const tenant = await tenants();
    const key = await tenant.application({ ...collecting });
    const body = { token_intent_id: await intentOf(tenant), id: randomUUID() };
    const answer = await tenant.send('POST', '/tokens', { key, body });
    assert.equal(answer.status, 201, answer.text);
    assert.deepEqual([answer.body.data, answer.body.card], [undefined, undefined]);
    await assertSecret(tenant, answer);
  });
});

onBothEngines('A taken id', (engine) => {
  const tenants = tenantsOf(engine);

  for (const transform of [undefined, 'redact', 'mask'] as const) {
    test(`409: of a bulk line, whatever its value, to a key that reads: ${transform}`, async () => {
      const tenant = await tenants();
      const reading = transform ? rulesOf([pci, ['token:read'], transform]) : [];
      const creating = { ...rulesOf([pci, ['token:create'], 'reveal'])[0], priority: 2 };
      const key = await tenant.application({ rules: [...reading, creating] });
      const right = { ...card, id: 'taken' };
      const [made] = await bulk(tenant, [right], key);
      assert.equal(made.status, 201);
      const answered = await bulk(tenant, [right, { ...right, data: mastercard }, right], key);
      assert.deepEqual(
        answered.map(({ status }) => status),
        [409, 409, 409],
      );
      const [first, ...others] = answered.map(({ problem }) => JSON.stringify(problem));
      for (const other of others) assert.equal(other, first);
    });
  }

  test('200: of a bulk line that repeats the value, to a key that may reveal it', async () => {
    const tenant = await tenants();
    const line = { ...card, id: 'taken' };
    await bulk(tenant, [line]);
    const answered = await bulk(tenant, [line, { ...line, data: mastercard }]);
    assert.deepEqual(
      answered.map(({ status }) => status),
      [200, 409],
    );
  });

  test('every guess is in the log with its id, once for each request', async () => {
    const tenant = await tenants();
    const key = await tenant.application(collecting);
    const guesses = Array.from({ length: 5 }, () => ({ ...card, data: mastercard }));
    for (const id of ['one', 'two']) await tenant.token({ ...card, id });
    const lines = guesses.flatMap((guess) => ['one', 'two'].map((id) => ({ ...guess, id })));
    for (const request of [1, 2]) {
      await bulk(tenant, lines, key);
      for (const id of ['one', 'two']) {
        assert.equal((await attempts(tenant, id)).length, request, `${id} in request ${request}`);
      }
    }
  });

  test('409: also of a container in which the caller may do nothing, and the log names it', async () => {
    const tenant = await tenants();
    const body = { id: 'elsewhere', type: 'token', data: 'x' };
    await tenant.token({ ...body, containers: ['/pii/'] });
    const rules = rulesOf(['/pci/', ['token:create'], 'mask']);
    const key = await tenant.application({ type: 'public', rules });
    const here = { ...body, containers: ['/pci/'] };
    const answer = await tenant.send('POST', '/tokens', { key, body: here });
    assert.equal(answer.status, 409);
    assert.equal((await attempts(tenant, 'elsewhere')).length, 1);
    // Within a second the next one would only be counted.
    tenant.vault.clock.advance(1_000);
    const tokenized = await tenant.send('POST', '/tokenize', { key, body: { a: here } });
    assert.equal(tokenized.status, 409);
    assert.equal((await attempts(tenant, 'elsewhere')).length, 2);
    const refused = await tenant.send('POST', '/tokens', {
      key,
      body: { ...body, containers: ['/pii/'] },
    });
    assert.equal(refused.status, 403, 'access is decided before the id is looked for');
  });
});

onBothEngines('A value that another container holds already', (engine) => {
  const tenants = tenantsOf(engine);
  const value = { type: 'token', data: 'one value', deduplicate_token: true };
  const hidden = { ...value, containers: ['/pii/'], metadata: { owner: 'somebody' } };
  const creating: Grant = ['/pci/', ['token:create'], 'reveal'];

  test('201: answers id, type and fingerprint alone to a key that may do nothing there', async () => {
    const tenant = await tenants();
    const { body } = await tenant.token(hidden);
    const key = await tenant.application({ rules: rulesOf(creating) });
    const here = { ...value, containers: ['/pci/'] };
    const answer = await tenant.send('POST', '/tokens', { key, body: here });
    const { id, type, fingerprint } = body;
    const _extras = { deduplicated: true, deduplication_behavior: 'read_existing' };
    assert.deepEqual(answer.body, { id, type, fingerprint, _extras });
  });

  test('201: with update_existing it stays as it is unless the key may write and reveals there', async () => {
    const tenant = await tenants();
    await tenant.set({ token_deduplication_behavior: 'update_existing' });
    await tenant.token(hidden);
    const own = { ...value, containers: ['/pci/'], metadata: { owner: 'me' } };
    for (const [permissions, transform] of [
      [['token:create'], 'reveal'],
      [['token:update'], 'reveal'],
      [['token:read', 'token:delete'], 'reveal'],
      [['token:create', 'token:update', 'token:read'], 'mask'],
      [['token:create', 'token:read'], 'reveal'],
      [['token:update', 'token:read'], 'reveal'],
    ] as const) {
      const before = await tenant.rows('tokens');
      const rules = rulesOf(creating, ['/pii/', permissions, transform]);
      const key = await tenant.application({ rules });
      const answer = await tenant.send('POST', '/tokens', { key, body: own });
      assert.equal(answer.status, 201, answer.text);
      const [first] = permissions;
      const reveals = permissions.some((one) => one === 'token:read') && transform === 'reveal';
      assert.equal('data' in answer.body, reveals);
      const stays = first === 'token:read' || !reveals;
      if (stays) assert.deepEqual(await tenant.rows('tokens'), before, permissions.join());
      else assert.notDeepEqual(await tenant.rows('tokens'), before);
    }
  });
});

onBothEngines('A card that somebody has already, in a container of their own', (engine) => {
  const tenants = tenantsOf(engine);

  test('201: takes nothing of one that a key creates elsewhere, which does not reveal it there', async () => {
    const tenant = await tenants();
    await tenant.set({
      deduplicate_tokens: 'true',
      token_deduplication_behavior: 'update_existing',
    });
    const permissions = ['token:create', 'token:read'] as const;
    const planting = await tenant.application({
      rules: rulesOf(['/mine/', permissions, 'reveal']),
    });
    const { number } = visa;
    const planted = { id: 'planted', type: 'card', containers: ['/mine/'], data: { number } };
    const made = await tenant.send('POST', '/tokens', { key: planting, body: planted });
    assert.equal(made.status, 201, made.text);
    const page = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const whole = {
      type: 'card',
      containers: ['/pci/high/'],
      data: { ...visa, cvc: '987' },
      metadata: { customer: 'a' },
    };
    const created = await tenant.send('POST', '/tokens', { key: page, body: whole });
    assert.equal(created.body._extras.deduplication_behavior, 'read_existing', created.text);
    const { body } = await tenant.send('GET', '/tokens/planted', { key: planting });
    assert.deepEqual(body.data, { number });
    assert.equal(body.metadata, undefined);
  });
});

onBothEngines('A card code', (engine) => {
  const tenants = tenantsOf(engine);
  const coded = (cvc: string, more: Given) => ({ type: 'card', data: { ...visa, cvc }, ...more });

  test('is in no id, also where the expression of the id asks for it', async () => {
    const tenant = await tenants();
    const body = coded('987', { id: 'x-{{ data.expiration_year }}-{{ data.cvc }}-x' });
    const answer = await tenant.send('POST', '/tokens', { body });
    assert.ok([201, 400].includes(answer.status), answer.text);
    assert.ok(!JSON.stringify(answer.body.id ?? '').includes('987'));
    assert.ok((await tenant.rows('tokens')).every(({ token_id }) => !token_id.includes('987')));
  });

  test('is in no fingerprint: two codes give one fingerprint, created or updated', async () => {
    const tenant = await tenants();
    const expression = '{{ data.number }}-{{ data.cvc }}';
    const fingerprints = new Set<string>();
    for (const cvc of ['987', '986']) {
      const body = coded(cvc, { fingerprint_expression: expression });
      const answer = await tenant.send('POST', '/tokens', { body });
      fingerprints.add(String(answer.body.fingerprint));
      const plain = await tenant.token(coded(cvc, {}));
      const patch = { body: { fingerprint_expression: expression } };
      const patched = await tenant.send('PATCH', `/tokens/${plain.body.id}`, patch);
      fingerprints.add(String(patched.body.fingerprint));
    }
    assert.equal(fingerprints.size, 1);
  });

  test('is under no search term: two codes give the same terms, created or updated', async () => {
    const tenant = await tenants();
    const search_indexes = ['{{ data.number }}-{{ data.cvc }}'];
    for (const cvc of ['987', '986']) {
      await tenant.send('POST', '/tokens', { body: coded(cvc, { search_indexes }) });
      const plain = await tenant.token(coded(cvc, {}));
      const patch = { body: { search_indexes } };
      await tenant.send('PATCH', `/tokens/${plain.body.id}`, patch);
    }
    const terms = (await tenant.rows('search_terms')).map(({ term }) => term);
    assert.ok(new Set(terms).size <= 1, 'a term for each code');
    for (const query of ['data:987', `data:"${visa.number}-987"`]) {
      const found = await tenant.send('POST', '/tokens/search', { body: { query } });
      assert.deepEqual(found.body.data, []);
    }
  });
});
