/** The operator's verification service as a real host: what it is asked, and every way in which it fails. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Json } from '../../src/base/json.ts';
import { pooledRandom } from '../../src/base/random.ts';
import { Secret } from '../../src/base/secret.ts';
import { failuresMax, pauseMs } from '../../src/outbound/breaker.ts';
import { createOutbound } from '../../src/outbound/call.ts';
import { createForward } from '../../src/outbound/forward.ts';
import { createBankHost, responseBytesMax } from '../../src/tokens/enrichments/bank-host.ts';
import type { BankHostConfig } from '../../src/tokens/enrichments/bank-host-config.ts';
import type { AccountVerdict, Inquiry } from '../../src/tokens/enrichments/bank-verification.ts';
import { type Answer, json, redirect, startHost } from '../support/host.ts';
import { bank } from '../support/values.ts';
import { createTestClock } from '../support/vault.ts';

const request: Json = {
  to: '{{ routing_number }}',
  account: ['{{ account_number }}', '{{ country_code }}'],
};

const vaultName = 'strongroom-0000000000000000';

async function service(t: TestContext, config: Partial<BankHostConfig> = {}) {
  const host = await startHost(t);
  const clock = createTestClock();
  const pauses: number[] = [];
  const verify = createBankHost(
    {
      outbound: createOutbound(createForward({ allow: new Set([host.name]), vaultName })),
      clock,
      random: pooledRandom(),
      pause: async (milliseconds) => void pauses.push(milliseconds),
    },
    {
      url: `${host.url}/verify`,
      headers: { authorization: 'Bearer of.a.test' },
      request,
      answer: '{{ body.status }}',
      timeoutMs: 5000,
      attemptsMax: 3,
      ...config,
    },
  );
  const account = {
    country: 'US',
    routingNumber: bank.routing_number,
    accountNumber: new Secret(bank.account_number),
  } as const;
  const plan = () => verify({ account } as unknown as Inquiry);
  const ask = async (): Promise<AccountVerdict> => {
    const verification = await plan();
    return 'request' in verification ? verification.request() : verification;
  };
  return { host, clock, pauses, plan, ask };
}

test('it is asked by the request template with the configured headers, and only when it is requested', async (t) => {
  const { host, plan, ask } = await service(t);
  host.answer(json({ status: 'enabled' }));
  assert.ok('request' in (await plan()));
  assert.equal(host.requests.length, 0);
  assert.deepEqual(await ask(), { status: 'enabled' });
  const [sent] = host.requests;
  assert.deepEqual([sent?.method, sent?.path], ['POST', '/verify']);
  assert.equal(sent?.headers.authorization, 'Bearer of.a.test');
  assert.equal(sent?.headers['content-type'], 'application/json');
  assert.deepEqual(JSON.parse(sent?.body ?? ''), {
    to: bank.routing_number,
    account: [bank.account_number, 'US'],
  });
});

test('every status comes out of the answer expression, by body and by HTTP status', async (t) => {
  const answer =
    "{% if status == 404 %}disabled{% else %} {{ body.list[0].ok | replace: 'yes', 'enabled' }} {% endif %}";
  const { host, ask } = await service(t, { answer });
  host.answer(json({ list: [{ ok: 'yes' }] }));
  assert.deepEqual(await ask(), { status: 'enabled' });
  host.answer(json({ list: [{ ok: 'inconclusive' }] }));
  assert.deepEqual(await ask(), { status: 'inconclusive' });
  host.answer((response) => response.writeHead(404).end('no such account'));
  assert.deepEqual(await ask(), { status: 'disabled' });
});

const echo: Answer = (response, { body }) => response.end(body);

/** How a service can be of no use, and how often it is asked before that is accepted. */
const failures: readonly { name: string; answer: Answer; failure: RegExp; asked: number }[] = [
  { name: 'no JSON', answer: (response) => response.end('enabled'), failure: /maps to/, asked: 1 },
  { name: 'another word', answer: json({ status: 'fine' }), failure: /maps to/, asked: 1 },
  { name: 'no word', answer: json({ status: { enabled: true } }), failure: /maps to/, asked: 1 },
  { name: 'what it was sent', answer: echo, failure: /maps to/, asked: 1 },
  { name: 'a refusal', answer: json({ status: 401 }, 401), failure: /, 401, maps to/, asked: 1 },
  {
    name: 'an answer that is too large',
    answer: json({ status: 'enabled', filler: 'x'.repeat(responseBytesMax) }),
    failure: /size limit/,
    asked: 1,
  },
  {
    name: 'a redirect to the metadata service',
    answer: redirect('https://169.254.169.254/latest/meta-data/'),
    failure: /no public address/,
    asked: 1,
  },
  {
    name: 'a redirect that takes the account along',
    answer: redirect('https://elsewhere.example/', 307),
    failure: /would send it the body/,
    asked: 1,
  },
  { name: 'a fault', answer: json({ status: 'enabled' }, 500), failure: /returned 500/, asked: 3 },
  { name: 'overload', answer: json({ status: 'enabled' }, 429), failure: /returned 429/, asked: 3 },
  {
    name: 'a connection that breaks',
    answer: (response) => response.destroy(),
    failure: /closed the connection/,
    asked: 3,
  },
];

for (const { name, answer, failure, asked } of failures) {
  test(`${name} is a failure that quotes nothing, after ${asked} attempts`, async (t) => {
    const { host, pauses, ask } = await service(t);
    host.answer(answer);
    const verdict = await ask();
    assert.ok(verdict.status === undefined);
    assert.match(verdict.failure, failure);
    assert.doesNotMatch(verdict.failure, new RegExp(`${bank.account_number}|fine|Bearer`));
    assert.equal(host.requests.length, asked);
    assert.equal(pauses.length, asked - 1);
  });
}

test('a late answer is a failure when the time is over, for all attempts together', async (t) => {
  const { host, pauses, ask } = await service(t, { timeoutMs: 1000 });
  host.answer(() => undefined);
  const verdict = await ask();
  assert.ok(verdict.status === undefined);
  assert.match(verdict.failure, /time limit/);
  assert.equal(host.requests.length, 1);
  assert.deepEqual(pauses, []);
});

test('a service that recovers between attempts answers; each pause is longer', async (t) => {
  const { host, pauses, ask } = await service(t);
  host.answer((response, received) =>
    json({ status: 'disabled' }, host.requests.length < 3 ? 503 : 200)(response, received),
  );
  assert.deepEqual(await ask(), { status: 'disabled' });
  const [first = 0, second = 0] = pauses;
  assert.ok(first >= 100 && first < 200 && second >= 200 && second < 400, String(pauses));
});

test('a service that keeps failing is left alone, and nothing is sent to it meanwhile', async (t) => {
  const { host, clock, plan, ask } = await service(t, { attemptsMax: 1 });
  host.answer(json({}, 500));
  for (let failed = 0; failed < failuresMax; failed += 1) await ask();
  assert.equal(host.requests.length, failuresMax);
  const left = await plan();
  assert.ok(!('request' in left) && left.status === undefined);
  assert.ok(left.retryAfterMs > pauseMs - 5000 && left.retryAfterMs <= pauseMs);
  assert.equal(host.requests.length, failuresMax);
  host.answer(json({ status: 'enabled' }));
  clock.advance(pauseMs);
  assert.deepEqual(await ask(), { status: 'enabled' });
});
