/** POST and GET /webhooks, GET, PUT and DELETE /webhooks/{id}, and POST /webhooks/{id}/secret/rotate. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refusalWindowMs } from '../../src/audit/refusals.ts';
import { newUuid, type WebhookId } from '../../src/base/ids.ts';
import { pooledRandom } from '../../src/base/random.ts';
import { requireProven } from '../../src/rules/proven-row.ts';
import { eventTypeNames } from '../../src/webhooks/events/types.ts';
import { openWebhook, secretOverlapMs } from '../../src/webhooks/resource.ts';
import { onBothEngines } from '../support/engines.ts';
import { testOpener } from '../support/openings.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import { createWebhook, leastWebhook, sendWebhook } from '../support/webhooks.ts';

const missing = '00000000-0000-4000-8000-000000000000';
const secretForm = /^whsec_[A-Za-z0-9+/]{43}=$/;

async function secretsOf(tenant: TestTenant, webhook_id: WebhookId) {
  const { store, tenants } = tenant.vault.running.vault;
  const row = await store.get('webhooks', { tenant_id: tenant.id, webhook_id });
  const keys = await tenants.find(tenant.id);
  assert.ok(row && keys);
  return openWebhook(testOpener(keys), requireProven(keys, 'webhooks', row)).reveal().secrets;
}

onBothEngines('webhooks', (engine) => {
  const newTenant = tenantsOf(engine, {
    environment: {
      STRONGROOM_PUBLIC_URL: 'https://vault.example.com',
      STRONGROOM_OUTBOUND_ALLOW: 'localhost:8443,127.0.0.1:8443',
    },
  });

  test('POST 201: the least that is given, with a secret that no other response shows', async () => {
    const tenant = await newTenant();
    const created = await sendWebhook(tenant, 'POST', '', { body: leastWebhook });
    assert.equal(created.status, 201, created.text);
    const { id, secret, created_at, created_by, ...rest } = created.body;
    assert.equal(created.headers.get('location'), `https://vault.example.com/webhooks/${id}`);
    assert.match(secret, secretForm);
    assert.ok(created_at && created_by);
    assert.deepEqual(rest, {
      tenant_id: tenant.id,
      status: 'enabled',
      ...leastWebhook,
      ordered: false,
    });
    const { secret: _secret, ...shown } = created.body;
    assert.deepEqual((await sendWebhook(tenant, 'GET', `/${id}`)).body, shown);
    const list = await sendWebhook(tenant, 'GET', '');
    assert.deepEqual(list.body, { pagination: { page_size: 20 }, data: [shown] });
    const put = await sendWebhook(tenant, 'PUT', `/${id}`, { body: leastWebhook });
    for (const { text } of [list, put]) assert.equal(text.includes('whsec_'), false);
    assert.deepEqual(await tenant.logged('webhook'), ['create', 'list', 'read', 'update']);
  });

  test('POST 201: everything that can be given, also the hosts that the operator allows', async () => {
    const tenant = await newTenant();
    const body = {
      name: 'n'.repeat(200),
      url: 'https://receiver.example.com:8443/a?b=c',
      notify_email: 'who@example.com',
      events: [...eventTypeNames, 'token.created'],
      ordered: true,
    };
    const made = await createWebhook(tenant, body);
    const { notify_email, events, ordered, url } = made;
    assert.deepEqual(
      { notify_email, ordered, url },
      { notify_email, ordered: true, url: body.url },
    );
    assert.deepEqual(events, eventTypeNames);
    for (const allowed of ['https://localhost:8443/a', 'https://127.0.0.1:8443/']) {
      await createWebhook(tenant, { url: allowed });
    }
    const longest = `https://a.example.com/${'p'.repeat(1000 - 22)}`;
    assert.equal((await createWebhook(tenant, { url: longest })).url, longest);
  });

  test('POST and PUT 400: an address that cannot be called is named, and not repeated', async () => {
    const tenant = await newTenant();
    const { id } = await createWebhook(tenant);
    const flaws: readonly (readonly [string, RegExp])[] = [
      ['http://receiver.example.com/', /https/],
      ['receiver.example.com', /https/],
      ['https://', /https/],
      ['https://a b.example.com/', /https/],
      ['ftp://receiver.example.com/', /https/],
      ['https://user@receiver.example.com/', /user name/],
      ['https://user:pass@receiver.example.com/', /user name/],
      ['https://:@receiver.example.com/', /user name/],
      ['https:///user:pass@receiver.example.com/', /user name/],
      ['https:////@receiver.example.com/', /user name/],
      ['https://receiver.example.com/#a', /fragment/],
      ['https://127.0.0.1/', /IP address/],
      ['https://10.1.2.3/a', /IP address/],
      ['https://93.184.216.34/', /IP address/],
      ['https://[::1]/', /IP address/],
      ['https://2130706433/', /IP address/],
      ['https://0x7f.1/', /IP address/],
      ['https://localhost/', /private network/],
      ['https://localhost:8444/', /private network/],
      ['https://LOCALHOST./', /private network/],
      ['https://a.localhost/', /private network/],
      ['https://vault.internal/', /private network/],
      ['https://printer.local/', /private network/],
      [`https://a.example.com/${'p'.repeat(1000 - 21)}`, /1000/],
    ];
    for (const [url, message] of flaws) {
      for (const [method, path] of [
        ['POST', ''],
        ['PUT', `/${id}`],
      ] as const) {
        const { status, body, text } = await sendWebhook(tenant, method, path, {
          body: { ...leastWebhook, url },
        });
        assert.equal(status, 400, `${method} ${url}`);
        assert.deepEqual(Object.keys(body.errors), ['url'], url);
        assert.match(body.errors.url[0], message, url);
        assert.equal(text.includes(url), false);
      }
    }
    assert.equal((await tenant.rows('webhooks')).length, 1);
  });

  test('POST 400: an unknown type is answered with the one that was meant, where there is one', async () => {
    const tenant = await newTenant();
    const events = [
      'token.created',
      'token:created',
      'Token_Deleted',
      'tokens',
      'webhook.test',
      '',
    ];
    const { status, body } = await sendWebhook(tenant, 'POST', '', {
      body: { ...leastWebhook, events },
    });
    assert.equal(status, 400);
    const unknown = 'is not a known event type; GET /webhooks/event-types lists them';
    assert.deepEqual(body.errors, {
      'events[1]': ['is not a known event type; did you mean token.created?'],
      'events[2]': ['is not a known event type; did you mean token.deleted?'],
      'events[3]': [unknown],
      'events[4]': [unknown],
      'events[5]': [unknown],
    });
  });

  test('POST 400: every other attribute that is wrong is named', async () => {
    const tenant = await newTenant();
    const flaws = [
      [{ name: '' }, 'name'],
      [{ name: 'n'.repeat(201) }, 'name'],
      [{ name: 'a\nb' }, 'name'],
      [{ name: undefined }, 'name'],
      [{ url: undefined }, 'url'],
      [{ url: 1 }, 'url'],
      [{ events: [] }, 'events'],
      [{ events: undefined }, 'events'],
      [{ events: 'token.created' }, 'events'],
      [{ events: Array.from({ length: 101 }, () => 'token.created') }, 'events'],
      [{ notify_email: 'nobody' }, 'notify_email'],
      [{ notify_email: `${'a'.repeat(243)}@example.com` }, 'notify_email'],
      [{ ordered: 'yes' }, 'ordered'],
      [{ status: 'disabled' }, 'status'],
      [{ secret: 'whsec_1234' }, 'secret'],
    ] as const;
    for (const [given, name] of flaws) {
      const body = { ...leastWebhook, ...given };
      const answer = await sendWebhook(tenant, 'POST', '', { body });
      assert.equal(answer.status, 400, name);
      assert.deepEqual(Object.keys(answer.body.errors), [name]);
    }
    assert.deepEqual(await tenant.rows('webhooks'), []);
    await createWebhook(tenant, { notify_email: `${'a'.repeat(242)}@example.com` });
  });

  test('POST 422: the twenty-first, until one is deleted or the operator allows more', async () => {
    const tenant = await newTenant();
    const made = await Promise.all(Array.from({ length: 20 }, () => createWebhook(tenant)));
    const refused = await sendWebhook(tenant, 'POST', '', { body: leastWebhook });
    assert.equal(refused.status, 422);
    assert.match(refused.body.detail, /at most 20 webhooks \(quota webhook_limit\)/);
    assert.equal((await sendWebhook(tenant, 'DELETE', `/${made[0].id}`)).status, 204);
    await createWebhook(tenant);
    await tenant.setQuotas({ webhook_limit: 21 });
    await createWebhook(tenant);
    assert.equal((await sendWebhook(tenant, 'POST', '', { body: leastWebhook })).status, 422);
    const { body } = await sendWebhook(tenant, 'GET', '');
    assert.deepEqual([body.pagination, body.data.length], [{ page_size: 21 }, 21]);
  });

  test('PUT 200: everything but the secret is replaced; status and order stay unless they are given', async () => {
    const tenant = await newTenant();
    const { id, secret } = await createWebhook(tenant, { ordered: true, notify_email: 'a@b.c' });
    const put = async (given: object) => {
      const answer = await sendWebhook(tenant, 'PUT', `/${id}`, {
        body: { ...leastWebhook, ...given },
      });
      assert.equal(answer.status, 200, answer.text);
      return answer.body;
    };
    const events = ['token.deleted'];
    const replaced = await put({ name: 'other', url: 'https://b.example.com/', events });
    assert.deepEqual(
      [replaced.name, replaced.url, replaced.events, replaced.ordered, replaced.notify_email],
      ['other', 'https://b.example.com/', events, true, undefined],
    );
    assert.ok(replaced.modified_at && replaced.modified_by);
    assert.equal((await put({ status: 'disabled' })).status, 'disabled');
    assert.equal((await put({ ordered: false })).status, 'disabled');
    assert.deepEqual(
      [(await put({ status: 'enabled' })).status, (await put({})).ordered],
      ['enabled', false],
    );
    // Several in a row and at once are no conflict.
    const names = Array.from({ length: 8 }, (_, index) => `name ${index}`);
    await Promise.all(names.map((name) => put({ name })));
    assert.deepEqual(
      (await secretsOf(tenant, id)).map(({ text }) => text),
      [secret],
    );
    const flaw = await sendWebhook(tenant, 'PUT', `/${id}`, {
      body: { ...leastWebhook, status: 'paused' },
    });
    assert.deepEqual([flaw.status, Object.keys(flaw.body.errors)], [400, ['status']]);
  });

  test('PUT 200: a webhook that is enabled again has no failures from before', async () => {
    const tenant = await newTenant();
    const { id } = await createWebhook(tenant);
    const { store, clock } = tenant.vault.running.vault;
    const failing = { tenant_id: tenant.id, webhook_id: id, since: clock.now() };
    const [entry] = await tenant.rows('logs');
    assert.ok(entry);
    await store.commit({ insert: { webhook_failures: [failing] }, entries: [entry] });
    for (const status of ['disabled', 'enabled']) {
      assert.equal((await tenant.rows('webhook_failures')).length, 1, status);
      await sendWebhook(tenant, 'PUT', `/${id}`, { body: { ...leastWebhook, status } });
    }
    assert.deepEqual(await tenant.rows('webhook_failures'), []);
  });

  test('POST secret/rotate 200: the secret before signs for another day, and no third one does', async () => {
    const tenant = await newTenant();
    const { id, secret } = await createWebhook(tenant);
    const rotate = async () => {
      const answer = await sendWebhook(tenant, 'POST', `/${id}/secret/rotate`);
      assert.equal(answer.status, 200, answer.text);
      assert.match(answer.body.secret, secretForm);
      return answer.body.secret;
    };
    const second = await rotate();
    const until = tenant.vault.clock.now() + secretOverlapMs;
    const secrets = await secretsOf(tenant, id);
    assert.deepEqual(
      secrets.map(({ text }) => text),
      [second, secret],
    );
    assert.equal(secrets[0]?.ends_at, null);
    assert.ok(Math.abs((secrets[1]?.ends_at ?? 0) - until) < 60_000);
    const third = await rotate();
    assert.deepEqual(
      (await secretsOf(tenant, id)).map(({ text }) => text),
      [third, second],
    );
    assert.deepEqual(await tenant.logged('webhook'), ['create', 'rotate', 'rotate']);
  });

  test('DELETE 204, and 404 for what is gone, foreign or no id at all', async () => {
    const [tenant, other] = [await newTenant(), await newTenant()];
    const { id } = await createWebhook(tenant);
    const requests = (one: string): [string, string, unknown?][] => [
      ['GET', `/${one}`],
      ['PUT', `/${one}`, leastWebhook],
      ['POST', `/${one}/secret/rotate`],
      ['POST', `/${one}/test`],
      ['GET', `/${one}/deliveries`],
      ['POST', `/${one}/deliveries/${missing}/redeliver`],
      ['POST', `/${one}/replay`, { since: '2026-01-01T00:00:00Z' }],
      ['DELETE', `/${one}`],
    ];
    for (const [method, path, body] of requests(id)) {
      const { status, text } = await sendWebhook(other, method, path, { body });
      assert.equal(status, 404, `${method} ${path} ${text}`);
    }
    assert.equal((await sendWebhook(tenant, 'DELETE', `/${id}`)).status, 204);
    for (const one of [id, missing, 'none']) {
      for (const [method, path, body] of requests(one)) {
        tenant.vault.clock.advance(refusalWindowMs + 1);
        const { status } = await sendWebhook(tenant, method, path, { body });
        assert.equal(status, 404, `${method} ${path}`);
      }
    }
  });

  test('GET event-types 200: every type, and no other can be asked for', async () => {
    const tenant = await newTenant();
    const { status, body } = await sendWebhook(tenant, 'GET', '/event-types');
    assert.deepEqual([status, body], [200, [...eventTypeNames]]);
    for (const noun of ['token', 'token-intent', 'application', 'session', 'proxy', 'reactor']) {
      assert.ok(body.includes(`${noun}.created`), noun);
    }
    for (const type of ['token.property.expired', 'application.key.deleted', 'tenant.updated']) {
      assert.ok(body.includes(type), type);
    }
  });

  test('403: each route needs its permission, and only keys that manage can hold one', async () => {
    const tenant = await newTenant();
    const { id } = await createWebhook(tenant);
    const all = ['webhook:create', 'webhook:read', 'webhook:update', 'webhook:delete'];
    const path = `/${id}`;
    const requests = [
      ['POST', '', 'webhook:create', leastWebhook],
      ['GET', '', 'webhook:read'],
      ['GET', '/event-types', 'webhook:read'],
      ['GET', path, 'webhook:read'],
      ['GET', `${path}/deliveries`, 'webhook:read'],
      ['PUT', path, 'webhook:update', leastWebhook],
      ['POST', `${path}/secret/rotate`, 'webhook:update'],
      ['POST', `${path}/test`, 'webhook:update'],
      ['POST', `${path}/deliveries/${missing}/redeliver`, 'webhook:update'],
      ['POST', `${path}/replay`, 'webhook:update', { since: '2026-01-01T00:00:00Z' }],
      ['DELETE', path, 'webhook:delete'],
    ] as const;
    for (const [method, where, needed, body] of requests) {
      const others = all.filter((one) => one !== needed);
      const key = await tenant.application({ type: 'management', permissions: others });
      const answer = await sendWebhook(tenant, method, where, { key, body });
      assert.equal(answer.status, 403, `${method} ${where}`);
      assert.match(answer.body.detail, new RegExp(needed));
      assert.equal(
        (await sendWebhook(tenant, method, where, { key: tenant.key, body })).status,
        403,
      );
    }
    assert.equal((await tenant.rows('webhooks')).length, 1);
    for (const type of ['public', 'private']) {
      const body = { name: 'n', type, permissions: ['webhook:read'] };
      const sent = { key: tenant.managementKey, body };
      assert.equal((await tenant.send('POST', '/applications', sent)).status, 400, type);
    }
    const body = { name: 'n', type: 'management', permissions: ['webhooks:create'] };
    const made = await tenant.send('POST', '/applications', { key: tenant.managementKey, body });
    assert.deepEqual(made.body.permissions, ['webhook:create']);
  });

  test('500: a webhook that was altered in the database is neither shown nor sent to', async () => {
    const tenant = await newTenant();
    const { id } = await createWebhook(tenant);
    const made = newUuid<WebhookId>(pooledRandom());
    const { store } = tenant.vault.running.vault;
    const [row] = await tenant.rows('webhooks');
    const [entry] = await tenant.rows('logs');
    assert.ok(row && entry);
    const insert = { webhooks: [{ ...row, webhook_id: made }] };
    await store.commit({ insert, entries: [entry] });
    for (const [method, path, body] of [
      ['GET', `/${made}`],
      ['PUT', `/${made}`, leastWebhook],
      ['POST', `/${made}/secret/rotate`],
      ['POST', `/${made}/test`],
    ] as const) {
      const { status, body: problem } = await sendWebhook(tenant, method, path, { body });
      assert.equal(status, 500, `${method} ${path}`);
      assert.equal(problem.type, 'urn:strongroom:problem:integrity');
    }
    const list = await sendWebhook(tenant, 'GET', '');
    assert.deepEqual(
      list.body.data.map((one: { readonly id: string }) => one.id),
      [id],
    );
    assert.equal((await sendWebhook(tenant, 'GET', `/${id}`)).status, 200);
    assert.equal((await sendWebhook(tenant, 'DELETE', `/${made}`)).status, 204);
    assert.equal((await sendWebhook(tenant, 'GET', '')).status, 200);
  });
});
