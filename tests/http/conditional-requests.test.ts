/** ETag and If-Match (RFC 9110, 13): a change applies to the state that its caller has seen, or not at all. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { publishedIn } from '../../src/api/openapi/published-operation.ts';
import { onBothEngines } from '../support/engines.ts';
import { destination } from '../support/proxies.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import { sectionsOf, startVault } from '../support/vault.ts';

const another = '"AAAAAAAAAAAAAAAAAAAA"';
const strongTag = /^"[\w-]{20}"$/;
const code = 'module.exports = async () => ({});';

interface Edited {
  readonly path: string;
  readonly method: 'PUT' | 'PATCH';
  readonly body: (name: string) => object;
  readonly nameOf: (shown: Record<string, unknown>) => string;
  /** Where it is not the management key. */
  readonly key?: string;
}

/** One of each kind that callers change, as it is created. */
async function oneOfEach(tenant: TestTenant): Promise<readonly Edited[]> {
  const create = async (path: string, body: object, key = tenant.managementKey) => {
    const made = await tenant.send('POST', path, { key, body });
    assert.equal(made.status, 201, made.text);
    return `${path}/${made.body.id}`;
  };
  const access = { permissions: ['token:create'] };
  const role = (await tenant.send('GET', '/applications/key')).body.id;
  const person = (name: string) => ({ name, applications: [role] });
  const proxy = (name: string) => ({ name, destination_url: destination });
  const webhook = (name: string) => ({
    name,
    url: 'https://hooks.example.com/in',
    events: ['token.created'],
  });
  const application = (name: string) => ({ name, ...access });
  const reactor = (name: string) => ({ name, code });
  const nameOf = ({ name }: Record<string, unknown>) => String(name);
  return [
    {
      path: await create('/applications', { ...application('a'), type: 'private' }),
      method: 'PUT',
      body: application,
      nameOf,
    },
    { path: await create('/people', person('a')), method: 'PUT', body: person, nameOf },
    { path: await create('/proxies', proxy('a')), method: 'PUT', body: proxy, nameOf },
    {
      path: await create('/proxies', proxy('a')),
      method: 'PATCH',
      body: (name) => ({ name }),
      nameOf,
    },
    { path: await create('/reactors', reactor('a')), method: 'PUT', body: reactor, nameOf },
    {
      path: await create('/reactors', reactor('a')),
      method: 'PATCH',
      body: (name) => ({ name }),
      nameOf,
    },
    { path: await create('/webhooks', webhook('a')), method: 'PUT', body: webhook, nameOf },
    { path: '/tenants/self', method: 'PUT', body: (name) => ({ name }), nameOf },
    {
      path: await create('/tokens', { type: 'token', data: 'a' }, tenant.key),
      method: 'PATCH',
      body: (name) => ({ metadata: { name } }),
      nameOf: ({ metadata }) => (metadata as { name: string }).name,
      key: tenant.key,
    },
  ];
}

onBothEngines('conditional requests', (engine) => {
  const tenants = tenantsOf(engine);

  function callsOn(tenant: TestTenant, { path, method, body, key = tenant.managementKey }: Edited) {
    const mediaType =
      method === 'PATCH' ? { 'content-type': 'application/merge-patch+json' } : undefined;
    const condition = (ifMatch?: string) => ifMatch !== undefined && { 'if-match': ifMatch };
    return {
      read: () => tenant.send('GET', path, { key }),
      save: (name: string, ifMatch?: string, more: Record<string, string> = {}) =>
        tenant.send(method, path, {
          key,
          body: body(name),
          headers: { ...mediaType, ...condition(ifMatch), ...more },
        }),
      remove: (ifMatch: string) =>
        tenant.send('DELETE', path, { key, headers: { 'if-match': ifMatch } }),
    };
  }

  test('of 20 changes under one tag exactly one takes effect, the others are 412 and change nothing', async () => {
    const tenant = await tenants();
    for (const edited of await oneOfEach(tenant)) {
      const { read, save } = callsOn(tenant, edited);
      const where = `${edited.method} ${edited.path}`;
      const etag = (await read()).headers.get('etag') ?? '';
      assert.match(etag, strongTag, where);
      const names = Array.from({ length: 20 }, (_, at) => `name ${at}`);
      const saved = await Promise.all(names.map((name) => save(name, etag)));
      const won = saved.flatMap(({ status }, at) => (status < 300 ? [at] : []));
      assert.equal(won.length, 1, `${where}: ${saved.map(({ status }) => status)}`);
      for (const one of saved.filter((_, at) => at !== won[0])) {
        assert.equal(one.status, 412, `${where}: ${one.text}`);
        assert.equal(one.headers.get('content-type'), 'application/problem+json; charset=utf-8');
        assert.equal(one.body.type, 'urn:strongroom:problem:precondition_failed');
        assert.ok(!one.text.includes(etag.slice(1, -1)), 'no value of the caller');
      }
      const after = await read();
      assert.equal(edited.nameOf(after.body), names[won[0] ?? -1], where);
      assert.notEqual(after.headers.get('etag'), etag, where);
      assert.equal(after.headers.get('etag'), saved[won[0] ?? -1]?.headers.get('etag'), where);
    }
  });

  test('a state keeps its tag, which tells neither its number nor that two tenants did the same', async () => {
    const [tenant, other] = [await tenants(), await tenants()];
    const [one] = await oneOfEach(tenant);
    const [twin] = await oneOfEach(other);
    assert.ok(one && twin);
    const { read, save } = callsOn(tenant, one);
    const first = await read();
    assert.equal((await read()).headers.get('etag'), first.headers.get('etag'));
    const tags = new Set([
      first.headers.get('etag'),
      (await callsOn(other, twin).read()).headers.get('etag'),
    ]);
    for (let changes = 0; changes < 5; changes++) {
      // The same contents again are another state, because its history is shown.
      tags.add((await save('a')).headers.get('etag'));
    }
    assert.equal(tags.size, 7);
  });

  test('If-Match: * and a list with the tag pass, weak and other tags are 412, anything else is 400', async () => {
    const tenant = await tenants();
    for (const edited of await oneOfEach(tenant)) {
      const { read, save, remove } = callsOn(tenant, edited);
      const where = `${edited.method} ${edited.path}`;
      const tag = async () => (await read()).headers.get('etag') ?? '';
      assert.ok((await save('any', '*')).status < 300, where);
      assert.ok((await save('listed', `${another} , ${await tag()}`)).status < 300, where);
      for (const failing of [another, `W/${await tag()}`, `${another}, W/${await tag()}`, '""']) {
        assert.equal((await save('never', failing)).status, 412, `${where} ${failing}`);
      }
      for (const broken of ['', 'x', (await tag()).slice(1), `${await tag()} x`, '*, "x"', '"x']) {
        const refused = await save('never', broken);
        assert.equal(refused.status, 400, `${where} ${broken}: ${refused.text}`);
        assert.deepEqual(Object.keys(refused.body.errors), ['If-Match']);
      }
      assert.equal(edited.nameOf((await read()).body), 'listed', where);
      if (edited.path === '/tenants/self') continue;
      assert.equal((await remove(another)).status, 412, where);
      assert.equal((await read()).status, 200, where);
      assert.equal((await remove(await tag())).status, 204, where);
      assert.equal((await remove('*')).status, 404, where);
    }
  });

  test('a tenant is not deleted under the tag of an earlier state', async () => {
    const tenant = await tenants();
    const permissions = ['tenant:read', 'tenant:update', 'tenant:delete'];
    const key = await tenant.application({ type: 'management', permissions });
    const { headers } = await tenant.send('GET', '/tenants/self', { key });
    const seen = { 'if-match': headers.get('etag') ?? '' };
    await tenant.send('PUT', '/tenants/self', { key, body: { name: 'Renamed' } });
    const refused = await tenant.send('DELETE', '/tenants/self', { key, headers: seen });
    assert.equal(refused.status, 412, refused.text);
    assert.equal((await tenant.send('GET', '/tenants/self', { key })).body.name, 'Renamed');
  });

  test('what has no tag is not changed under one', async () => {
    const tenant = await tenants();
    const session = await tenant.send('POST', '/applications', {
      key: tenant.managementKey,
      body: { name: 'a', type: 'private', permissions: ['token:create'] },
    });
    const path = `/applications/${session.body.id}/keys`;
    const [key] = (await tenant.send('GET', path, { key: tenant.managementKey })).body;
    const headers = { 'if-match': another };
    const options = { key: tenant.managementKey, headers };
    assert.equal((await tenant.send('DELETE', `${path}/${key.id}`, options)).status, 412);
    assert.equal(
      (await tenant.send('DELETE', `${path}/${key.id}`, { key: tenant.managementKey })).status,
      204,
    );
  });

  test('412 is in the log, with what it was about: no tag finds out silently what exists', async () => {
    const tenant = await tenants();
    const placeOf = ({ stream_id, seq }: { stream_id: string; seq: number }) =>
      `${stream_id} ${seq}`;
    const attempts = async (known: ReadonlySet<string>) =>
      (await tenant.rows('logs'))
        .filter((entry) => !known.has(placeOf(entry)))
        .filter(({ actor_type, operation }) => actor_type !== 'system' && operation !== 'use')
        .map(({ entity_id, operation, result, disclosure }) => ({
          ...{ entity_id, operation, result, disclosure },
        }));
    const refused = async (method: string, path: string, body?: object, key?: string) => {
      // Refusals of one second that are alike are one entry.
      tenant.vault.clock.advance(2_000);
      const known = new Set((await tenant.rows('logs')).map(placeOf));
      const headers = {
        'if-match': another,
        ...(method === 'PATCH' && { 'content-type': 'application/merge-patch+json' }),
      };
      const sent = { key: key ?? tenant.managementKey, headers, ...(body && { body }) };
      const { status, text } = await tenant.send(method, path, sent);
      assert.equal(status, 412, `${method} ${path}: ${text}`);
      return attempts(known);
    };
    for (const { path, method, body, key } of await oneOfEach(tenant)) {
      const named = path.split('/').at(-1);
      const id = named === 'self' ? tenant.id : named;
      const content = [
        ['GET', undefined, 'read'],
        [method, body('b'), 'update'],
        ...(id === tenant.id ? [] : [['DELETE', undefined, 'delete'] as const]),
      ] as const;
      for (const [tried, sent, operation] of content) {
        const [entry, ...others] = await refused(tried, path, sent, key);
        assert.deepEqual(others, [], `${tried} ${path}`);
        const disclosure = path.startsWith('/tokens/') && operation === 'update' ? 'ru' : null;
        assert.deepEqual(entry, { entity_id: id, operation, result: 'failed', disclosure });
      }
    }
    const untagged: readonly (readonly [string, string, (object | undefined)?, string?])[] = [
      ['GET', '/logs'],
      ['GET', '/logs/checkpoint'],
      ['GET', '/applications'],
      ['POST', '/applications', { name: 'a', type: 'private', permissions: ['token:create'] }],
      ['POST', '/tokens', { type: 'token', data: 'a' }, tenant.key],
      ['POST', '/detokenize', { a: 1 }, tenant.key],
      ['GET', '/tokens', undefined, tenant.key],
    ];
    for (const [method, path, body, key] of untagged) {
      const found = await refused(method, path, body, key);
      assert.deepEqual(
        found.map(({ entity_id, result }) => [entity_id, result]),
        [['*', 'failed']],
        `${method} ${path}`,
      );
    }
  });

  test('the refusal that a caller has anyway comes first: 404 and 403 tell nothing of a state', async () => {
    const tenant = await tenants();
    const [edited] = await oneOfEach(tenant);
    assert.ok(edited);
    const { headers } = await callsOn(tenant, edited).read();
    const missing = { ...edited, path: `/applications/${randomUUID()}` };
    assert.equal((await callsOn(tenant, missing).save('b', another)).status, 404);
    const key = await tenant.application({ type: 'management', permissions: ['person:read'] });
    for (const tag of [another, headers.get('etag') ?? '']) {
      assert.equal((await callsOn(tenant, { ...edited, key }).save('b', tag)).status, 403);
    }
  });

  test('a retry under one idempotency key has the response of the first, though the tag has changed', async () => {
    const tenant = await tenants();
    for (const edited of await oneOfEach(tenant)) {
      const { read, save } = callsOn(tenant, edited);
      const etag = (await read()).headers.get('etag') ?? '';
      const key = { 'svc-idempotency-key': randomUUID() };
      const first = await save('once', etag, key);
      const again = await save('once', etag, key);
      assert.ok(first.status < 300, first.text);
      assert.equal(again.status, first.status, again.text);
      assert.equal(again.text, first.text);
      assert.equal(again.headers.get('etag'), first.headers.get('etag'));
      // A refusal is not kept: with the new tag the same key has its effect.
      const next = { 'svc-idempotency-key': randomUUID() };
      assert.equal((await save('twice', etag, next)).status, 412);
      assert.ok((await save('twice', first.headers.get('etag') ?? '', next)).status < 300);
    }
  });

  test('a tag tells nothing of a value: it is one for masks and for plain data, and confirms no guess', async () => {
    const tenant = await tenants();
    const [number, otherNumber] = ['4242424242424242', '5555555555554444'];
    const stored = await tenant.token({ type: 'card', data: { number }, deduplicate_token: true });
    const twin = await tenant.token({ type: 'card', data: { number } });
    const key = await tenant.holder({
      priority: 1,
      container: '/',
      permissions: ['token:read', 'token:create', 'token:update'],
      transform: 'mask',
    });
    const path = `/tokens/${stored.body.id}`;
    const masked = await tenant.send('GET', path, { key });
    const etag = masked.headers.get('etag') ?? '';
    assert.ok(!masked.text.includes(number), 'this caller sees a mask');
    assert.equal((await tenant.send('GET', path)).headers.get('etag'), etag);
    const ofTwin = (await tenant.send('GET', `/tokens/${twin.body.id}`)).headers.get('etag');
    assert.notEqual(ofTwin, etag, 'equal values have different tags');
    const patch = { 'content-type': 'application/merge-patch+json' };
    const guesses = [number, otherNumber].map((guess) => ({
      type: 'card',
      data: { number: guess },
    }));
    const seen = [];
    for (const body of guesses) {
      const headers = { 'if-match': another };
      const created = { ...body, deduplicate_token: true };
      const changed = { data: body.data, deduplicate_token: true };
      const [create, update] = [
        await tenant.send('POST', '/tokens', { key, headers, body: created }),
        await tenant.send('PATCH', path, { key, headers: { ...headers, ...patch }, body: changed }),
      ];
      seen.push(
        [create, update].map(({ status, body: { trace_id, ...rest } }) => ({ status, rest })),
      );
    }
    assert.deepEqual(seen[0], seen[1], 'the right guess looks like the wrong one');
    assert.deepEqual(
      seen[0]?.map(({ status }) => status),
      [412, 412],
    );
    assert.equal((await tenant.send('GET', path, { key })).headers.get('etag'), etag);
    assert.equal((await tenant.rows('tokens')).length, 2, 'nothing was created');
  });

  test('the response to a create has the tag of the token, for whoever may see it', async () => {
    const tenant = await tenants();
    const body = { type: 'token', data: 'x', deduplicate_token: true };
    const first = await tenant.send('POST', '/tokens', { body });
    const path = `/tokens/${first.body.id}`;
    const tagNow = async () => (await tenant.send('GET', path)).headers.get('etag');
    assert.equal(first.headers.get('etag'), await tagNow());
    const equal = await tenant.send('POST', '/tokens', { body });
    assert.deepEqual([equal.body.id, equal.headers.get('etag')], [first.body.id, await tagNow()]);
    const rule = { priority: 1, container: '/', transform: 'redact' };
    const writer = await tenant.holder({ ...rule, permissions: ['token:create'] });
    const unseen = await tenant.send('POST', '/tokens', { key: writer, body });
    assert.deepEqual([unseen.status, unseen.headers.get('etag')], [201, null]);
    const own = await tenant.send('POST', '/tokens', { key: writer, body: { ...body, data: 'y' } });
    const headers = {
      'if-match': own.headers.get('etag') ?? '',
      'content-type': 'application/merge-patch+json',
    };
    const change = { headers, body: { metadata: { seen: 'yes' } } };
    const changed = await tenant.send('PATCH', `/tokens/${own.body.id}`, change);
    assert.equal(changed.status, 200, changed.text);
    const again = await tenant.send('PATCH', `/tokens/${own.body.id}`, change);
    assert.equal(again.status, 412);
  });

  test('of a change and a removal under one tag exactly one takes effect', async () => {
    const tenant = await tenants();
    for (const edited of await oneOfEach(tenant)) {
      if (edited.path === '/tenants/self') continue;
      const { read, save, remove } = callsOn(tenant, edited);
      const where = `${edited.method} ${edited.path}`;
      const etag = (await read()).headers.get('etag') ?? '';
      const [saved, removed] = await Promise.all([save('kept', etag), remove(etag)]);
      const isSaved = saved.status < 300;
      assert.notEqual(
        isSaved,
        removed.status === 204,
        `${where}: ${saved.status} ${removed.status}`,
      );
      const after = await read();
      assert.equal(after.status, isSaved ? 200 : 404, where);
      assert.equal((isSaved ? removed : saved).status, isSaved ? 412 : 404, where);
    }
  });

  test('each operation on what has a tag is described with ETag, and each change of it with If-Match', async (t) => {
    const vault = await startVault(t, engine);
    const published = publishedIn(await sectionsOf(vault));
    const tagged = published.filter(({ operation }) => operation.tagged);
    assert.ok(tagged.length > 25);
    for (const { operation, takesIfMatch, problems } of published) {
      assert.equal(problems.has(412), takesIfMatch, operation.id);
    }
    // A read of one thing has a tag exactly where its changes take it.
    const reads = tagged.filter(({ operation }) => operation.method === 'GET');
    const paths = new Set(reads.map(({ path }) => path));
    for (const { operation, path } of published) {
      if (!paths.has(path) || operation.method === 'POST') continue;
      assert.equal(operation.tagged, true, `${operation.method} ${path}`);
    }
  });
});
