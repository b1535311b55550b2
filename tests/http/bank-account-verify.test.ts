/** POST /enrichments/bank-account-verify: who may ask, who answers, and what never leaves. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { refusalWindowMs } from '../../src/audit/refusals.ts';
import { onBothEngines } from '../support/engines.ts';
import { type Answer, json, redirect, startHost } from '../support/host.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { newTenant, type TestTenant, tenantsOf } from '../support/tenant.ts';
import { bank, visa } from '../support/values.ts';
import { type Received, startVault } from '../support/vault.ts';

const path = '/enrichments/bank-account-verify';
const host = await startHost({ after });
const directory = join(temporaryDirectory({ after }), 'FedACHdir.txt');

const recordOf = (routingNumber: string) =>
  `${routingNumber}O0210012081072505000000000`.padEnd(127).concat('FL336100000813555010011     ');

const environment = {
  STRONGROOM_OUTBOUND_ALLOW: host.name,
  STRONGROOM_BANK_PROVIDER_URL: `${host.url}/verify`,
  STRONGROOM_BANK_PROVIDER_HEADERS: '{"authorization": "Bearer of.a.test"}',
  STRONGROOM_BANK_PROVIDER_REQUEST:
    '{"rtn": "{{ routing_number }}", "dda": "{{ account_number }}", "in": "{{ country_code }}"}',
  STRONGROOM_BANK_PROVIDER_ANSWER: "{{ body.result | replace: 'OPEN', 'enabled' }}",
};

const accountToken = { type: 'us_bank_account_number', data: bank.account_number };

const verify = async (tenant: TestTenant, token: object, more: object = {}) => {
  const { body } = await tenant.token({ ...token });
  return tenant.send('POST', path, { body: { token_id: body.id, ...more } });
};

/** Lets the tenant use the operator's service, which has not been asked yet. */
const choose = async (tenant: TestTenant) => {
  await tenant.set({ bank_verification_provider: 'http' });
  host.requests.length = 0;
  return tenant;
};

/** Nothing that was logged, stored in the log or answered holds an account number. */
async function assertUnspoken(tenant: TestTenant, answers: readonly { text: string }[]) {
  const said = JSON.stringify([tenant.vault.logged, await tenant.rows('logs'), answers]);
  assert.equal(said.includes(bank.account_number), false);
}

/** Each of these answers of the service is inconclusive, warned of and counted, and quoted nowhere. */
async function assertUseless(tenant: TestTenant, answers: readonly Answer[]) {
  const warnings = () =>
    tenant.vault.logged.filter(
      ({ message, fields }) =>
        message === 'a bank account could not be verified' && fields?.tenant_id === tenant.id,
    ).length;
  const counted = async () => {
    const { text } = await tenant.vault.send('GET', '/metrics');
    return Number(/^strongroom_bank_provider_failures_total (\d+)$/m.exec(text)?.[1]);
  };
  const before = await counted();
  for (const [index, answer] of answers.entries()) {
    host.answer(answer);
    const given = await verify(tenant, { type: 'bank', data: bank });
    assert.deepEqual([given.status, given.body], [200, { status: 'inconclusive' }]);
    assert.equal(warnings(), index + 1);
    assert.equal(await counted(), before + index + 1);
    await assertUnspoken(tenant, [given]);
  }
}

onBothEngines(`POST ${path} by rules`, (engine) => {
  const tenants = tenantsOf(engine);

  test('200: the published pairs answer as documented in a test tenant', async () => {
    const tenant = await tenants();
    const published = [
      ['021000020', '00000', 'disabled'],
      ['021000021', '00001', 'enabled'],
      ['021000021', '00002', 'inconclusive'],
    ] as const;
    for (const [routing_number, data, status] of published) {
      const token = { ...accountToken, data };
      const answer = await verify(tenant, token, { routing_number, country_code: 'US' });
      assert.equal(answer.status, 200);
      assert.deepEqual(answer.body, { status });
    }
    const data = { routing_number: '021000021', account_number: '00001' };
    assert.deepEqual((await verify(tenant, { type: 'bank', data })).body, { status: 'enabled' });
  });

  test('200: in a production tenant they are numbers like any other', async () => {
    const tenant = await newTenant((await tenants()).vault, 'production');
    const token = { ...accountToken, data: '00001' };
    const enabled = await verify(tenant, token, { routing_number: '021000021' });
    assert.deepEqual(enabled.body, { status: 'inconclusive' });
  });

  test('200: a number that cannot be a routing number is disabled, any other inconclusive', async () => {
    const tenant = await tenants();
    for (const [routing_number, status] of [
      ['021000021', 'inconclusive'],
      ['011000028', 'inconclusive'],
      ['021000022', 'disabled'],
      ['131000005', 'disabled'],
      ['500000005', 'disabled'],
    ] as const) {
      const answer = await verify(tenant, accountToken, { routing_number });
      assert.deepEqual(answer.body, { status }, routing_number);
    }
  });

  test('200: a bank token may be asked about with its own routing number, and null is absent', async () => {
    const tenant = await tenants();
    const token = { type: 'bank', data: bank };
    for (const more of [
      { routing_number: bank.routing_number },
      { routing_number: null, country_code: null },
      { country_code: 'us' },
    ]) {
      assert.equal((await verify(tenant, token, more)).status, 200);
    }
  });

  test('200: the answer is in the log, and is repeated under an idempotency key', async () => {
    const tenant = await tenants();
    const { body: token } = await tenant.token(accountToken);
    const body = { token_id: token.id, routing_number: bank.routing_number };
    const headers = { 'SVC-IDEMPOTENCY-KEY': 'once' };
    const first = await tenant.send('POST', path, { body, headers });
    const again = await tenant.send('POST', path, { body, headers });
    assert.deepEqual(again.body, first.body);
    assert.deepEqual(await tenant.logged(), ['create', 'verify']);
    await assertUnspoken(tenant, [first, again]);
  });

  test('400: every wrong attribute is named; unknown tokens and guessed routing numbers are logged', async () => {
    const tenant = await tenants();
    const other = await newTenant(tenant.vault);
    const foreign = (await other.token(accountToken)).body.id;
    const account = (await tenant.token(accountToken)).body.id;
    const own = (await tenant.token({ type: 'bank', data: bank })).body.id;
    const card = (await tenant.token({ type: 'card', data: visa })).body.id;
    const routing_number = '021000021';
    const wrong: readonly (readonly [string, object])[] = [
      ['token_id', {}],
      ['token_id', { token_id: null }],
      ['token_id', { token_id: '' }],
      ['token_id', { token_id: 'unknown', routing_number }],
      ['token_id', { token_id: 'a/b', routing_number }],
      ['token_id', { token_id: foreign, routing_number }],
      ['token_id', { token_id: card }],
      ['routing_number', { token_id: account }],
      ['routing_number', { token_id: account, routing_number: '02100002' }],
      ['routing_number', { token_id: account, routing_number: '02100002x' }],
      ['routing_number', { token_id: account, routing_number: '0210000210' }],
      ['routing_number', { token_id: account, routing_number: 21000021 }],
      ['routing_number', { token_id: own, routing_number: '011000028' }],
      ['country_code', { token_id: own, country_code: 'CA' }],
      ['country_code', { token_id: own, country_code: 'USA' }],
      ['country', { token_id: own, country: 'US' }],
    ];
    const before = await tenant.logged();
    for (const [attribute, body] of wrong) {
      const answer = await tenant.send('POST', path, { body });
      assert.equal(answer.status, 400, JSON.stringify(body));
      assert.deepEqual(Object.keys(answer.body.errors), [attribute], JSON.stringify(body));
      await assertUnspoken(tenant, [answer]);
      tenant.vault.clock.advance(refusalWindowMs);
    }
    // Three name no token, one guesses, and four fail after the account or the card was opened.
    const attempts = Array(8).fill('use failed');
    assert.deepEqual(await tenant.logged(), [...before, ...attempts]);
    const ids = (await tenant.rows('logs')).filter(({ result }) => result === 'failed');
    assert.deepEqual(
      new Set(ids.map((entry) => entry.entity_id)),
      new Set(['*', own, account, card]),
    );
  });

  test('400: a token that is missing, expired or another tenant’s gets the same response', async () => {
    const tenant = await tenants();
    const other = await newTenant(tenant.vault);
    const foreign = (await other.token({ ...accountToken, id: 'foreign' })).body.id;
    const expires_at = new Date(tenant.vault.clock.now() + 60_000).toISOString();
    const expired = (await tenant.token({ ...accountToken, expires_at })).body.id;
    tenant.vault.clock.advance(60_001);
    const texts = await Promise.all(
      [foreign, expired, 'missing'].map(async (token_id) => {
        const body = { token_id, routing_number: '021000021' };
        return (await tenant.send('POST', path, { body })).text;
      }),
    );
    assert.equal(new Set(texts).size, 1);
  });

  test('401 and 403: without a key, without token:use, and outside of the container', async () => {
    const tenant = await tenants();
    const { body: token } = await tenant.token(accountToken);
    const body = { token_id: token.id, routing_number: '021000021' };
    assert.equal((await tenant.send('POST', path, { key: 'key_none', body })).status, 401);
    const reader = await tenant.holder({ permissions: ['token:read'] });
    const elsewhere = await tenant.holder({ permissions: ['token:use'], container: '/pci/' });
    for (const key of [reader, elsewhere]) {
      const answer = await tenant.send('POST', path, { key, body });
      assert.equal(answer.status, 403);
    }
    assert.deepEqual(await tenant.logged(), ['create', 'use denied', 'use denied']);
    const inside = await tenant.holder({ permissions: ['token:use'], container: '/bank/' });
    assert.equal((await tenant.send('POST', path, { key: inside, body })).status, 200);
  });
});

onBothEngines(`POST ${path} by rules with a routing directory`, (engine) => {
  before(() => writeFile(directory, recordOf('021000021')));
  const tenants = tenantsOf(engine, {
    environment: { STRONGROOM_ROUTING_DIRECTORY: directory },
  });
  const statusOf = async (tenant: TestTenant, routing_number: string) =>
    (await verify(tenant, accountToken, { routing_number })).body.status;

  test('200: what is not in it is disabled; a changed file counts, a damaged one does not', async () => {
    const tenant = await tenants();
    assert.equal(await statusOf(tenant, '021000021'), 'inconclusive');
    assert.equal(await statusOf(tenant, '011000028'), 'disabled');
    await writeFile(directory, `${recordOf('021000021')}\n${recordOf('011000028')}\n`);
    tenant.vault.clock.advance(1000);
    assert.equal(await statusOf(tenant, '011000028'), 'inconclusive');
    await writeFile(directory, `${recordOf('021000021')}\n${recordOf('011000028').slice(1)}\n`);
    tenant.vault.clock.advance(1000);
    assert.equal(await statusOf(tenant, '011000028'), 'inconclusive');
    const reasons = tenant.vault.logged.map(({ fields }) => fields?.reason);
    assert.ok(reasons.includes('STRONGROOM_ROUTING_DIRECTORY: line 2 has 154 characters, not 155'));
  });
});

onBothEngines(`POST ${path} by the operator’s service`, (engine) => {
  const tenants = tenantsOf(engine, { environment });
  const choosing = async () => {
    host.answer(json({ result: 'OPEN' }));
    return choose(await tenants());
  };

  test('200: its answer is the status, and the log says first that the token was sent', async () => {
    const tenant = await choosing();
    host.answer(async (response, request) => {
      const log = await tenant.logged();
      json({ result: log.includes('use') ? 'OPEN' : 'unlogged' })(response, request);
    });
    const answer = await verify(tenant, { type: 'bank', data: bank });
    assert.deepEqual(answer.body, { status: 'enabled' });
    assert.deepEqual(
      host.requests.map(({ body }) => JSON.parse(body)),
      [{ rtn: bank.routing_number, dda: bank.account_number, in: 'US' }],
    );
    assert.equal(host.requests[0]?.headers.authorization, 'Bearer of.a.test');
    assert.deepEqual(await tenant.logged(), ['create', 'use', 'verify']);
    await assertUnspoken(tenant, [answer]);
  });

  test('200: under an idempotency key it is asked once, also where the retry comes to another server', async (t) => {
    const tenant = await choosing();
    const { place, clock } = tenant.vault;
    const second = await startVault(t, engine, { place, clock, environment });
    const { body: token } = await tenant.token({ type: 'bank', data: bank });
    const headers = { 'SVC-IDEMPOTENCY-KEY': 'once' };
    const sent = { key: tenant.key, body: { token_id: token.id }, headers };
    for (const server of [tenant.vault, second]) {
      const { status, body } = await server.send('POST', path, sent);
      assert.deepEqual([status, body], [200, { status: 'enabled' }]);
    }
    assert.equal(host.requests.length, 1);
    assert.deepEqual(await tenant.logged(), ['create', 'use', 'verify']);
  });

  test('409: while it is being asked under an idempotency key nobody else asks it, on any server', async (t) => {
    const tenant = await choosing();
    const { place, clock } = tenant.vault;
    const second = await startVault(t, engine, { place, clock, environment });
    const { body: token } = await tenant.token({ type: 'bank', data: bank });
    const headers = { 'SVC-IDEMPOTENCY-KEY': 'once' };
    const sent = { key: tenant.key, body: { token_id: token.id }, headers };
    let retried: Received | undefined;
    host.answer(async (response, request) => {
      retried = await second.send('POST', path, sent);
      json({ result: 'OPEN' })(response, request);
    });
    const first = await tenant.vault.send('POST', path, sent);
    assert.deepEqual(first.body, { status: 'enabled' });
    assert.equal(retried?.status, 409);
    assert.equal(retried?.body.type, 'urn:strongroom:problem:conflict');
    assert.deepEqual((await second.send('POST', path, sent)).body, first.body);
    assert.equal(host.requests.length, 1);
    assert.deepEqual(await tenant.logged(), ['create', 'use', 'verify']);
  });

  test('200: it is not asked by a tenant that did not choose it, nor about impossible numbers', async () => {
    const tenant = await choosing();
    const other = await newTenant(tenant.vault);
    const routing_number = '021000021';
    assert.equal(
      (await verify(other, accountToken, { routing_number })).body.status,
      'inconclusive',
    );
    const impossible = await verify(tenant, accountToken, { routing_number: '021000022' });
    assert.equal(impossible.body.status, 'disabled');
    const published = await verify(tenant, { ...accountToken, data: '00002' }, { routing_number });
    assert.equal(published.body.status, 'inconclusive');
    assert.equal(host.requests.length, 0);
    assert.deepEqual(await tenant.logged(), ['create', 'create', 'verify', 'verify']);
  });

  test('200: a service that cannot answer is inconclusive, with a warning that quotes nothing', async () => {
    const tenant = await choosing();
    await assertUseless(tenant, [
      json({ result: bank.account_number }),
      redirect('https://[::1]/'),
      json({ result: 'x'.repeat(100_000) }),
    ]);
    host.answer(json({ result: 'OPEN' }));
    assert.equal((await verify(tenant, { type: 'bank', data: bank })).body.status, 'enabled');
  });

  test('200: without a cache it is asked each time', async () => {
    const tenant = await choosing();
    await verify(tenant, { type: 'bank', data: bank });
    await verify(tenant, { type: 'bank', data: bank });
    assert.equal(host.requests.length, 2);
  });
});

onBothEngines(`POST ${path} by a service that is too slow`, (engine) => {
  const tenants = tenantsOf(engine, {
    environment: { ...environment, STRONGROOM_BANK_PROVIDER_TIMEOUT_MS: '200' },
  });

  test('200: it is inconclusive once the time is up, with a warning that quotes nothing', async () => {
    await assertUseless(await choose(await tenants()), [() => undefined]);
  });
});

onBothEngines(`POST ${path} strictly and with a cache`, (engine) => {
  const tenants = tenantsOf(engine, {
    environment: {
      ...environment,
      STRONGROOM_BANK_PROVIDER_STRICT: 'true',
      STRONGROOM_BANK_PROVIDER_CACHE_SECONDS: '60',
      STRONGROOM_BANK_PROVIDER_ATTEMPTS: '1',
    },
  });
  const choosing = async () => choose(await tenants());

  test('503: a service that cannot answer, with Retry-After; nothing is cached or repeated', async () => {
    const tenant = await choosing();
    host.answer(json({ result: bank.account_number }, 500));
    const { body: token } = await tenant.token({ type: 'bank', data: bank });
    const headers = { 'SVC-IDEMPOTENCY-KEY': 'once' };
    const body = { token_id: token.id };
    const failed = await tenant.send('POST', path, { body, headers });
    assert.equal(failed.status, 503);
    assert.equal(failed.body.type, 'urn:strongroom:problem:unavailable');
    assert.equal(failed.headers.get('retry-after'), '1');
    assert.deepEqual(await tenant.logged(), ['create', 'use', 'verify failed']);
    await assertUnspoken(tenant, [failed]);
    host.answer(json({ result: 'OPEN' }));
    const retried = await tenant.send('POST', path, { body, headers });
    assert.deepEqual(retried.body, { status: 'enabled' });
  });

  test('200: a status is given again for the configured time, to its tenant alone', async () => {
    const tenant = await choosing();
    host.answer(json({ result: 'OPEN' }));
    const { body: token } = await tenant.token({ type: 'bank', data: bank });
    const ask = (of = tenant, token_id = token.id) => of.send('POST', path, { body: { token_id } });
    await ask();
    host.answer(json({ result: 'disabled' }));
    assert.equal((await ask()).body.status, 'enabled');
    assert.equal(host.requests.length, 1);
    assert.deepEqual(await tenant.logged(), ['create', 'use', 'verify', 'verify']);
    const other = await choosing();
    const { body: equal } = await other.token({ type: 'bank', data: bank });
    assert.equal((await ask(other, equal.id)).body.status, 'disabled');
    tenant.vault.clock.advance(60_000);
    assert.equal((await ask()).body.status, 'disabled');
  });
});

onBothEngines(`POST ${path} strictly without a service`, (engine) => {
  const tenants = tenantsOf(engine, { environment: { STRONGROOM_BANK_PROVIDER_STRICT: 'true' } });

  test('503: a tenant that chose a service the operator did not configure', async () => {
    const tenant = await tenants();
    await tenant.set({ bank_verification_provider: 'http' });
    const answer = await verify(tenant, { type: 'bank', data: bank });
    assert.equal(answer.status, 503);
    assert.equal(answer.headers.get('retry-after'), '300');
  });
});
