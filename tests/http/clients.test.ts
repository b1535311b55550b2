/** Clients of the public product, as they are published, over every resource that the vault has. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { encrypted } from '../support/client-encryption.ts';
import { installed, reasonWithout } from '../support/development-packages.ts';
import { onBothEngines } from '../support/engines.ts';
import { createProxy } from '../support/proxies.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { invoker } from '../support/reactors.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import { visa } from '../support/values.ts';
import { revealEverything } from '../support/vault.ts';

const current = '@basis-theory/node-sdk';
const older = '@basis-theory/basis-theory-js';
const [currentClient, olderClient] = await Promise.all([installed(current), installed(older)]);

const called = await startCalled({ after });

const rule = { ...revealEverything, description: 'everything' };
const intents = ['token-intent:create', 'token-intent:read', 'token-intent:delete'];

async function privateKeyOf(tenant: TestTenant): Promise<string> {
  return tenant.application({ rules: [rule], permissions: intents });
}

async function collect<T>(pages: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of pages) items.push(item);
  return items;
}

onBothEngines('the current Node SDK', (engine) => {
  const tenants = tenantsOf(engine, { environment: { STRONGROOM_HEADER_PREFIXES: 'SVC,BT' } });
  const skip = reasonWithout({ [current]: currentClient });
  const clientFor = (tenant: TestTenant, apiKey: string) =>
    new currentClient.BasisTheoryClient({ apiKey, environment: tenant.vault.url, maxRetries: 0 });

  test('tokens: create once per idempotency key, read, update, list, search, delete', {
    skip,
  }, async () => {
    const tenant = await tenants();
    const { tokens } = clientFor(tenant, await privateKeyOf(tenant));
    const request = {
      type: 'card',
      data: visa,
      mask: { number: '{{ data.number, reveal_last: 4 }}' },
      containers: ['/pci/high/'],
      metadata: { camelKey: 'v', 'with space': 'w' },
      searchIndexes: ['{{ data.number | last4 }}'],
      fingerprintExpression: '{{ data.number }}',
      expiresAt: '8/26/2030 7:23:57 PM -07:00',
    };
    const created = await tokens.create(request, { idempotencyKey: 'idem-1', correlationId: 'c' });
    const again = await tokens.create({ ...request, metadata: {} }, { idempotencyKey: 'idem-1' });
    assert.equal(again.id, created.id);
    assert.deepEqual((await tokens.get(created.id)).data, visa);
    const updated = await tokens.update(created.id, {
      data: { expiration_year: 2031 },
      metadata: { camelKey: null },
      expiresAt: null,
    });
    assert.deepEqual(updated.metadata, { 'with space': 'w' });
    for (let count = 0; count < 4; count += 1) await tokens.create({ type: 'token', data: count });
    assert.equal((await collect(await tokens.listV2({ size: 2 }))).length, 5);
    const filters = { type: 'card', container: '/pci/', metadata: { 'with space': 'w' } };
    assert.equal((await collect(await tokens.listV2(filters))).length, 1);
    const search = { query: 'data:4242', size: 1 };
    assert.equal((await collect(await tokens.searchV2(search))).length, 1);
    await tokens.delete(created.id);
    await assert.rejects(tokens.get(created.id), currentClient.BasisTheory.NotFoundError);
  });

  test('tokenize and detokenize, token intents, enrichments', { skip }, async () => {
    const tenant = await tenants();
    const { tokens, tokenIntents, enrichments } = clientFor(tenant, await privateKeyOf(tenant));
    const made = await tokens.tokenize({ name: 'Ada', card: { type: 'card', data: visa } });
    const plain = await tokens.detokenize({
      name: `{{ ${made.name} }}`,
      number: `{{ ${made.card.id} | json: '$.number' }}`,
      tokens: [`{{ ${made.card.id} }}`],
    });
    assert.equal(plain.name, 'Ada');
    assert.equal(plain.number, visa.number);
    const list = await tokens.detokenize({ tokens: [`{{ ${made.card.id} }}`] });
    assert.equal(list.tokens[0].number, visa.number);
    const intent = await tokenIntents.create({ type: 'card', data: visa });
    assert.equal((await tokenIntents.get(intent.id)).id, intent.id);
    assert.equal((await tokens.create({ tokenIntentId: intent.id })).type, 'card');
    const other = await tokenIntents.create({ type: 'card', data: visa });
    await tokenIntents.delete(other.id);
    const account = await tokens.create({
      type: 'bank',
      data: { routing_number: '021000021', account_number: '00001' },
    });
    const verified = await enrichments.bankAccountVerify({ tokenId: account.id });
    assert.equal(verified.status, 'enabled');
    assert.equal((await enrichments.getcarddetails({ bin: '424242' })).brand, 'visa');
  });

  test('applications, their keys, templates and permissions', { skip }, async () => {
    const tenant = await tenants();
    const manager = clientFor(tenant, tenant.managementKey);
    const { applications, applicationKeys, applicationTemplates, permissions } = manager;
    const created = await applications.create({ name: 'a', type: 'private', rules: [rule] });
    assert.equal((await applications.get(created.id)).name, 'a');
    await applications.update(created.id, { name: 'b', rules: [rule] });
    assert.ok(
      (await collect<{ id: string }>(await applications.list())).some(
        ({ id }) => id === created.id,
      ),
    );
    assert.equal((await clientFor(tenant, created.key).applications.getByKey()).id, created.id);
    const key = await applicationKeys.create(created.id);
    assert.equal((await applicationKeys.list(created.id)).length, 2);
    assert.equal((await applicationKeys.get(created.id, key.id)).id, key.id);
    await applicationKeys.delete(created.id, key.id);
    await applications.delete(created.id);
    await assert.rejects(applications.get(created.id), currentClient.BasisTheory.NotFoundError);
    const [template] = await applicationTemplates.list();
    assert.equal((await applicationTemplates.get(template.id)).id, template.id);
    assert.ok((await permissions.list({ applicationType: 'private' })).length > 0);
  });

  test('sessions: created without a body, authorized, used', { skip }, async () => {
    const tenant = await tenants();
    const key = await privateKeyOf(tenant);
    const { tokens, sessions } = clientFor(tenant, key);
    const { id } = await tokens.create({ type: 'token', data: 'secret' });
    const publicKey = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const session = await clientFor(tenant, publicKey).sessions.create();
    await sessions.authorize({ nonce: session.nonce, permissions: ['token:read'] });
    assert.equal((await clientFor(tenant, session.sessionKey).tokens.get(id)).id, id);
  });

  test('proxies, encryption keys, logs and the tenant', { skip }, async () => {
    const tenant = await tenants();
    const { proxies, keys, logs, tenants: own } = clientFor(tenant, tenant.managementKey);
    const destinationUrl = 'https://api.example.com/v1';
    const proxy = await proxies.create({
      name: 'p',
      destinationUrl,
      configuration: { camelKey: 'z' },
    });
    assert.equal((await proxies.get(proxy.id)).destinationUrl, destinationUrl);
    await proxies.update(proxy.id, { name: 'q', destinationUrl });
    await proxies.patch(proxy.id, { name: 'r' });
    assert.deepEqual(
      (await collect<{ name: string }>(await proxies.list({ id: [proxy.id], name: 'r' }))).map(
        ({ name }) => name,
      ),
      ['r'],
    );
    await proxies.delete(proxy.id);
    const key = await keys.create({ expiresAt: new Date(Date.now() + 86_400_000) });
    assert.ok((await keys.get(key.keyId)).expiresAt);
    assert.equal((await keys.list()).length, 1);
    await keys.delete(key.keyId);
    await assert.rejects(keys.get(key.keyId), currentClient.BasisTheory.NotFoundError);
    assert.ok((await collect(await logs.list({ entityType: 'proxy', size: 2 }))).length >= 4);
    assert.ok((await logs.getEntityTypes()).length > 0);
    const { name, settings } = await own.self.get();
    assert.equal((await own.self.update({ name: `${name} 2`, settings })).name, `${name} 2`);
    assert.equal((await own.self.getUsageReports()).totalTokens, 0);
  });

  test('client encryption keys: created, used for a token and a token intent, deleted', {
    skip,
  }, async () => {
    const tenant = await tenants();
    const { keys } = clientFor(tenant, tenant.managementKey);
    const { tokens, tokenIntents } = clientFor(tenant, await privateKeyOf(tenant));
    const created = await keys.create();
    assert.equal((await keys.get(created.keyId)).keyId, created.keyId);
    assert.deepEqual(
      (await keys.list()).map(({ keyId }: { keyId: string }) => keyId),
      [created.keyId],
    );
    const key = { id: created.keyId, public_key_pem: created.publicKeyPem };
    const sealed = await encrypted(key, JSON.stringify(visa));
    const token = await tokens.create({ type: 'card', encrypted: sealed });
    assert.deepEqual((await tokens.get(token.id)).data, visa);
    const intent = await tokenIntents.create({ type: 'card', encrypted: sealed });
    const converted = await tokens.create({ tokenIntentId: intent.id });
    assert.equal((await tokens.get(converted.id)).data.number, visa.number);
    const made = await tokens.tokenize({ card: { type: 'card', encrypted: sealed } });
    assert.deepEqual((await tokens.get(made.card.id)).data, visa);
    await keys.delete(created.keyId);
    await assert.rejects(keys.get(created.keyId), currentClient.BasisTheory.NotFoundError);
    await assert.rejects(
      tokens.create({ type: 'card', encrypted: sealed }),
      currentClient.BasisTheory.BadRequestError,
    );
  });

  test('webhooks: created, read, updated several times in a row, listed, deleted', {
    skip,
  }, async () => {
    const tenant = await tenants();
    const { webhooks } = clientFor(tenant, tenant.managementKey);
    await webhooks.ping();
    const types = await webhooks.events.list();
    assert.ok(types.includes('token.created'));
    const request = {
      name: 'w',
      url: 'https://receiver.example.com/',
      notifyEmail: 'who@example.com',
      events: ['token.created', 'token.updated'],
    };
    const created = await webhooks.create(request);
    assert.deepEqual(
      [created.status, created.name, created.url, created.notifyEmail, created.events],
      ['enabled', 'w', request.url, request.notifyEmail, request.events],
    );
    for (const name of ['x', 'y', 'z']) {
      const updated = await webhooks.update(created.id, { ...request, name, events: types });
      assert.deepEqual([updated.name, updated.events], [name, types]);
    }
    const read = await webhooks.get(created.id);
    assert.deepEqual([read.id, read.name, read.tenantId], [created.id, 'z', tenant.id]);
    assert.ok(read.createdAt && read.createdBy && read.modifiedAt && read.modifiedBy);
    assert.deepEqual(
      (await webhooks.list()).data.map(({ id }: { id: string }) => id),
      [created.id],
    );
    const { BasisTheory } = currentClient;
    const unknown = { ...request, events: ['token:created'] };
    await assert.rejects(webhooks.create(unknown), BasisTheory.BadRequestError);
    await webhooks.delete(created.id);
    await assert.rejects(webhooks.get(created.id), BasisTheory.NotFoundError);
  });

  test('reactors: stored, called at once and later', { skip }, async () => {
    const tenant = await tenants();
    const { reactors } = clientFor(tenant, tenant.managementKey);
    const code = 'module.exports = function (req) {return {raw: req.args}}';
    const reactor = await reactors.create({ name: 'r', code, configuration: { camelKey: 'z' } });
    assert.equal((await reactors.get(reactor.id)).code, code);
    await reactors.update(reactor.id, { name: 's', code });
    await reactors.patch(reactor.id, { name: 't', configuration: { camelKey: 'y' } });
    const listed = await collect<{ name: string }>(await reactors.list({ name: 't' }));
    assert.deepEqual(
      listed.map(({ name }) => name),
      ['t'],
    );
    const caller = clientFor(tenant, await invoker(tenant)).reactors;
    const args = { key1: 'Key1', camelKey: { nested: 1 } };
    assert.deepEqual((await caller.react(reactor.id, { args })).raw, args);
    const { asyncReactorRequestId } = await caller.reactAsync(reactor.id, { args });
    const result = () => caller.results.get(reactor.id, asyncReactorRequestId);
    await assert.rejects(result(), currentClient.BasisTheory.NotFoundError);
    const { reactorRuns } = tenant.vault.running.vault;
    await reactorRuns?.look();
    await reactorRuns?.settled();
    assert.deepEqual((await result()).raw, args);
    await reactors.delete(reactor.id);
    await assert.rejects(reactors.get(reactor.id), currentClient.BasisTheory.NotFoundError);
  });

  test('refusals are the errors that it knows', { skip }, async () => {
    const tenant = await tenants();
    const { BasisTheory } = currentClient;
    const { tokens, proxies, webhooks } = clientFor(tenant, await privateKeyOf(tenant));
    await assert.rejects(tokens.create({ type: 'card', data: {} }), BasisTheory.BadRequestError);
    await assert.rejects(proxies.list(), BasisTheory.ForbiddenError);
    const nobody = clientFor(tenant, 'no-such-key').tokens;
    await assert.rejects(nobody.get('x'), BasisTheory.UnauthorizedError);
    await webhooks.ping();
  });
});

onBothEngines('the older JavaScript library', (engine) => {
  const tenants = tenantsOf(engine, {
    environment: { STRONGROOM_HEADER_PREFIXES: 'SVC,BT', ...called.environment },
  });
  const skip = reasonWithout({ [older]: olderClient });
  const clientFor = (tenant: TestTenant, key: string) => {
    // It takes http for this host name alone.
    const apiBaseUrl = tenant.vault.url.replace('127.0.0.1', 'localhost');
    return new olderClient.BasisTheory().init(key, { apiBaseUrl, disableTelemetry: true });
  };

  test('tokens: create once per idempotency key, read, update, list, search, delete', {
    skip,
  }, async () => {
    const tenant = await tenants();
    const client = await clientFor(tenant, await privateKeyOf(tenant));
    const { tokens } = client;
    const request = { type: 'card', data: visa, metadata: { k1: 'v1', kTwo: 'v2' } };
    const indexed = { ...request, searchIndexes: ['{{ data.number | last4 }}'] };
    const created = await tokens.create(indexed, { idempotencyKey: 'idem-1', correlationId: 'c' });
    assert.equal((await tokens.create(request, { idempotencyKey: 'idem-1' })).id, created.id);
    assert.deepEqual((await tokens.retrieve(created.id)).data, visa);
    await tokens.update(created.id, { data: { expiration_year: 2031 } });
    const query = { id: [created.id, 'none'], type: undefined, metadata: { k1: 'v1', kTwo: 'v2' } };
    const list = await tokens.list({ ...query, page: 1, size: 5 });
    assert.deepEqual([list.pagination.totalItems, list.data.length], [1, 1]);
    const found = await tokens.search({ query: 'data:4242', page: 1, size: 2 });
    assert.equal(found.data[0].id, created.id);
    const made = await client.tokenize({ first: 'Ada' });
    assert.equal((await tokens.retrieve(made.first)).data, 'Ada');
    await tokens.delete(created.id);
    await assert.rejects(tokens.retrieve(created.id), { status: 404 });
  });

  test('sessions and keys: POST without a body, as a form', { skip }, async () => {
    const tenant = await tenants();
    const key = await privateKeyOf(tenant);
    const publicKey = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const session = await (await clientFor(tenant, publicKey)).sessions.create();
    const { sessions, tokens } = await clientFor(tenant, key);
    const { id } = await tokens.create({ type: 'token', data: 'secret' });
    await sessions.authorize({ nonce: session.nonce, permissions: ['token:read'] });
    assert.equal((await tokens.retrieve(id, { apiKey: session.sessionKey })).id, id);
    const manager = await clientFor(tenant, tenant.managementKey);
    const { applications, applicationKeys, applicationTemplates, permissions } = manager;
    const application = await applications.create({ name: 'a', type: 'private', rules: [rule] });
    const made = await applicationKeys.create(application.id);
    assert.equal((await applicationKeys.getById(application.id, made.id)).id, made.id);
    await applicationKeys.delete(application.id, made.id);
    await applications.update(application.id, { name: 'b', rules: [rule] });
    assert.equal((await applications.retrieve(application.id)).name, 'b');
    assert.ok((await applications.list()).pagination.totalItems > 1);
    await applications.delete(application.id);
    assert.ok((await applicationTemplates.list()).length > 0);
    assert.ok((await permissions.list()).length > 0);
  });

  test('reactors: stored, called, and an error of the code is one that it knows', {
    skip,
  }, async () => {
    const tenant = await tenants();
    const { reactors } = await clientFor(tenant, tenant.managementKey);
    const code = `const { AuthenticationError } = require('@basis-theory/basis-theory-reactor-formulas-sdk-js');
      module.exports = (req) => { if (req.args.wrong) throw new AuthenticationError(); return { raw: req.args } }`;
    const reactor = await reactors.create({ name: 'r', code, configuration: { camelKey: 'z' } });
    assert.equal((await reactors.retrieve(reactor.id)).code, code);
    await reactors.patch(reactor.id, { name: 's' });
    assert.equal((await reactors.list({ name: 's', page: 1 })).data.length, 1);
    const caller = (await clientFor(tenant, await invoker(tenant))).reactors;
    const args = { key1: 'v1' };
    assert.deepEqual((await caller.react(reactor.id, { args })).raw, args);
    await assert.rejects(caller.react(reactor.id, { args: { wrong: true } }), { status: 401 });
    await reactors.delete(reactor.id);
    await assert.rejects(reactors.retrieve(reactor.id), { status: 404 });
  });

  test('a proxy is called, and its response comes back', { skip }, async () => {
    const tenant = await tenants();
    const key = await tenant.application({
      rules: [revealEverything],
      permissions: ['proxy:invoke'],
    });
    const { id } = await (await clientFor(tenant, key)).tokens.create({ type: 'card', data: visa });
    const proxy = await createProxy(tenant, { destination_url: called.url, require_auth: true });
    called.destination.behave(async ({ response, received }) => {
      const { body } = await received;
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ digits: JSON.parse(String(body)).number.length }));
    });
    const client = await clientFor(tenant, key);
    const response = await client.proxy.post({
      path: 'charges',
      headers: { 'BT-PROXY-KEY': proxy.key },
      body: { number: `{{ ${id} | json: '$.number' }}` },
    });
    assert.deepEqual(response, { digits: 16 });
  });

  test('token intents, proxies, logs and the tenant', { skip }, async () => {
    const tenant = await tenants();
    const { tokenIntents } = await clientFor(tenant, await privateKeyOf(tenant));
    const intent = await tokenIntents.create({ type: 'card', data: visa });
    await tokenIntents.delete(intent.id);
    const manager = await clientFor(tenant, tenant.managementKey);
    const destinationUrl = 'https://api.example.com/v1';
    const proxy = await manager.proxies.create({ name: 'p', destinationUrl });
    assert.equal((await manager.proxies.retrieve(proxy.id)).destinationUrl, destinationUrl);
    await manager.proxies.patch(proxy.id, { name: 'q' });
    assert.equal((await manager.proxies.list({ name: 'q', page: 1 })).data.length, 1);
    await manager.proxies.delete(proxy.id);
    const first = await manager.logs.list({ size: 2 });
    const { next } = first.pagination;
    assert.equal((await manager.logs.list({ start: next, size: 2 })).data.length, 2);
    assert.equal((await manager.tenants.retrieveUsageReport()).tokenReport.totalTokens, 0);
    const { name } = await manager.tenants.retrieve();
    assert.equal((await manager.tenants.update({ name: `${name} 2` })).name, `${name} 2`);
  });
});
