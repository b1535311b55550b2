/** The client does with tokens what the vault does, and once for each call, however often it is sent. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type CardData,
  ConfigurationError,
  ConflictError,
  NotFoundError,
  ValidationError,
} from '../../packages/client/src/client.ts';
import { clientOf, clientsOf, interceptedFetch } from '../support/client.ts';
import { onBothEngines } from '../support/engines.ts';
import { tenantsOf } from '../support/tenant.ts';
import { visa } from '../support/values.ts';

onBothEngines('tokens of the client', (engine) => {
  const tenants = tenantsOf(engine);

  test('create, get, update and delete do what the vault does', async () => {
    const tenant = await tenants();
    const vault = clientOf(tenant);
    const created = await vault.tokens.create({
      id: 'order 4711:card',
      type: 'card',
      data: visa,
      metadata: { order: '4711', cart: 'c' },
    });
    assert.equal(created.id, 'order 4711:card');
    assert.equal(created.card?.last4, visa.number.slice(-4));
    const read = await vault.tokens.get<CardData>(created.id);
    assert.deepEqual(read.data, visa);
    const updated = await vault.tokens.update(created.id, {
      data: { expiration_year: 2031 },
      metadata: { cart: null },
      expires_at: undefined,
    });
    assert.deepEqual(updated.metadata, { order: '4711' });
    assert.equal((await vault.tokens.get<CardData>(created.id)).data?.expiration_year, 2031);
    assert.equal(await vault.tokens.delete(created.id), undefined);
    await assert.rejects(vault.tokens.get(created.id), NotFoundError);
  });

  test('no id leads to the path of another operation', async () => {
    const vault = clientOf(await tenants());
    for (const id of ['', '.', '..']) {
      await assert.rejects(vault.tokens.get(id), ConfigurationError, id);
    }
    for (const id of ['../applications', 'a?b#c', '%2e%2e', '../key', '\\..']) {
      await assert.rejects(vault.tokens.get(id), NotFoundError, id);
    }
  });

  test('a list and a search give every token once, in pages', async () => {
    const vault = clientOf(await tenants());
    for (let count = 0; count < 7; count += 1) {
      await vault.tokens.create({
        id: `token-${count}`,
        type: 'token',
        data: `value ${count}`,
        search_indexes: ['{{ data }}'],
        metadata: { parity: count % 2 === 0 ? 'even' : 'odd' },
      });
    }
    const ids = async (tokens: AsyncIterable<{ id: string }>) => {
      const found: string[] = [];
      for await (const { id } of tokens) found.push(id);
      return found.sort();
    };
    const all = [0, 1, 2, 3, 4, 5, 6].map((count) => `token-${count}`);
    assert.deepEqual(await ids(vault.tokens.list({ size: 3 })), all);
    assert.deepEqual(await ids(vault.tokens.list({ id: ['token-1', 'token-5'] })), [
      'token-1',
      'token-5',
    ]);
    const even = ['token-0', 'token-2', 'token-4', 'token-6'];
    const metadata = { parity: 'even' };
    assert.deepEqual(await ids(vault.tokens.list({ metadata, size: 3 })), even);
    assert.deepEqual(
      await ids(vault.tokens.search({ query: 'metadata.parity:even', size: 3 })),
      even,
    );
    assert.deepEqual(await ids(vault.tokens.search('data:"value 3"')), ['token-3']);
    const pages = [];
    for await (const { data } of vault.tokens.list({ size: 3 }).pages()) pages.push(data.length);
    assert.deepEqual(pages, [3, 3, 1]);
    assert.equal((await vault.tokens.list({ size: 3 }).toArray(4)).length, 4);
    assert.deepEqual(await vault.tokens.list({ size: 3 }).toArray(0), []);
  });

  test('a list that is left early asks for no further page', async () => {
    const tenant = await tenants();
    const paths: string[] = [];
    const vault = clientOf(tenant, {
      fetch: interceptedFetch((request, send) => {
        paths.push(request.url);
        return send();
      }),
    });
    for (let count = 0; count < 3; count += 1) {
      await vault.tokens.create({ type: 'token', data: count });
    }
    paths.length = 0;
    for await (const token of vault.tokens.list({ size: 1 })) {
      assert.ok(token.id);
      break;
    }
    assert.equal(paths.length, 1);
  });

  test('a create whose response is lost is sent again and creates one token', async () => {
    const tenant = await tenants();
    let lost = 0;
    const vault = clientOf(tenant, {
      fetch: interceptedFetch(async (request, send) => {
        const response = await send();
        if (request.method !== 'POST' || lost === 2) return response;
        lost += 1;
        throw new TypeError('fetch failed');
      }),
    });
    const created = await vault.tokens.create({ type: 'token', data: 'once' });
    assert.equal(lost, 2);
    const tokens = await vault.tokens.list().toArray();
    assert.deepEqual(
      tokens.map(({ id }) => id),
      [created.id],
    );
  });

  test('a delete whose response is lost succeeds, and a second delete does not', async () => {
    const tenant = await tenants();
    let isLost = false;
    const vault = clientOf(tenant, {
      fetch: interceptedFetch(async (request, send) => {
        const response = await send();
        if (request.method !== 'DELETE' || isLost) return response;
        isLost = true;
        throw new TypeError('fetch failed');
      }),
    });
    const { id } = await vault.tokens.create({ type: 'token', data: 'gone' });
    await vault.tokens.delete(id);
    await assert.rejects(vault.tokens.delete(id), NotFoundError);
  });

  test('what reads stores no response in the vault', async () => {
    const tenant = await tenants();
    const vault = clientOf(tenant);
    const { id } = await vault.tokens.create({ type: 'token', data: 'read' });
    const { replies } = await tenant.counts();
    await vault.detokenize({ value: `{{ ${id} }}` });
    await vault.tokens.search('data:read').toArray();
    assert.equal((await tenant.counts())['replies'], replies);
  });

  test('the same idempotency key gives the same token', async () => {
    const vault = clientOf(await tenants());
    const options = { idempotencyKey: 'one-and-the-same-key' };
    const first = await vault.tokens.create({ type: 'token', data: 'a' }, options);
    const second = await vault.tokens.create({ type: 'token', data: 'a' }, options);
    assert.equal(second.id, first.id);
  });

  test('refusals are typed, with the problem document and the trace id', async () => {
    const vault = clientOf(await tenants());
    const invalid = vault.tokens.create(
      { type: 'card', data: { number: '4242' } },
      { traceId: 'order-4711' },
    );
    await assert.rejects(invalid, (error: unknown) => {
      assert.ok(error instanceof ValidationError);
      assert.equal(error.status, 400);
      assert.equal(error.code, 'validation_failed');
      assert.equal(error.traceId, 'order-4711');
      assert.deepEqual(Object.keys(error.problem.errors ?? {}), ['data.number']);
      assert.match(error.message, /data\.number/);
      return true;
    });
    await vault.tokens.create({ id: 'taken', type: 'token', data: 1 });
    await assert.rejects(
      vault.tokens.create({ id: 'taken', type: 'token', data: 2 }),
      ConflictError,
    );
  });

  test('tokenize and detokenize take and give any JSON', async () => {
    const vault = clientOf(await tenants());
    const stored = await vault.tokenize<Record<string, string>>({ first: 'Ada', last: 'Lovelace' });
    assert.match(stored['first'] ?? '', /^[0-9a-f-]{36}$/);
    const references = { name: `{{ ${stored['first']} }} {{ ${stored['last']} }}` };
    assert.deepEqual(await vault.detokenize(references), { name: 'Ada Lovelace' });
  });

  test('a page acts with a session that its server authorized', async () => {
    const tenant = await tenants();
    const { vault, site } = await clientsOf(tenant);
    const { session_key, nonce } = await site.sessions.create();
    await vault.sessions.authorize({ nonce, permissions: ['token:create'] });
    const page = clientOf(tenant, { apiKey: session_key });
    assert.ok((await page.tokens.create({ type: 'token', data: 'from a page' })).id);
  });
});
