/** What the client shows: values can be read, and are in no inspection, no log line and no error. */
import assert from 'node:assert/strict';
import { Console } from 'node:console';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { type CardData, StrongroomError } from '../../packages/client/src/client.ts';
import { clientOf, clientsOf, interceptedFetch } from '../support/client.ts';
import { onBothEngines } from '../support/engines.ts';
import { tenantsOf } from '../support/tenant.ts';
import { visa } from '../support/values.ts';

/** Every way in which a program shows an object without asking for its data. */
function shownOf(value: unknown): string {
  const stream = new PassThrough();
  const console = new Console({ stdout: stream, stderr: stream });
  console.log(value);
  console.log('%o %O %s', value, value, value);
  console.error({ nested: [value] });
  console.dir(value, { depth: null, showHidden: true });
  console.table(value);
  const written = String(stream.read());
  const deep = { depth: null, showHidden: true };
  return [
    written,
    inspect(value),
    inspect(value, deep),
    inspect(value, { ...deep, getters: true }),
    inspect(value, { ...deep, customInspect: false }),
    String(value),
    `${value}`,
  ].join('\n');
}

function assertHides(value: unknown, ...secrets: readonly unknown[]): void {
  const shown = shownOf(value);
  for (const secret of secrets) {
    assert.ok(typeof secret === 'string' && secret.length > 3);
    assert.ok(!shown.includes(secret), shown);
  }
}

onBothEngines('what the client shows', (engine) => {
  const tenants = tenantsOf(engine);

  test('the data of a token can be read, copied and compared, and is in no inspection', async () => {
    const vault = clientOf(await tenants());
    const { id } = await vault.tokens.create({ id: 'hidden-card', type: 'card', data: visa });
    const token = await vault.tokens.get<CardData>(id);
    assert.equal(token.data?.number, visa.number);
    assert.deepEqual({ ...token }.data, visa);
    assert.deepEqual(JSON.parse(JSON.stringify(token)).data, visa);
    assert.deepEqual(structuredClone(token).data, visa);
    token.data = undefined as unknown as CardData;
    assert.equal(token.data, undefined);
    assertHides(await vault.tokens.get(id), visa.number);
    assert.match(inspect(await vault.tokens.get(id)), /id: 'hidden-card'.*data: '\[hidden\]'/s);
    const list = vault.tokens.list();
    assertHides(list, visa.number);
    assertHides(await list.toArray(), visa.number);
    for await (const page of list.pages()) assertHides(page, visa.number);
    for await (const exported of vault.tokens.export()) assertHides(exported, visa.number);
    const imported = vault.tokens.import([{ type: 'token', data: 'imported value' }]);
    for await (const result of imported) assertHides(result, 'imported value');
    assertHides(await vault.detokenize({ card: `{{ ${id} }}` }), visa.number);
    assertHides(
      await vault.tokenize({ a: { type: 'token', data: 'nested value' } }),
      'nested value',
    );
  });

  test('keys that are shown once are hidden, and so is the key of the client', async () => {
    const tenant = await tenants();
    const { vault, admin, site, apiKey } = await clientsOf(tenant);
    const application = await admin.applications.create({
      name: 'a',
      type: 'private',
      permissions: ['token:create'],
    });
    assertHides(application, application.key);
    const key = await admin.applications.keys.create(application.id);
    assertHides(key, key.key);
    const session = await site.sessions.create();
    assertHides(session, session.session_key, session.nonce);
    const person = await admin.people.create({ name: 'Ada', applications: [application.id] });
    const link = await admin.people.createLink(person.id);
    assertHides(link, link.code);
    const url = 'https://receiver.example.com/events';
    const webhook = await admin.webhooks.create({ name: 'w', url, events: ['token.created'] });
    assertHides(webhook, webhook.secret);
    const configuration = { PSP_KEY: 'sk_test_4711' };
    const destination_url = 'https://psp.example.com';
    const proxy = await admin.proxies.create({ name: 'p', destination_url, configuration });
    assertHides(proxy, 'sk_test_4711', proxy.key);
    assertHides(vault, apiKey);
    assertHides(vault.tokens, apiKey);
    assert.ok(!JSON.stringify(vault).includes(apiKey));
  });

  test('an error holds nothing of the request, whatever fails', async () => {
    const tenant = await tenants();
    const secrets = ['4000056655665556', 'secret value', tenant.key];
    const request = { type: 'card', data: { number: '4000056655665556', cvc: 'secret value' } };
    const create = (options: Parameters<typeof clientOf>[1], more: object = {}) =>
      clientOf(tenant, { retries: 0, ...options }).tokens.create({ ...request, ...more } as never);
    const text =
      (body: string, type: string, status = 200) =>
      async () =>
        new Response(body, { status, headers: { 'content-type': type } });
    const failures: Record<string, () => Promise<unknown>> = {
      refused: () => create({}),
      'unknown attribute': () => create({}, { surprise: 'secret value' }),
      'an invalid header of a runtime': () => create({}, { id: 'a' }),
      'a broken response': () =>
        create({ fetch: text('{"data": "secret value', 'application/json') }),
      'a page': () => create({ fetch: text('<html>secret value', 'text/html', 502) }),
      'a lost connection': () =>
        create({
          fetch: interceptedFetch(async (sent) => {
            throw new TypeError(
              `fetch failed: ${await sent.text()} ${sent.headers.get('svc-api-key')}`,
            );
          }),
        }),
      'a key of another vault': () => create({ apiKey: 'secret.value.secret.value.secret.value' }),
    };
    for (const [name, fail] of Object.entries(failures)) {
      await assert.rejects(
        fail,
        (error: unknown) => {
          assert.ok(error instanceof StrongroomError, name);
          assertHides(error, ...secrets);
          const said = [JSON.stringify(error), error.message, error.stack, String(error.cause)];
          for (const secret of secrets)
            assert.ok(!said.join().includes(secret), `${name}: ${said}`);
          return true;
        },
        name,
      );
    }
  });

  test('what the code of a reactor raises can be read, and is in no inspection', async () => {
    const { vault, admin } = await clientsOf(await tenants());
    const code = `const { BadRequestError } = require('@basis-theory/basis-theory-reactor-formulas-sdk-js');
      module.exports = async (req) => { throw new BadRequestError(req.args.value); };`;
    const { id } = await admin.reactors.create({ name: 'Raise', code });
    const args = { value: 'value in an error' };
    await assert.rejects(vault.reactors.react(id, { args }), (error: unknown) => {
      assert.ok(error instanceof StrongroomError);
      assert.match(error.code, /^reactor_/);
      assertHides({ ...error, message: error.message }, 'value in an error');
      assert.ok(!JSON.stringify(error).includes('value in an error'));
      return true;
    });
  });
});
