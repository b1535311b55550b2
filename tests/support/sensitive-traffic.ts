/** Traffic that brings a value of its own into every place where a request can carry one. */
import assert from 'node:assert/strict';
import { randomBytes, randomInt } from 'node:crypto';
import { newAuthority } from '../../src/keys/temporary-authority.ts';
import { linesSent } from './lines.ts';
import { createApplication, managementKey, type Received, request, type Sent } from './vault.ts';

export interface Traffic {
  /** Values that must stay unknown to everybody but the callers. */
  readonly secrets: readonly string[];
  /** Values documented as not sensitive, so they are found where secrets are looked for. */
  readonly open: readonly string[];
  readonly answers: readonly Received[];
}

/** Sends everything once; what should succeed is asserted to have succeeded. */
export async function sendSensitiveTraffic(url: string): Promise<Traffic> {
  const secrets: string[] = [managementKey];
  const open: string[] = [];
  const answers: Received[] = [];
  const secret = (value = `s${word()}`) => {
    secrets.push(value);
    return value;
  };
  const notSecret = (value = `o${word()}`) => {
    open.push(value);
    return value;
  };
  const send = async (status: number, target: string, sent: Sent) => {
    const [method = '', path = ''] = target.split(' ');
    const answer = await request(url + path, method, sent);
    assert.equal(answer.status, status, `${target}: ${answer.text}`);
    answers.push(answer);
    return answer;
  };
  const key = secret(await createApplication(url));
  const masking = secret(await createApplication(url, { permissions: ['token:read'] }));
  const create = (body: object, headers = {}) => send(201, 'POST /tokens', { key, body, headers });
  const refuse = (status: number, body: unknown, headers = {}) =>
    send(status, 'POST /tokens', { key, body, headers });

  // Kept: every type, every kind of JSON, every attribute that is computed from data.
  const indexes = { search_indexes: ['{{ data }}', '{{ data | last4 }}'] };
  const metadata = { note: notSecret() };
  const bank = { routing_number: '021000021', account_number: secret(digits(17)) };
  for (const [type, data, more] of [
    ['token', secret(), { metadata, ...indexes, fingerprint_expression: '{{ data }}' }],
    [
      'token',
      { [secret()]: [secret(), { deep: secret(`ü☃ ${word()}`) }], n: +secret(digits(15)) },
      {},
    ],
    ['token', [+secret(digits(15)), secret()], { mask: ['{{ data[1] | reveal_last: 4 }}'] }],
    ['card', { number: secret(cardNumber()), expiration_month: 1, expiration_year: 2031 }, {}],
    ['card_number', secret(cardNumber()), indexes],
    ['bank', bank, {}],
    ['us_bank_account_number', secret(digits(17)), indexes],
    ['social_security_number', secret(`${digits(3)}-${digits(2)}-${digits(4)}`), {}],
    ['employer_id_number', secret(`${digits(2)}-${digits(7)}`), {}],
  ] as const) {
    const { id } = (await create({ type, data, ...more })).body;
    await send(200, `GET /tokens/${id}`, { key });
    await send(200, `GET /tokens/${id}`, { key: masking });
  }

  // Repeated, deduplicated, updated, deleted.
  const body = { type: 'token', data: secret(), deduplicate_token: true };
  const once = { 'svc-idempotency-key': word() };
  const { id } = (await create(body, once)).body;
  await create(body, once);
  await create(body);
  const patch = { data: secret(), metadata: { patched: notSecret() } };
  await send(200, `PATCH /tokens/${id}`, { key, body: patch, headers: { ...once } });
  await send(204, `DELETE /tokens/${id}`, { key });
  const application = { name: 'another', type: 'private', permissions: ['token:create'] };
  const made = { key: managementKey, body: application, headers: once };
  secret((await send(201, 'POST /applications', made)).body.key);
  const publicKey = secret(
    await createApplication(url, { type: 'public', permissions: ['token:create'] }),
  );
  const session = (await send(201, 'POST /sessions', { key: publicKey })).body;
  secret(session.session_key);
  secret(session.nonce);

  // Brought by the other ways in: an intent, lines, a body of values.
  const permissions = ['token-intent:create', 'token-intent:read', 'token:create'];
  const intending = secret(await createApplication(url, { permissions }));
  const number = secret(cardNumber());
  const intent = { type: 'card', data: { number, expiration_month: 1, expiration_year: 2031 } };
  const intended = await send(201, 'POST /token-intents', { key: intending, body: intent });
  await send(200, `GET /token-intents/${intended.body.id}`, { key: intending });
  const convert = { token_intent_id: intended.body.id };
  await send(201, 'POST /tokens', { key: intending, body: convert });
  const lines = [
    { type: 'token', data: secret() },
    { type: secret(), data: secret() },
  ];
  await send(200, 'POST /tokens/bulk', { key, ...linesSent(lines) });
  await send(200, 'POST /tokenize', { key, body: { a: [secret(), secret()] } });

  // Of a proxy: its key, its secrets, and where it sends.
  const client = newAuthority().issue('client of a proxy');
  const proxy = {
    name: notSecret(),
    destination_url: `https://psp.example.com/${secret()}`,
    configuration: { API_KEY: secret(), [secret()]: 'x' },
    client_certificate: client.cert,
    client_key: client.key,
  };
  for (const line of client.key.split('\n').slice(1, -2)) secret(line);
  const manage = { key: managementKey, headers: { 'svc-idempotency-key': word() } };
  const proxied = await send(201, 'POST /proxies', { ...manage, body: proxy });
  secret(proxied.body.key);
  const proxyPath = `/proxies/${proxied.body.id}`;
  const more = { configuration: { MORE: secret() } };
  await send(204, `PATCH ${proxyPath}`, { key: managementKey, body: more });
  await send(200, `PUT ${proxyPath}`, { key: managementKey, body: proxy });
  await send(200, 'GET /proxies', { key: managementKey });
  for (const wrong of [
    { destination_url: `http://${secret()}.example` },
    { configuration: { A: secret().padEnd(10_001, 'x') } },
    { client_key: secret() },
    { allowed_paths: [secret()] },
    { application: { id: secret() } },
  ]) {
    await send(400, 'POST /proxies', { key: managementKey, body: { ...proxy, ...wrong } });
  }
  await send(204, `DELETE ${proxyPath}`, { key: managementKey });

  // Of a reactor: its code, its secrets, what its callers give it, and what it logs and fails with.
  const reactor = {
    name: notSecret(),
    code: `module.exports = async (req) => { const own = '${secret()}'; console.log(own, req.args.a);
      if (req.args.throws) throw new Error(req.args.a); return { raw: req.args, tokenize: req.args.a } }`,
    configuration: { API_KEY: secret(), [secret()]: 'x' },
  };
  const written = { key: managementKey, headers: { 'svc-idempotency-key': word() } };
  const stored = await send(201, 'POST /reactors', { ...written, body: reactor });
  const reactorPath = `/reactors/${stored.body.id}`;
  const calling = secret(
    await createApplication(url, { permissions: ['reactor:invoke', 'token:create'] }),
  );
  const given = () => ({ key: calling, body: { args: { a: secret() } } });
  await send(200, `POST ${reactorPath}/react`, { ...given(), headers: once });
  await send(500, `POST ${reactorPath}/react`, {
    key: calling,
    body: { args: { a: secret(), throws: true } },
  });
  await send(202, `POST ${reactorPath}/react-async`, given());
  await send(400, `POST ${reactorPath}/react`, { key: calling, body: { args: secret() } });
  await send(400, `POST ${reactorPath}/react`, {
    key: calling,
    body: { args: { a: `{{ '${secret()}' | nosuch }}` } },
  });
  await send(200, `GET ${reactorPath}/logs`, { key: managementKey });
  const coded = { ...reactor, code: `throw new Error('${secret()}')` };
  await send(422, 'POST /reactors', { key: managementKey, body: coded });

  // Refused: the value is wrong, is in the wrong place, or comes with something wrong.
  const token = (more: object = {}) => ({ type: 'token', data: secret(), ...more });
  for (const [status, wrong] of [
    [400, { type: secret(), data: secret() }],
    [400, { type: 'card', data: { number: secret(digits(15)), expiration_month: secret() } }],
    [400, { type: 'card', data: { number: secret(cardNumber()), cvc: secret() } }],
    [400, { type: 'bank', data: { ...bank, routing_number: secret(digits(10)) } }],
    [400, token({ unknown: secret() })],
    [400, token({ expires_at: secret() })],
    [400, token({ containers: [`/${secret()}/ /`] })],
    [400, token({ id: `${secret()}/` })],
    [400, token({ metadata: { long: secret().padEnd(501, 'x') } })],
    [400, token({ mask: `{{ data | ${secret()} }}` })],
    [400, token({ mask: { a: `{{ ${secret()}` } })],
    [400, token({ fingerprint_expression: `{{ data | append: '${secret()}' | nosuch }}` })],
    [400, token({ search_indexes: ["{{ data | json: '$[' }}"] })],
    [400, token({ search_indexes: ['{{ data.none.there }}'] })],
    [400, { type: 'token', data: nested(secret(), 80) }],
    [400, { type: 'token', data: [secret(), 2 ** 60] }],
  ] as const) {
    await refuse(status, wrong);
  }
  await create(token({ id: 'taken' }));
  await refuse(409, token({ id: 'taken' }));
  await refuse(400, `{"type":"token","data":"${secret()}"`);
  await refuse(400, `{"type":"token","data":${secret()}}`);
  await refuse(400, Buffer.concat([Buffer.from(`"${secret()}`), Buffer.from([0xff])]));
  await refuse(413, token({ mask: 'x'.repeat(1_100_000) }));
  await refuse(415, token(), { 'content-type': 'text/plain' });
  await send(403, 'POST /tokens', { key: masking, body: token() });
  await send(401, 'POST /tokens', { key: secret(`${word()}${word()}${word()}`), body: token() });
  await send(404, `GET /tokens/${word()}?q=${secret()}`, { key });
  await send(404, `GET /nowhere/${secret()}`, { key });
  await send(405, `PUT /tokens/${secret()}`, { key, body: token() });
  await send(400, `GET /logs?start=${secret()}`, { key: managementKey });
  return { secrets, open, answers };
}

/** Eighty bits that occur nowhere else. */
function word(): string {
  return BigInt(`0x${randomBytes(10).toString('hex')}`)
    .toString(36)
    .padStart(16, '0');
}

/** A number that does not begin with zero. */
function digits(length: number): string {
  return Array.from({ length }, (_, index) => randomInt(index === 0 ? 1 : 0, 10)).join('');
}

/** A number from a range for tests, with its Luhn digit. */
function cardNumber(): string {
  const body = `400000${digits(9)}`;
  const sum = [...body].reduceRight((total, digit, index) => {
    const doubled = Number(digit) * ((body.length - index) % 2 === 1 ? 2 : 1);
    return total + (doubled > 9 ? doubled - 9 : doubled);
  }, 0);
  return `${body}${(10 - (sum % 10)) % 10}`;
}

function nested(value: string, levels: number): unknown {
  return levels === 0 ? value : [nested(value, levels - 1)];
}
