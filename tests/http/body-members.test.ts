/** Members of bodies and lines are counted before anything is parsed; their limit depends on the kind of the key. */
import assert from 'node:assert/strict';
import { after, describe, it, test } from 'node:test';
import fc from 'fast-check';
import { exceededLimit } from '../../src/base/json.ts';
import { publicExpressionsMax } from '../../src/proxies/calls/call-texts.ts';
import { membersForm, membersMax } from '../../src/rules/members.ts';
import { encrypted } from '../support/client-encryption.ts';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { bulk } from '../support/lines.ts';
import { createProxy } from '../support/proxies.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { tenantsOf } from '../support/tenant.ts';

const { destination, url, environment } = await startCalled({ after });

describe('the members of JSON', () => {
  const membersOf = (value: unknown): number =>
    typeof value === 'object' && value !== null
      ? Object.values(value).reduce<number>((sum, one) => sum + 1 + membersOf(one), 0)
      : 0;

  it('are those of the parsed value, with and without white space, and not what stands in a text', () => {
    const text = fc.string({ unit: fc.constantFrom('[', '{', '"', '\\', ',', ']', ' ', 'é') });
    const json = fc.letrec<{ json: unknown }>((tie) => ({
      json: fc.oneof(
        { depthSize: 'medium' },
        text,
        fc.array(tie('json'), { maxLength: 4 }),
        fc.dictionary(text, tie('json'), { maxKeys: 4 }),
      ),
    })).json;
    const property = fc.property(json, fc.constantFrom(undefined, '\t', 2), (value, space) => {
      const bytes = Buffer.from(JSON.stringify(value, undefined, space));
      const members = membersOf(value);
      const beyond = (most: number) => exceededLimit(bytes, { levelsMax: 999, membersMax: most });
      assert.equal(beyond(members), undefined);
      if (members > 0) assert.equal(beyond(members - 1), 'membersMax');
    });
    fc.assert(property, { numRuns: 2000 });
  });
});

onBothEngines('Members of bodies', (engine) => {
  const tenants = tenantsOf(engine, { environment });
  /** A token request with so many members in all. */
  const withMembers = (count: number) => ({
    type: 'token',
    data: new Array<number>(count - 2).fill(0),
  });

  test('a public key and a session may send 10,000, a private and a management key 200,000', async () => {
    const tenant = await tenants();
    const keys = {
      public: await tenant.application({ type: 'public', permissions: ['token:create'] }),
      private: tenant.key,
    };
    for (const kind of ['public', 'private'] as const) {
      const max = membersMax[kind];
      const send = (count: number) =>
        tenant.send('POST', '/tokens', { key: keys[kind], body: withMembers(count) });
      const most = await send(max);
      assert.equal(most.status, 201, most.text);
      const refused = await send(max + 1);
      assert.equal(refused.status, 400);
      assert.deepEqual(refused.body.errors, { body: [membersForm(max)] });
    }
    const counts = await tenant.counts();
    assert.equal(counts['tokens'], 2);
    const invalidAndWide = `{${'"a":1,'.repeat(membersMax.public)}`;
    const unparsed = await tenant.send('POST', '/tokens', {
      key: keys.public,
      body: invalidAndWide,
    });
    assert.deepEqual(unparsed.body.errors, { body: [membersForm(membersMax.public)] });
  });

  test('400: of lines only the one with too many members fails', async () => {
    const tenant = await tenants();
    const max = membersMax.private;
    const answered = await bulk(tenant, [withMembers(max), withMembers(max + 1)]);
    assert.deepEqual(
      answered.map(({ status }) => status),
      [201, 400],
    );
    assert.deepEqual(answered[1]?.problem.errors, { line: [membersForm(max)] });
  });

  test('what a client encrypted has no more of them than a body', async () => {
    const tenant = await tenants();
    const permissions = ['token:create', 'token-intent:create'];
    const key = await tenant.application({ type: 'public', permissions });
    const made = await tenant.send('POST', '/keys', { key: tenant.managementKey, body: {} });
    const wide = (count: number) => `[${new Array<string>(count).fill('{}').join()}]`;
    const most = await encrypted(made.body, wide(membersMax.public));
    const beyond = await encrypted(made.body, wide(membersMax.public + 1));
    for (const path of ['/tokens', '/token-intents']) {
      const send = (jwe: string) =>
        tenant.send('POST', path, { key, body: { type: 'token', encrypted: jwe } });
      assert.equal((await send(most)).status, 201);
      const refused = await send(beyond);
      assert.equal(refused.status, 400, refused.text);
      assert.deepEqual(refused.body.errors, { encrypted: [membersForm(membersMax.public)] });
    }
    const body = { type: 'token', encrypted: beyond };
    assert.equal((await tenant.send('POST', '/tokens', { body })).status, 201);
  });

  test('400: a call without a key has at most 500 expressions, one with a private key more', async () => {
    const tenant = await tenants();
    const { key } = await createProxy(tenant, { destination_url: url, require_auth: false });
    const closed = await createProxy(tenant, { destination_url: url });
    destination.behave(answer());
    const one = '{{ proxy.request.headers.x-a }}';
    const call = (count: number, headers: Record<string, string>) =>
      tenant.send('POST', '/proxy', {
        headers: { 'content-type': 'application/json', 'x-a': 'b', ...headers },
        body: JSON.stringify(new Array(count).fill(one)),
      });
    const anonymous = { 'svc-proxy-key': key };
    const before = destination.requests.length;
    const refused = [
      await call(publicExpressionsMax + 1, anonymous),
      await call(publicExpressionsMax, { ...anonymous, 'x-more': one }),
    ];
    for (const { status, text } of refused) {
      assert.equal(status, 400, text);
      assert.match(text, /at most 500 expressions/);
    }
    assert.equal(destination.requests.length, before);
    assert.equal((await call(publicExpressionsMax, anonymous)).status, 200);
    const more = await call(publicExpressionsMax + 1, { 'svc-proxy-key': closed.key });
    assert.equal(more.status, 200, more.text);
  });
});
