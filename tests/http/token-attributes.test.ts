/** POST and PATCH of tokens with one attribute that is wrong: 400 names it, and nothing is stored. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { type Given, type TestTenant, tenantsOf } from '../support/tenant.ts';
import { bank, visa } from '../support/values.ts';

/** Stands in every refused value, and must not be heard of again. */
const marker = 'mArKeR';
const laterYear = new Date().getUTCFullYear() + 2;
const long = (length: number) => marker.padEnd(length, 'x');
const many = (length: number) => Array.from({ length }, (_, index) => `${marker}${index}`);
const keys = (length: number) => Object.fromEntries(many(length).map((key) => [key, 'v']));
const nested = (levels: number) => `${'{"a":'.repeat(levels)}"${marker}"${'}'.repeat(levels)}`;

/** What both operations take: the attributes sent, and the path the answer must name. */
const shared: readonly (readonly [Given, string])[] = [
  [{ mask: `{{ data | ${marker}` }, 'mask'],
  [{ mask: `{{ data | ${marker} }}` }, 'mask'],
  [{ mask: { card: { number: [`{% ${marker} %}`] } } }, 'mask.card.number[0]'],
  [{ mask: long(10_000) }, 'mask'],
  [{ mask: many(501) }, 'mask'],
  [{ mask: [2 ** 53] }, 'mask'],
  [{ mask: JSON.parse(nested(65)) }, 'mask'],
  [{ containers: marker }, 'containers'],
  [{ containers: { 0: marker } }, 'containers'],
  [{ containers: [1] }, 'containers[0]'],
  [{ containers: [null] }, 'containers[0]'],
  [{ containers: [`${marker}/`] }, 'containers[0]'],
  [{ containers: [`/${marker}`] }, 'containers[0]'],
  [{ containers: [`/${marker}//`] }, 'containers[0]'],
  [{ containers: [`/${marker} ü/`] }, 'containers[0]'],
  [{ containers: [''] }, 'containers[0]'],
  [{ containers: [`/${long(399)}/`] }, 'containers[0]'],
  [{ containers: [`${'/a'.repeat(33)}/`] }, 'containers[0]'],
  [{ containers: ['/a/', '/b/'] }, 'containers'],
  [{ metadata: marker }, 'metadata'],
  [{ metadata: [marker] }, 'metadata'],
  [{ metadata: { k: 1 } }, 'metadata.k'],
  [{ metadata: { k: [marker] } }, 'metadata.k'],
  [{ metadata: { 'k\n': [marker] } }, 'metadata.k\n'],
  [{ metadata: keys(51) }, 'metadata'],
  [{ metadata: { [long(101)]: 'v' } }, 'metadata'],
  [{ metadata: { '': marker } }, 'metadata'],
  [{ metadata: { k: long(501) } }, 'metadata.k'],
  [{ search_indexes: marker }, 'search_indexes'],
  [{ search_indexes: [1] }, 'search_indexes[0]'],
  [{ search_indexes: [null] }, 'search_indexes[0]'],
  [{ search_indexes: ['{{ data }}', `{{ ${marker}`] }, 'search_indexes[1]'],
  [{ search_indexes: [''] }, 'search_indexes[0]'],
  [{ search_indexes: ['{{ data.nothing }}'] }, 'search_indexes[0]'],
  [{ search_indexes: [`{{ data | ${long(4000)} }}`] }, 'search_indexes[0]'],
  [{ search_indexes: many(11) }, 'search_indexes'],
  [{ fingerprint_expression: 1 }, 'fingerprint_expression'],
  [{ fingerprint_expression: [marker] }, 'fingerprint_expression'],
  [{ fingerprint_expression: `{{ ${marker}` }, 'fingerprint_expression'],
  [{ fingerprint_expression: '{{ data.nothing }}' }, 'fingerprint_expression'],
  [{ fingerprint_expression: '{{ data | to_number }}' }, 'fingerprint_expression'],
  [{ fingerprint_expression: long(401) }, 'fingerprint_expression'],
  [{ fingerprint_expression: `${marker}\0` }, 'fingerprint_expression'],
  [{ fingerprint_expression: `${marker}\ud800` }, 'fingerprint_expression'],
  [{ deduplicate_token: marker }, 'deduplicate_token'],
  [{ deduplicate_token: 1 }, 'deduplicate_token'],
  [{ expires_at: 1 }, 'expires_at'],
  [{ expires_at: marker }, 'expires_at'],
  [{ expires_at: `${laterYear}-02-30T00:00:00Z` }, 'expires_at'],
  [{ expires_at: `${laterYear}-01-02T00:00:00+15:00` }, 'expires_at'],
  [{ expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
  [{ [`x_${marker}`]: marker }, `x_${marker}`],
  [{ tenant_id: marker }, 'tenant_id'],
  [{ created_at: marker }, 'created_at'],
  [{ _extras: { deduplicated: true } }, '_extras'],
];

const ofCreate: readonly (readonly [Given, string])[] = [
  [{ type: 1 }, 'type'],
  [{ type: null }, 'type'],
  [{ type: marker }, 'type'],
  [{ type: 'constructor' }, 'type'],
  [{ data: null }, 'data'],
  [{ data: undefined }, 'data'],
  [{ metadata: { k: null } }, 'metadata.k'],
  [{ id: 1 }, 'id'],
  [{ id: '' }, 'id'],
  [{ id: 'ab' }, 'id'],
  [{ id: long(401) }, 'id'],
  [{ id: ` ${marker}` }, 'id'],
  [{ id: `${marker}\0` }, 'id'],
  [{ id: `${marker}\ud800` }, 'id'],
  ...[...'#/\\+?[]|&=%<>{}^'].map((sign) => [{ id: `${marker}${sign}` }, 'id'] as const),
  [{ id: `{{ ${marker}` }, 'id'],
  [{ id: '{{ data.nothing }}' }, 'id'],
  [{ id: '{{ data.text | append: "/" }}' }, 'id'],
];

const ofUpdate: readonly (readonly [Given, string])[] = [
  [{ id: marker }, 'id'],
  [{ type: 'card' }, 'type'],
  [{ data: null }, 'data'],
];

/** Data that its type refuses. */
const data: readonly (readonly [type: string, data: unknown, path: string])[] = [
  ['card', marker, 'data'],
  ['card', [marker], 'data'],
  ['card', {}, 'data.number'],
  ['card', { ...visa, number: 4242424242424242 }, 'data.number'],
  ['card', { ...visa, number: '4242 4242 4242 4242' }, 'data.number'],
  ['card', { ...visa, number: '4242424242424241' }, 'data.number'],
  ['card', { ...visa, number: '424242424240' }, 'data.number'],
  ['card', { ...visa, number: '42424242424242424242' }, 'data.number'],
  ['card', { ...visa, expiration_month: 13 }, 'data.expiration_month'],
  ['card', { ...visa, expiration_month: 1.5 }, 'data.expiration_month'],
  ['card', { ...visa, expiration_month: marker }, 'data.expiration_month'],
  ['card', { ...visa, expiration_year: 30 }, 'data.expiration_year'],
  ['card', { ...visa, expiration_year: 2100 }, 'data.expiration_year'],
  ['card', { ...visa, cvc: '12' }, 'data.cvc'],
  ['card', { ...visa, cvc: '12345' }, 'data.cvc'],
  ['card', { ...visa, cvc: '12a' }, 'data.cvc'],
  ['card', { ...visa, holder: marker }, 'data.holder'],
  ['card', { ...visa, '4111111111111111': marker }, 'data'],
  ['bank', { ...bank, routing_number: '021000020' }, 'data.routing_number'],
  ['bank', { ...bank, routing_number: '21000021' }, 'data.routing_number'],
  ['bank', { ...bank, routing_number: 21000021 }, 'data.routing_number'],
  ['bank', { ...bank, account_number: '012345678901234567' }, 'data.account_number'],
  ['bank', { ...bank, account_number: '12-34' }, 'data.account_number'],
  ['bank', { routing_number: bank.routing_number }, 'data.account_number'],
  ['card_number', '4242424242424241', 'data'],
  ['card_number', { number: visa.number }, 'data'],
  ['us_bank_account_number', marker, 'data'],
  ['us_bank_routing_number', '021000020', 'data'],
  ['social_security_number', '078-05-112', 'data'],
  ['employer_id_number', 123456789, 'data'],
];

onBothEngines('Attributes of tokens', (engine) => {
  const tenants = tenantsOf(engine);

  /** Sends it, and fails unless it is refused by a problem that names the path and no value. */
  async function refused(tenant: TestTenant, sent: readonly [string, string], body: unknown) {
    const answer = await tenant.send(...sent, { body });
    const told = `${JSON.stringify(body).slice(0, 200)} ${answer.text}`;
    assert.equal(answer.status, 400, told);
    assert.equal(answer.headers.get('content-type'), 'application/problem+json; charset=utf-8');
    assert.equal(answer.body.type, 'urn:strongroom:problem:validation_failed');
    assert.equal(answer.body.title, 'One or more validation errors occurred.');
    assert.equal(answer.body.status, 400);
    return { paths: Object.keys(answer.body.errors), text: answer.text, told };
  }

  async function changesNothing(tenant: TestTenant, run: () => Promise<void>) {
    // A patch opens the token before it is refused, which the log says.
    const failed = async () =>
      (await tenant.rows('logs')).filter(
        ({ operation, result }) => operation === 'update' && result === 'failed',
      ).length;
    const stored = async () => {
      const { logs = 0, ...counts } = await tenant.counts();
      return [await tenant.rows('tokens'), { ...counts, logs: logs - (await failed()) }];
    };
    const before = await stored();
    await run();
    assert.deepEqual(await stored(), before);
    const lines = JSON.stringify(tenant.vault.logged);
    for (const value of [marker, '424242424242', bank.account_number]) {
      assert.equal(lines.includes(value), false, 'a log line holds a value');
    }
  }

  test('400: POST names each attribute of a wrong type, shape or size', async () => {
    const tenant = await tenants();
    const whole = { id: 'own', type: 'token', data: { text: `${marker} text` } };
    await changesNothing(tenant, async () => {
      for (const [attributes, path] of [...shared, ...ofCreate]) {
        const { paths, text, told } = await refused(tenant, ['POST', '/tokens'], {
          ...whole,
          ...attributes,
        });
        assert.deepEqual(paths, [path], told);
        assert.equal(text.replace(path, '').includes(marker), false, told);
      }
    });
  });

  test('400: PATCH names each attribute of a wrong type, shape or size', async () => {
    const tenant = await tenants();
    await tenant.token({ id: 'own', type: 'token', data: { text: `${marker} text` } });
    await changesNothing(tenant, async () => {
      for (const [attributes, path] of [...shared, ...ofUpdate]) {
        const { paths, text, told } = await refused(tenant, ['PATCH', '/tokens/own'], attributes);
        assert.deepEqual(paths, [path], told);
        assert.equal(text.replace(path, '').includes(marker), false, told);
      }
    });
  });

  test('400: data that its type refuses, when created and when patched', async () => {
    const tenant = await tenants();
    const valid: Readonly<Record<string, unknown>> = {
      card: visa,
      bank,
      card_number: visa.number,
      us_bank_account_number: bank.account_number,
      us_bank_routing_number: bank.routing_number,
      social_security_number: '078-05-1120',
      employer_id_number: '12-3456789',
    };
    for (const [type, whole] of Object.entries(valid)) {
      await tenant.token({ id: type, type, data: whole });
    }
    await changesNothing(tenant, async () => {
      for (const [type, wrong, path] of data) {
        const created = await refused(tenant, ['POST', '/tokens'], { type, data: wrong });
        assert.deepEqual(created.paths, [path], created.told);
        assert.equal(/mArKeR|\d{9}/.test(created.text), false, created.text);
        // A patch that says less merges into what is valid.
        if (path === 'data.number' && !('number' in (wrong as object))) continue;
        if (path === 'data.account_number' && !('account_number' in (wrong as object))) continue;
        const patched = await refused(tenant, ['PATCH', `/tokens/${type}`], { data: wrong });
        assert.deepEqual(patched.paths, [path], patched.told);
        assert.equal(/mArKeR|\d{9}/.test(patched.text), false, patched.text);
      }
    });
  });

  test('400: one answer names everything that is wrong', async () => {
    const tenant = await tenants();
    const { paths } = await refused(tenant, ['POST', '/tokens'], {
      id: 'own',
      type: 'card',
      data: { number: marker, cvc: marker },
      mask: '{{ ',
      containers: ['x'],
      metadata: { k: long(501) },
      search_indexes: ['{{ '],
      fingerprint_expression: '{{ ',
      expires_at: marker,
    });
    assert.deepEqual(paths.sort(), [
      'containers[0]',
      'data.cvc',
      'data.number',
      'expires_at',
      'fingerprint_expression',
      'mask',
      'metadata.k',
      'search_indexes[0]',
    ]);
  });

  test('400: nesting, integers and patches up to their limits are kept, beyond they are refused', async () => {
    const tenant = await tenants();
    const create = (text: string) => `{"type":"token","id":"own","data":${text}}`;
    const kept = [nested(64), '9007199254740991', '-9007199254740991', '1.5e-7'];
    for (const text of kept) {
      const created = await tenant.send('POST', '/tokens', { body: create(text) });
      assert.equal(JSON.stringify(created.body.data), text, created.text);
      await tenant.send('DELETE', '/tokens/own');
    }
    await tenant.token({ id: 'own', type: 'token', data: { a: 1 } });
    const beyond = [nested(65), nested(150_000), '9007199254740992', '[1e400]', '{"a":-1e309}'];
    for (const text of beyond) {
      const other = create(text).replace('own', 'other');
      assert.deepEqual((await refused(tenant, ['POST', '/tokens'], other)).paths, ['data']);
      for (const name of ['data', 'mask']) {
        const patch = `{"${name}":${text}}`;
        assert.deepEqual((await refused(tenant, ['PATCH', '/tokens/own'], patch)).paths, [name]);
      }
    }
    const half = 'x'.repeat(600_000);
    const grown = { data: { b: half } };
    assert.equal((await tenant.send('PATCH', '/tokens/own', { body: grown })).status, 200);
    const { paths } = await refused(tenant, ['PATCH', '/tokens/own'], { data: { c: half } });
    assert.deepEqual(paths, ['data']);
  });
});
