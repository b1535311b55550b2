/** No effect without its event, and no event without its effect: the outbox holds what the log explains. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import { bulk } from '../support/lines.ts';
import { environmentOf, runCommand } from '../support/process.ts';
import { createProxy, leastProxy, sendProxy } from '../support/proxies.ts';
import { type Below, seeded } from '../support/random.ts';
import { newTenant, type TestTenant } from '../support/tenant.ts';
import { visa } from '../support/values.ts';
import {
  createStillClock,
  revealEverything,
  startVault,
  type TestVault,
} from '../support/vault.ts';
import { createWebhook, eventsOf, wholeWebhook } from '../support/webhooks.ts';

/** What the log says, and the event that follows from it; of everything else none does. */
const typesByMessage: Readonly<Record<string, string>> = {
  'Application created': 'application.created',
  'Application updated': 'application.updated',
  'Application deleted': 'application.deleted',
  'Application key created': 'application.key.created',
  'Application key deleted': 'application.key.deleted',
  'Proxy created': 'proxy.created',
  'Proxy updated': 'proxy.updated',
  'Proxy deleted': 'proxy.deleted',
  'Session created': 'session.created',
  'Session authorized': 'session.authorized',
  'Tenant updated': 'tenant.updated',
  'Token created': 'token.created',
  'Token updated': 'token.updated',
  'Token retrieved': 'token.read',
  'Token deleted': 'token.deleted',
  'Token expired': 'token.expired',
  'Token property expired': 'token.property.expired',
  'Token intent created': 'token-intent.created',
  'Token intent deleted': 'token-intent.deleted',
  'Token intent converted': 'token-intent.converted',
};

/** In every value that is stored; no event may hold it. */
const marker = 'marker-of-values';

const minute = 60_000;
const hour = 60 * minute;

interface World {
  readonly tenant: TestTenant;
  readonly below: Below;
  /** Of an application for token intents. */
  readonly intents: string;
  readonly publicKey: string;
}

type Action = (world: World) => Promise<unknown>;

const idOf = ({ below }: World) => `id-${below(5)}`;
const manage = ({ tenant }: World, method: string, path: string, body?: unknown) =>
  tenant.send(method, path, { key: tenant.managementKey, body });

const someToken = (world: World) => ({
  type: 'token',
  data: `${marker} ${world.below(3)}`,
  mask: '{{ data | reveal_last: 2 }}',
  metadata: { kind: 'some' },
  search_indexes: ['{{ data }}'],
  deduplicate_token: world.below(4) === 0,
  ...(world.below(2) === 0 && { id: idOf(world) }),
  ...(world.below(3) === 0 && {
    expires_at: new Date(world.tenant.vault.clock.now() + hour / 2).toISOString(),
  }),
});

const intentBody = { type: 'card', data: visa };

const actions: readonly Action[] = [
  (world) => world.tenant.send('POST', '/tokens', { body: someToken(world) }),
  (world) => world.tenant.send('POST', '/tokens', { body: someToken(world) }),
  ({ tenant }) => tenant.send('POST', '/tokens', { body: { type: 'card', data: visa } }),
  (world) => world.tenant.send('GET', `/tokens/${idOf(world)}`),
  (world) =>
    world.tenant.send('PATCH', `/tokens/${idOf(world)}`, {
      body: { metadata: { n: String(world.below(9)) } },
    }),
  (world) => world.tenant.send('DELETE', `/tokens/${idOf(world)}`),
  ({ tenant }) => tenant.send('GET', '/v2/tokens?size=3'),
  ({ tenant }) => tenant.send('GET', '/tokens/export'),
  ({ tenant }) =>
    tenant.send('POST', '/v2/tokens/search', { body: { query: `data:"${marker} 1"` } }),
  (world) => world.tenant.send('POST', '/detokenize', { body: [`{{ ${idOf(world)} }}`] }),
  ({ tenant, below }) =>
    tenant.send('POST', '/tokenize', { body: { a: `${marker} ${below(3)}`, b: [1, true] } }),
  (world) => bulk(world.tenant, [someToken(world), someToken(world), { type: 'wrong' }]),
  (world) =>
    world.tenant.send('POST', '/tokens', {
      body: { ...someToken(world), id: undefined },
      headers: { 'svc-idempotency-key': `a key that is long enough ${world.below(2)}` },
    }),
  ({ tenant, intents: key }) => tenant.send('POST', '/token-intents', { key, body: intentBody }),
  async ({ tenant, intents: key }) => {
    const { body } = await tenant.send('POST', '/token-intents', { key, body: intentBody });
    return tenant.send('DELETE', `/token-intents/${body.id}`, { key });
  },
  async ({ tenant, intents: key, below }) => {
    const { body } = await tenant.send('POST', '/token-intents', { key, body: intentBody });
    const request = { token_intent_id: body.id, deduplicate_token: below(2) === 0 };
    return tenant.send('POST', '/tokens', { body: request });
  },
  async (world) => {
    const request = { name: 'one', type: 'private', permissions: ['token:read'] };
    const { body } = await manage(world, 'POST', '/applications', request);
    const path = `/applications/${body.id}`;
    await manage(world, 'PUT', path, { name: 'two', permissions: ['token:read'] });
    const key = await manage(world, 'POST', `${path}/keys`);
    if (world.below(2) === 0) await manage(world, 'DELETE', `${path}/keys/${key.body.id}`);
    return manage(world, 'DELETE', path);
  },
  async ({ tenant, publicKey, below }) => {
    const { body } = await tenant.send('POST', '/sessions', { key: publicKey });
    if (below(2) === 0) return;
    const granted = { nonce: body.nonce, permissions: ['token:create'] };
    await tenant.send('POST', '/sessions/authorize', { body: granted });
    const token = { type: 'token', data: marker };
    await tenant.send('POST', '/tokens', { key: body.session_key, body: token });
  },
  async ({ tenant }) => {
    const { id } = await createProxy(tenant);
    await sendProxy(tenant, 'PUT', `/${id}`, { body: { ...leastProxy, name: 'other' } });
    await sendProxy(tenant, 'DELETE', `/${id}`);
  },
  (world) => manage(world, 'PUT', '/tenants/self', { name: `own ${world.below(9)}` }),
  // What is refused, or fails, or only looks.
  (world) => world.tenant.send('GET', '/tokens/none'),
  ({ tenant, publicKey }) => tenant.send('GET', '/tokens/id-1', { key: publicKey }),
  (world) => manage(world, 'GET', '/logs'),
  (world) => manage(world, 'PUT', '/tenants/self', { name: '' }),
  ({ tenant }) => tenant.send('POST', '/tokens', { body: { type: 'card', data: {} } }),
];

async function newWorld(vault: TestVault, below: Below): Promise<World> {
  const tenant = await newTenant(vault);
  const permissions = ['token-intent:create', 'token-intent:read', 'token-intent:delete'];
  const intents = await tenant.application({ permissions, rules: [] });
  const publicKey = await tenant.application({ type: 'public', permissions: ['token:create'] });
  await createWebhook(tenant, wholeWebhook);
  // By then every thread has noticed, and what happened before is in the past.
  vault.clock.advance(2000);
  return { tenant, below, intents, publicKey };
}

interface Explained {
  readonly at: number;
  readonly text: string;
}

/** The events that the log explains since a time, each with the trace of its entry. Alerts follow a moment later. */
async function explained(tenant: TestTenant, since: number): Promise<string[]> {
  const entries = (await tenant.rows('logs')).filter(
    ({ created_at, result }) => created_at >= since && result === 'success',
  );
  const all = entries.flatMap(({ message, created_at, entity_id, trace_id }): Explained[] => {
    const type = typesByMessage[message];
    if (type === undefined) return [];
    const trace = trace_id?.split(' ', 1)[0] ?? null;
    return [{ at: created_at, text: JSON.stringify([type, entity_id, created_at, trace]) }];
  });
  return all.map(({ text }) => text).sort();
}

async function stored(tenant: TestTenant): Promise<string[]> {
  const events = await eventsOf(tenant);
  return events
    .filter(({ type }) => !type.startsWith('alert.'))
    .map(({ type, entity_id, created_at, body }) =>
      JSON.stringify([type, entity_id, created_at, body.trace_id]),
    )
    .sort();
}

/** Each token is made before it changes and ends, and is made again only after that. */
async function assertInOrder(tenant: TestTenant): Promise<void> {
  const alive = new Map<string, boolean>();
  for (const { type, entity_id } of await eventsOf(tenant)) {
    if (!/^token\.(?:created|updated|deleted|expired|property\.expired)$/.test(type)) continue;
    const isNew = type === 'token.created';
    assert.equal(alive.get(entity_id) ?? false, !isNew, `${type} of ${entity_id}`);
    alive.set(entity_id, type !== 'token.deleted' && type !== 'token.expired');
  }
}

async function assertHolds(tenant: TestTenant, since: number): Promise<void> {
  assert.deepEqual(await stored(tenant), await explained(tenant, since));
  await assertInOrder(tenant);
  for (const { type, body } of await eventsOf(tenant)) {
    const text = JSON.stringify(body);
    assert.equal(text.includes(marker) || text.includes(visa.number), false, text);
    if (type !== 'token.read') continue;
    const { token } = body.data as { token: { type: string } };
    assert.match(token.type, /^(?:token|card)$/);
  }
}

onBothEngines('events', (engine) => {
  const startWorld = async (t: TestContext) => {
    const vault = await startVault(t, engine, { clock: createStillClock() });
    return newWorld(vault, seeded(t));
  };

  test('are those that the log explains, whatever was requested and however it ended', async (t) => {
    const world = await startWorld(t);
    const { tenant, below } = world;
    const { clock } = tenant.vault;
    const since = clock.now();
    for (let round = 0; round < 25; round += 1) {
      const some = Array.from({ length: 1 + below(5) }, () => actions[below(actions.length)]);
      await Promise.all(some.map((act) => act?.(world)));
      clock.advance(below(3 * minute));
      if (round % 8 !== 7) continue;
      clock.advance(2 * hour);
      for (const job of ['expire tokens', 'expire card codes', 'expire token intents']) {
        await runJob(tenant.vault, job);
      }
    }
    await assertHolds(tenant, since);
    assert.ok((await eventsOf(tenant)).length > 20);
  });

  test('are those that the log explains of every action once', async (t) => {
    const world = await startWorld(t);
    const { tenant } = world;
    const since = tenant.vault.clock.now();
    for (const act of actions) await act(world);
    tenant.vault.clock.advance(2 * hour);
    for (const job of ['expire tokens', 'expire card codes', 'expire token intents']) {
      await runJob(tenant.vault, job);
    }
    await assertHolds(tenant, since);
    const types = new Set((await eventsOf(tenant)).map(({ type }) => type));
    for (const type of ['token.created', 'token.read', 'token-intent.converted', 'proxy.deleted']) {
      assert.ok(types.has(type), type);
    }
  });

  test("follow from the operator's commands, in a process of their own", async (t) => {
    const { tenant } = await startWorld(t);
    const since = tenant.vault.clock.now();
    const quota = ['tenant', 'quota', '--tenant', tenant.id, '--set', 'proxy_limit=7'];
    const { code, stderr } = await runCommand(quota, environmentOf(tenant.vault.place));
    assert.equal(code, 0, stderr);
    const events = await eventsOf(tenant);
    assert.deepEqual(
      events.map(({ type, body }) => [type, body.actor]),
      [['tenant.updated', { type: 'admin' }]],
    );
    assert.ok(events.every(({ created_at }) => created_at > since - minute));
  });

  test('there are none of a tenant without webhooks, nor of types that no webhook asks for', async (t) => {
    const vault = await startVault(t, engine);
    const [none, disabled, other] = [
      await newTenant(vault),
      await newTenant(vault),
      await newTenant(vault),
    ];
    const { id } = await createWebhook(disabled, wholeWebhook);
    const body = { ...wholeWebhook, status: 'disabled' };
    await disabled.send('PUT', `/webhooks/${id}`, { key: disabled.managementKey, body });
    await createWebhook(other, { events: ['token.deleted'] });
    for (const tenant of [none, disabled, other]) {
      await tenant.token({ id: 'own', type: 'token', data: 1 });
      assert.deepEqual(await eventsOf(tenant), []);
      await tenant.send('DELETE', '/tokens/own');
      const expected = tenant === other ? ['token.deleted'] : [];
      assert.deepEqual(
        (await eventsOf(tenant)).map(({ type }) => type),
        expected,
      );
    }
    // What a webhook asks for takes effect with the next request, and so does its end.
    await disabled.send('PUT', `/webhooks/${id}`, {
      key: disabled.managementKey,
      body: { ...wholeWebhook, events: ['token.created'], status: 'enabled' },
    });
    await disabled.token({ type: 'token', data: 1 });
    assert.equal((await eventsOf(disabled)).length, 1);
    await disabled.send('DELETE', `/webhooks/${id}`, { key: disabled.managementKey });
    await disabled.token({ type: 'token', data: 1 });
    assert.equal((await eventsOf(disabled)).length, 1);
  });

  test('are for no webhook that was altered in the database, which stops no request', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const { id } = await createWebhook(tenant, wholeWebhook);
    const sql = (status: string) =>
      engine.run(
        vault.place,
        `update webhooks set status = '${status}' where webhook_id = '${id}'`,
      );
    const body = { ...wholeWebhook, status: 'disabled' };
    await tenant.send('PUT', `/webhooks/${id}`, { key: tenant.managementKey, body });
    await sql('enabled');
    vault.clock.advance(1000);
    await tenant.token({ type: 'token', data: 1 });
    assert.deepEqual(await eventsOf(tenant), []);
    await sql('disabled');
    assert.equal(
      (await tenant.send('GET', `/webhooks/${id}`, { key: tenant.managementKey })).status,
      200,
    );
  });

  test('are derived also where a session reads, and where anonymous refusals do not count', async (t) => {
    const { tenant, publicKey } = await startWorld(t);
    await tenant.token({ id: 'own', type: 'token', data: marker });
    const { body } = await tenant.send('POST', '/sessions', { key: publicKey });
    const rules = [{ ...revealEverything, permissions: ['token:read'] }];
    await tenant.send('POST', '/sessions/authorize', { body: { nonce: body.nonce, rules } });
    assert.equal((await tenant.send('GET', '/tokens/own', { key: body.session_key })).status, 200);
    const read = (await eventsOf(tenant)).findLast(({ type }) => type === 'token.read');
    assert.equal(read?.body.actor?.type, 'session');
    assert.deepEqual(read?.body.data, { token: { id: 'own', type: 'token' } });
    const count = (await eventsOf(tenant)).length;
    await tenant.send('GET', '/tokens/own', { key: publicKey });
    await tenant.send('GET', '/tokens/none');
    assert.equal((await eventsOf(tenant)).length, count);
  });
});
