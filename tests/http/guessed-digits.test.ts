/** No caller without a key of a server finds the digits that a mask hides, by whatever operation it tries them. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { equalDigitsMax } from '../../src/tokens/guesses/guesses.ts';
import { encrypted } from '../support/client-encryption.ts';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { bulk } from '../support/lines.ts';
import { signInPerson } from '../support/people.ts';
import { proxyOf, startCalled } from '../support/proxy-calls.ts';
import { createReactor } from '../support/reactors.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import { mastercard, visa } from '../support/values.ts';

const { destination, url, environment } = await startCalled({ after });
destination.behave(answer());

const { cvc: _visa, ...card } = visa;
const { cvc: _mastercard, ...otherCard } = mastercard;
const deduplicated = { type: 'card', data: card, deduplicate_token: true };

/** Tries that say nothing come after those that do. */
const triesMax = equalDigitsMax + 2;

/** A number that looks like the others when masked, and is none of them. */
const account = (n: number) => ({ type: 'us_bank_account_number', data: `${10_000 + n}6789` });

const firstThree = (n: number) => String(100 + n);

/** A routing number with its check digit (ABA). */
function routing(n: number): string {
  const digits = `0210${String(n).padStart(4, '0')}`;
  const sum = [...digits].reduce(
    (total, digit, at) => total + Number(digit) * ([3, 7, 1][at % 3] ?? 0),
    0,
  );
  return `${digits}${(10 - (sum % 10)) % 10}`;
}

type Seen = Readonly<Record<string, unknown>>;

async function repeated<T>(times: number, run: (n: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  for (let n = 0; n < times; n++) results.push(await run(n));
  return results;
}

/** Of equal values the first ones are one token with its fingerprint, the others are tokens that say nothing. */
function assertWithheld(tokens: readonly Seen[], free = equalDigitsMax): void {
  const told = tokens.slice(0, free);
  const silent = tokens.slice(free);
  assert.equal(new Set(told.map(({ id }) => id)).size, 1, 'equal values are deduplicated');
  assert.ok(silent.length > 0);
  for (const one of silent) {
    assert.equal(one['fingerprint'], undefined);
    assert.equal(one['fingerprint_expression'], undefined);
    assert.equal(one['_extras'], undefined);
  }
  const ids = new Set(silent.map(({ id }) => id));
  assert.equal(ids.size, silent.length, 'each is a token of its own');
  assert.ok(!ids.has(told[0]?.['id']));
}

onBothEngines('guessing digits that a mask hides', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  const publicKey = (tenant: TestTenant, ...more: readonly string[]) =>
    tenant.application({ type: 'public', permissions: ['token:create', ...more] });

  async function sessionWith(tenant: TestTenant, ...permissions: readonly string[]) {
    const body = { permissions: ['token:create', ...permissions] };
    const by = await tenant.application({
      permissions: [...body.permissions, 'token:read', 'token:search', 'reactor:invoke'],
    });
    const begun = await tenant.send('POST', '/sessions', { key: await publicKey(tenant) });
    const { nonce, session_key: key } = begun.body;
    const authorized = await tenant.send('POST', '/sessions/authorize', {
      key: by,
      body: { ...body, nonce },
    });
    assert.equal(authorized.status, 200, authorized.text);
    return key as string;
  }

  async function created(tenant: TestTenant, key: string, body: object): Promise<Seen> {
    const made = await tenant.send('POST', '/tokens', { key, body });
    assert.equal(made.status, 201, made.text);
    return made.body;
  }

  const alertsOf = async (tenant: TestTenant) =>
    (await tenant.rows('logs')).filter(({ operation }) => operation === 'guess').length;

  test('from the 21st create of equal visible digits on nothing says whether the value is known', async () => {
    const tenant = await newTenant();
    const key = await publicKey(tenant);
    assertWithheld(await repeated(triesMax, () => created(tenant, key, deduplicated)));
    assert.equal(await alertsOf(tenant), 1);
    const session = await sessionWith(tenant, 'token:read');
    const one = await created(tenant, session, deduplicated);
    assert.equal(one['fingerprint'], undefined, 'the tenant is counted, not the key');
    const other = { ...deduplicated, data: otherCard };
    const others = await repeated(equalDigitsMax, () => created(tenant, session, other));
    assert.equal(new Set(others.map(({ id }) => id)).size, 1, 'another card is not affected');
    assert.ok(others.every(({ fingerprint }) => typeof fingerprint === 'string'));
  });

  test('private keys are neither counted nor told less', async () => {
    const tenant = await newTenant();
    const created_ = await repeated(2 * triesMax, () => created(tenant, tenant.key, deduplicated));
    assert.equal(new Set(created_.map(({ id }) => id)).size, 1);
    const key = await publicKey(tenant);
    assertWithheld(await repeated(triesMax, () => created(tenant, key, deduplicated)));
    const own = await created(tenant, tenant.key, deduplicated);
    assert.equal(own['id'], created_[0]?.['id']);
    assert.equal(own['fingerprint'], created_[0]?.['fingerprint']);
  });

  test('a person in the console is counted until the request gives a reason to see values', async () => {
    const tenant = await newTenant();
    const role = (await tenant.send('GET', '/applications/key')).body.id;
    const applications = [role];
    const person = await signInPerson(tenant.vault.url, tenant.managementKey, { applications });
    const create = async (headers: Readonly<Record<string, string>>) => {
      const made = await person.send(role, 'POST', '/tokens', { body: deduplicated, headers });
      assert.equal(made.status, 201, made.text);
      return made.body as Seen;
    };
    assertWithheld(await repeated(triesMax, () => create({})));
    assert.equal(await alertsOf(tenant), 1);
    const search = { body: { query: `data:${card.number}` } };
    const found = await repeated(triesMax, () =>
      person.send(role, 'POST', '/tokens/search', search),
    );
    assert.deepEqual(
      found.slice(equalDigitsMax - 1, triesMax).map(({ status }) => status),
      [200, 429, 429],
    );
    const { fingerprint } = await create({ 'SVC-REASON': 'chargeback' });
    assert.equal(typeof fingerprint, 'string');
  });

  test('numbers that differ only where a mask hides them share a count', async () => {
    const tenant = await newTenant();
    const key = await sessionWith(tenant, 'token:read');
    const made = await repeated(triesMax, (n) => created(tenant, key, account(n)));
    const told = made.map(({ fingerprint }) => fingerprint !== undefined);
    assert.deepEqual(told, [...Array(equalDigitsMax).fill(true), false, false]);
    const text = (number: string, nonce: number) => ({
      type: 'token',
      data: { number, nonce },
      fingerprint_expression: '{{ data.number }}',
    });
    const digits = (n: number) => String(n).padStart(4, '0');
    const bins = await repeated(triesMax, (n) =>
      created(tenant, key, text(`4242${digits(n)}00004242`, n)),
    );
    assert.ok(
      bins.every(({ fingerprint }) => fingerprint !== undefined),
      'another BIN each',
    );
    const guessed = await repeated(triesMax, (n) =>
      created(tenant, key, text(`42424242${digits(n)}4242`, n)),
    );
    assert.notEqual(guessed[0]?.['fingerprint'], undefined);
    assert.equal(guessed.at(-1)?.['fingerprint'], undefined);
  });

  /** One of the numbers that look alike when masked, as callers may spell or wrap it to look like none of them. */
  const disguises: Readonly<Record<string, (n: number, digits: string) => object>> = {
    'parts of bank data that the fingerprint leaves out': (n, digits) => ({
      type: 'bank',
      data: { routing_number: routing(n), account_number: `${digits}6789` },
      fingerprint_expression: '{{ data.account_number }}',
    }),
    'separators of any kind': (_, digits) => ({
      type: 'token',
      data: `4242.4242/${digits}_4242`,
    }),
    'digits of other scripts': (_, digits) => ({
      type: 'token',
      data: `42424242${digits}4242`.replace(/\d/g, (digit) => '٠١٢٣٤٥٦٧٨٩'.charAt(Number(digit))),
    }),
    'spellings of one number': (n, digits) => ({
      type: 'social_security_number',
      data: n % 2 === 0 ? `${firstThree(n)}-45-6789` : `${firstThree(n)}456789`,
      metadata: { digits },
    }),
    'numbers in nested JSON': (_, digits) => ({
      type: 'token',
      data: { a: [{ b: Number(`42424242${digits}4242`) }] },
    }),
    'leading zeros': (_, digits) => ({ type: 'token', data: `00000000${digits}4242` }),
    'text around the number': (_, digits) => ({
      type: 'token',
      data: `Card No. 4242-4242 — ${digits} — 4242 (of A.B.)`,
    }),
    'a mask that shows all but the last four': (_, digits) => ({
      type: 'token',
      data: `424242424242${digits}`,
      mask: '{{ data | slice: 0, 12 }}',
    }),
  };

  for (const [disguise, bodyOf] of Object.entries(disguises)) {
    test(`no guess escapes the count by ${disguise}`, async () => {
      const tenant = await newTenant();
      const key = await sessionWith(tenant, 'token:read');
      const made = await repeated(triesMax, (n) =>
        created(tenant, key, { ...bodyOf(n, String(n).padStart(4, '0')), deduplicate_token: true }),
      );
      const told = made.map(({ fingerprint }) => fingerprint !== undefined);
      assert.deepEqual(told, [...Array(equalDigitsMax).fill(true), false, false]);
      assert.equal(await alertsOf(tenant), 1);
    });
  }

  test('an expression of the caller’s own does not hide what is guessed', async () => {
    const tenant = await newTenant();
    const key = await publicKey(tenant);
    const own = (n: number) => ({
      ...deduplicated,
      fingerprint_expression: `{{ data.number | append: '${n}' }}`,
    });
    const made = await repeated(triesMax, (n) => created(tenant, key, own(n)));
    assert.equal(made.at(-1)?.['_extras'], undefined);
    const id = '{{ data.number | slice: 0, 8 }}-{{ data.number | last4 }}';
    const body = { ...deduplicated, id };
    assert.equal((await tenant.send('POST', '/tokens', { key, body })).status, 429);
  });

  test('lines of an import are counted like creates', async () => {
    const tenant = await newTenant();
    const key = await sessionWith(tenant, 'token:read');
    const lines = await bulk(tenant, Array(triesMax).fill(deduplicated), key);
    assertWithheld(lines.map(({ token }) => token));
    assert.equal(await alertsOf(tenant), 1);
    const [own] = await bulk(tenant, [deduplicated]);
    assert.equal(own.token.id, lines[0].token.id);
  });

  test('values in tokenize and encrypted ones are counted like creates', async () => {
    const tenant = await newTenant();
    const key = await publicKey(tenant);
    const body = Array(equalDigitsMax / 2).fill(deduplicated);
    const tokenized = await tenant.send('POST', '/tokenize', { key, body });
    assert.equal(tokenized.status, 200, tokenized.text);
    const made = await tenant.send('POST', '/keys', { key: tenant.managementKey, body: {} });
    const jwe = await encrypted(made.body, JSON.stringify(card));
    const sealed = { type: 'card', encrypted: jwe, deduplicate_token: true };
    const opened = await repeated(triesMax / 2 + 1, () => created(tenant, key, sealed));
    assertWithheld([...tokenized.body, ...opened]);
  });

  test('token intents are counted, and their conversion tells no more than they did', async () => {
    const tenant = await newTenant();
    const key = await publicKey(tenant, 'token-intent:create');
    const reader = await tenant.application({ permissions: ['token-intent:read'] });
    const intents = await repeated(triesMax, async () => {
      const made = await tenant.send('POST', '/token-intents', {
        key,
        body: { type: 'card', data: card },
      });
      assert.equal(made.status, 201, made.text);
      const path = `/token-intents/${made.body.id}`;
      const read = await tenant.send('GET', path, { key: reader });
      assert.equal(read.body.fingerprint, made.body.fingerprint);
      return made.body;
    });
    const told = intents.map(({ fingerprint }) => fingerprint !== undefined);
    assert.deepEqual(told, [...Array(equalDigitsMax).fill(true), false, false]);
    const converted: Seen[] = [];
    for (const { id: token_intent_id } of intents) {
      converted.push(await created(tenant, key, { token_intent_id, deduplicate_token: true }));
    }
    // What an intent told is not counted another time.
    assertWithheld(converted);
    assert.equal(await alertsOf(tenant), 1);
  });

  test('updates are counted where they compute a fingerprint', async () => {
    const tenant = await newTenant();
    const key = await sessionWith(tenant, 'token:read', 'token:update');
    const { body: token } = await tenant.token({ type: 'us_bank_account_number', data: '123' });
    const patched = (body: object) => tenant.send('PATCH', `/tokens/${token.id}`, { key, body });
    const updates = await repeated(triesMax, (n) => patched({ data: account(n).data }));
    const told = updates.map(({ body }) => body.fingerprint !== undefined);
    assert.deepEqual(told, [...Array(equalDigitsMax).fill(true), false, false]);
    const later = await patched({ metadata: { a: 'b' } });
    assert.equal(later.body.fingerprint, undefined, 'no later update brings it back');
    const own = await tenant.send('PATCH', `/tokens/${token.id}`, {
      body: { data: account(1).data },
    });
    assert.equal(typeof own.body.fingerprint, 'string', own.text);
  });

  test('code is counted with the rights that it is lent, when a visitor calls it', async () => {
    const tenant = await newTenant();
    const code = `module.exports = async ({ bt, args }) => {
      const made = [];
      for (let n = 0; n < args.times; n++) made.push(await bt.tokens.create(args.token));
      return { raw: { made } } }`;
    const lender = await tenant.send('POST', '/applications', {
      key: tenant.managementKey,
      body: { name: 'lender', type: 'private', permissions: ['token:create', 'token:read'] },
    });
    const { id } = await createReactor(tenant, { code, application: { id: lender.body.id } });
    const body = { args: { times: triesMax, token: deduplicated } };
    const react = async (key: string) => {
      const called = await tenant.send('POST', `/reactors/${id}/react`, { key, body });
      assert.equal(called.status, 200, called.text);
      return called.body.raw.made as Seen[];
    };
    assertWithheld(await react(await sessionWith(tenant, 'reactor:invoke')));
    const own = await react(await tenant.application({ permissions: ['reactor:invoke'] }));
    assert.equal(new Set(own.map((one) => one['id'])).size, 1, 'a private key is told all');
  });

  test('tokens that a proxy makes for callers without a key are counted', async () => {
    const tenant = await newTenant();
    const made = await tenant.send('POST', '/applications', {
      key: tenant.managementKey,
      body: { name: 'inbound', type: 'private', permissions: ['token:create', 'token:read'] },
    });
    destination.behave(answer(200, ['Content-Type', 'application/json'], JSON.stringify(card)));
    const data = {
      number: '{{ res.number }}',
      expiration_month: '{{ res.expiration_month }}',
      expiration_year: '{{ res.expiration_year }}',
    };
    const call = await proxyOf(tenant, {
      destination_url: url,
      require_auth: false,
      application: { id: made.body.id },
      response_transforms: [
        { type: 'tokenize', options: { identifier: 'made', token: { ...deduplicated, data } } },
        {
          type: 'append_json',
          options: { location: '$.id', value: "{{ transform_identifier: 'made' | json: '$.id' }}" },
        },
      ],
    });
    const seen = await repeated(triesMax, async () => {
      const called = await call('POST', '', { body: {} });
      assert.equal(called.status, 200, called.text);
      return JSON.parse(called.text) as Seen;
    });
    assertWithheld(seen);
    const fingerprints = (await tenant.rows('tokens')).map(({ fingerprint }) => fingerprint);
    assert.equal(fingerprints.filter((one) => one === null).length, triesMax - equalDigitsMax);
  });

  test('searches by a session compare few values that look alike with what is stored', async () => {
    const tenant = await newTenant();
    const ssn = '000456789';
    await tenant.token({ type: 'social_security_number', data: ssn });
    const key = await sessionWith(tenant, 'token:search', 'token:read');
    const search = (data: string, by = key) =>
      tenant.send('POST', '/tokens/search', { key: by, body: { query: `data:${data}` } });
    const statuses = await repeated(
      triesMax,
      async (n) => (await search(`${10_000 + n}6789`)).status,
    );
    assert.deepEqual(statuses, [...Array(equalDigitsMax).fill(200), 429, 429]);
    assert.equal((await search(ssn)).status, 429);
    assert.equal((await search('6789')).body.pagination.total_items, 1, 'what masks show is free');
    assert.equal((await search(ssn, tenant.key)).body.pagination.total_items, 1);
    assert.equal(await alertsOf(tenant), 1);
  });
});
