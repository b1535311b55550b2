/**
 * Tenants cannot meet: every declared route × every identity × every kind of foreign id. A route or a
 * table that is added later is in the matrix by being declared.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { pooledRandom } from '../../src/base/random.ts';
import { linesMediaType, type Route } from '../../src/http/protocol/route.ts';
import { newApiKey } from '../../src/keys/api-key.ts';
import { shapes, type Table } from '../../src/store/tables.ts';
import { leaveApproval } from '../support/approvals.ts';
import { encrypted } from '../support/client-encryption.ts';
import { type Engine, onBothEngines } from '../support/engines.ts';
import { linesOfAnswer } from '../support/lines.ts';
import { addLocalPasskey } from '../support/passkeys.ts';
import { signInPerson } from '../support/people.ts';
import { createProxy, destination } from '../support/proxies.ts';
import { casesOf, seeded } from '../support/random.ts';
import { createReactor, invoker } from '../support/reactors.ts';
import { type MadeRequest, requestsWith } from '../support/requests.ts';
import { newTenant, type TestTenant, untilUsed } from '../support/tenant.ts';
import {
  createStillClock,
  type Received,
  routesOf,
  startVault,
  type TestVault,
  threads,
} from '../support/vault.ts';
import { createWebhook, leastWebhook, sendWebhook } from '../support/webhooks.ts';

const missing = randomUUID();
const marker = 'The-Victims-Secret';
/**
 * At how many places of a route each id is tried. Which part of a request named it is nothing to the threads or to
 * PostgreSQL, so with several threads, and there, the first place stands for all.
 */
const placesMaxOn = (engine: Engine) =>
  threads === '1' && engine.name === 'sqlite' ? Number.POSITIVE_INFINITY : 1;
/** At further places, in thousands of requests, a run of everything tries one of so many ids, other ones each time. */
const oneIdOf = casesOf({ all: 1, drawn: 3 });
const everyTokenPermission = [
  'token:create',
  'token:read',
  'token:update',
  'token:delete',
  'token:search',
  'token:use',
];
const intentPermissions = ['token-intent:create', 'token-intent:read', 'token-intent:delete'];

/** After reading, so that what an intruder makes under foreign ids is not there yet. */
const changing = ['DELETE', 'PATCH', 'PUT', 'POST'];

/** Tables whose rows a tenant does not have for the asking, or at all; all others have ids to try. */
const withoutIds: readonly string[] = [
  'tenants',
  'search_terms',
  'replies',
  'log_removals',
  'vault_keys',
  'webhook_failures',
  'event_sequences',
  'leases',
  'tenant_hosts',
  'key_rotations',
  'fingerprint_claims',
  'activity',
  'alert_marks',
  'log_pushes',
  'log_index',
];

interface Victim {
  readonly tenant: TestTenant;
  /** Each with its kind, such as `tokens.token_id`. */
  readonly ids: ReadonlyMap<string, string>;
  readonly kinds: ReadonlySet<string>;
  readonly token: string;
  /** Texts that no answer to others may hold. */
  readonly secrets: readonly string[];
  /** Everything stored of it. */
  readonly stored: () => Promise<string>;
}

interface Identity {
  readonly name: string;
  readonly key: string | undefined;
}

onBothEngines('tenants are apart', (engine) => {
  test('nobody without a valid key gets further than 401, and all of them look alike', async (t) => {
    const vault = await startVault(t, engine, { clock: createStillClock() });
    const routes = await routesOf(vault);
    const victim = await newVictim(vault);
    const texts = new Set<string>();
    for (const identity of await strangers(vault)) {
      const asked = routes.flatMap((route) =>
        [missing, victim.token].map(async (id) => {
          const [made] = requestsWith(route, id, {});
          assert.ok(made);
          const answer = await ask(vault, identity, made);
          assert.equal(answer.status, 401, `${identity.name} ${made.method} ${made.path}`);
          texts.add(answer.text);
        }),
      );
      await Promise.all(asked);
    }
    assert.equal(texts.size, 1);
  });

  test('a foreign id is answered like one that does not exist, and alters nothing', async (t) => {
    const vault = await startVault(t, engine, { clock: createStillClock() });
    const routes = await routesOf(vault);
    const victim = await newVictim(vault);
    const intruder = await newTenant(vault);
    const plausible = await plausibleOf(intruder);
    // A second one is a conflict, whatever ids the request has.
    const begun = await intruder.send('POST', '/tenants/self/keys/rotations', {
      key: intruder.managementKey,
      body: { purpose: 'data' },
    });
    assert.equal(begun.status, 202, begun.text);
    const before = await victim.stored();
    let asked = 0;
    const below = seeded(t);
    const placesMax = placesMaxOn(engine);
    const trialsOf = async (method: string) => {
      const identities = await insiders(intruder);
      const fitting = routes.filter((one) => one.method === method);
      return identities.flatMap((identity) =>
        fitting.map((route) => ({
          vault,
          victim,
          identity,
          route,
          plausible,
          placesMax,
          firstId: below(oneIdOf),
        })),
      );
    };
    // Reads leave nothing behind that the next one would meet, so they need not wait for each other.
    const reads = await Promise.all((await trialsOf('GET')).map(tryRoute));
    asked += reads.reduce((sum, count) => sum + count, 0);
    for (const method of changing) {
      for (const trial of await trialsOf(method)) asked += await tryRoute(trial);
    }
    assert.equal(await victim.stored(), before);
    assert.ok(asked > 500, `only ${asked} requests were compared`);
    const gone = await intruder.send('DELETE', '/tenants/self', { key: intruder.managementKey });
    assert.equal(gone.status, 204);
    assert.equal(await victim.stored(), before);
  });

  test('the same idempotency key, path and body in two tenants are two requests', async (t) => {
    const vault = await startVault(t, engine, { clock: createStillClock() });
    const [one, other] = [await newTenant(vault), await newTenant(vault)];
    const sent = {
      headers: { 'svc-idempotency-key': 'the same' },
      body: { type: 'token', data: marker },
    };
    const first = await one.send('POST', '/tokens', sent);
    const second = await other.send('POST', '/tokens', sent);
    assert.deepEqual([first.status, second.status], [201, 201]);
    assert.deepEqual([first.body.tenant_id, second.body.tenant_id], [one.id, other.id]);
    assert.notEqual(first.body.id, second.body.id);
    assert.notEqual(first.body.fingerprint, second.body.fingerprint);
  });

  test('every kind of id that is stored is tried', async (t) => {
    const vault = await startVault(t, engine, { clock: createStillClock() });
    const victim = await newVictim(vault);
    const tables = (Object.keys(shapes) as Table[]).filter((one) => !withoutIds.includes(one));
    for (const table of tables) {
      const kinds = [...victim.kinds].filter((kind) => kind.startsWith(`${table}.`));
      assert.ok(kinds.length > 0, `the victim has no id of ${table}: give it one in newVictim`);
    }
  });
});

interface Trial {
  readonly vault: TestVault;
  readonly victim: Victim;
  readonly identity: Identity;
  readonly route: Route;
  readonly plausible: Readonly<Record<string, unknown>>;
  readonly placesMax: number;
  /** Which of {@link oneIdOf} ids are tried where not all are. */
  readonly firstId: number;
}

/** Compares the answers about foreign ids with the answer about an id that nobody has. */
async function tryRoute(trial: Trial): Promise<number> {
  const { vault, victim, identity, route, plausible, placesMax, firstId } = trial;
  // It takes no id; what it does to the tenant it is meant for is another test's.
  if (route.method === 'DELETE' && !route.params) return 0;
  let asked = 0;
  // Generated once for each id: that takes longer than to send one of them.
  const requests = new Map<string, readonly MadeRequest[]>();
  const places = requestsWith(route, missing, plausible).slice(0, placesMax);
  for (const [index, { place }] of places.entries()) {
    // A program, in which an id means nothing; why it cannot be run depends on its letters.
    if (place === 'body.code') continue;
    const at = (id: string) => {
      const all = requests.get(id) ?? requestsWith(route, id, plausible);
      requests.set(id, all);
      const made = all.find((one) => one.place === place);
      assert.ok(made);
      return ask(vault, identity, made);
    };
    const answers = new Map<string, Received>();
    for (const [number, [id, kind]] of [...victim.ids].entries()) {
      if (index > 0 && (firstId + index + number) % oneIdOf !== 0) continue;
      const twin = twinOf(id);
      const expected = answers.get(twin) ?? (await at(twin));
      answers.set(twin, expected);
      const answer = await at(id);
      const where = `${identity.name}: ${route.method} ${route.path} with ${kind} in ${place}`;
      assert.equal(answer.status, expected.status, `${where}\n${answer.text}\n${expected.text}`);
      assert.deepEqual(statusesOfLines(answer), statusesOfLines(expected), where);
      if (answer.status >= 400) assert.equal(named(answer, id), named(expected, twin), where);
      const said = JSON.stringify([...answer.headers, answer.text]);
      const leaked = victim.secrets.filter((secret) => secret !== id && said.includes(secret));
      assert.deepEqual(leaked, [], `${where}\n${answer.text}`);
      asked++;
      // Whoever is refused before anything is looked up is refused whatever the id.
      if (expected.status === 403 || place === 'nowhere') break;
    }
  }
  return asked;
}

/** An id of the same form that nobody has. */
function twinOf(id: string): string {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) return missing;
  return id.replace(/[a-y]/g, (letter) => String.fromCharCode(letter.charCodeAt(0) + 1));
}

function ask(vault: TestVault, { key }: Identity, made: MadeRequest): Promise<Received> {
  const { method, path, body, mediaType } = made;
  return vault.send(method, path, {
    key,
    ...(body !== undefined && { body: JSON.stringify(body) }),
    headers: { ...(body !== undefined && { 'content-type': mediaType }), 'svc-trace-id': 'same' },
  });
}

/** An answer may name the id it was asked about, and nothing else may differ. */
function named({ text }: Received, id: string): string {
  return text.replaceAll(id, '<id>');
}

/** A stream answers 200 as a whole, and says of each line what became of it. */
function statusesOfLines({ headers, text }: Received): unknown[] {
  if (headers.get('content-type') !== linesMediaType) return [];
  return linesOfAnswer({ text }).map(({ status }) => status);
}

/** A tenant that has one of everything. */
async function newVictim(vault: TestVault): Promise<Victim> {
  const tenant = await newTenant(vault);
  const metadata = { owner: marker };
  const { body: token } = await tenant.token({ type: 'token', data: marker, metadata });
  const publicKey = await tenant.application({
    name: marker,
    type: 'public',
    permissions: ['token:create', 'token-intent:create'],
  });
  const webhook = await createWebhook(tenant, { name: marker });
  assert.equal((await sendWebhook(tenant, 'POST', `/${webhook.id}/test`)).status, 202);
  // From then on nothing is sent, and what is stored stays as it is.
  const disabled = { ...leastWebhook, name: marker, status: 'disabled' };
  await sendWebhook(tenant, 'PUT', `/${webhook.id}`, { body: disabled });
  const session = await tenant.send('POST', '/sessions', { key: publicKey });
  assert.equal(session.status, 201);
  const intent = { key: publicKey, body: { type: 'token', data: marker } };
  if ((await routesOf(vault)).some(({ path }) => path === '/token-intents')) {
    assert.equal((await tenant.send('POST', '/token-intents', intent)).status, 201);
  }
  await tenant.send('GET', '/logs/checkpoint', { key: tenant.managementKey });
  const proxy = await createProxy(tenant, { name: marker, configuration: { owner: marker } });
  const reactor = await createReactor(tenant, { name: marker, configuration: { owner: marker } });
  const calling = { key: await invoker(tenant), body: { args: { owner: marker } } };
  const later = await tenant.send('POST', `/reactors/${reactor.id}/react-async`, calling);
  assert.equal(later.status, 202, later.text);
  const clientKey = await tenant.send('POST', '/keys', { key: tenant.managementKey });
  assert.equal(clientKey.status, 201, clientKey.text);
  const once = await encrypted(clientKey.body, JSON.stringify(marker), { jti: 'once' });
  await tenant.token({ type: 'token', encrypted: once });
  const own = await tenant.send('GET', '/applications/key', { key: tenant.managementKey });
  const people = { name: marker, applications: [own.body.id] };
  const person = await signInPerson(vault.url, tenant.managementKey, people);
  await addLocalPasskey(vault.url, person);
  const opened = `/people/${person.id}/links`;
  assert.equal((await tenant.send('POST', opened, { key: tenant.managementKey })).status, 201);
  await leaveApproval(tenant);
  const list = await tenant.send('GET', '/applications?size=1', { key: tenant.managementKey });
  await untilUsed(tenant, tenant.key, tenant.managementKey, publicKey, calling.key);
  const ids = new Map<string, string>();
  const kinds = new Set<string>();
  const add = (kind: string, id: string) => {
    if (!kinds.has(kind) && !ids.has(id)) ids.set(id, kind);
    kinds.add(kind);
  };
  for (const table of Object.keys(shapes) as Table[]) {
    for (const row of (await tenant.rows(table)) as Readonly<Record<string, unknown>>[]) {
      for (const [column, value] of Object.entries(row)) {
        if (column.endsWith('_id') && typeof value === 'string') add(`${table}.${column}`, value);
      }
    }
  }
  add('fingerprint', token.fingerprint);
  add('nonce', session.body.nonce);
  add('cursor', list.body.pagination.next);
  add('proxy key', proxy.key);
  const secrets = [marker, tenant.key, publicKey, session.body.session_key, webhook.secret];
  // A stream of the log is a server's, and the same for all of its tenants.
  const uncommon = [...ids].filter(([, kind]) => !/\.(?:trace|stream)_id$/.test(kind));
  return {
    tenant,
    ids,
    kinds,
    token: token.id,
    secrets: [...secrets, ...uncommon.map(([id]) => id)],
    stored: async () => {
      // Leases come and go while the vault delivers what has happened.
      const kept = (Object.keys(shapes) as Table[]).filter((one) => one !== 'leases');
      const tables = await Promise.all(kept.map((one) => tenant.rows(one)));
      const lines = tables.flat().map((row) => JSON.stringify(row));
      return lines.sort().join('\n');
    },
  };
}

/** Whoever has no valid key of any tenant. */
async function strangers(vault: TestVault): Promise<Identity[]> {
  const closed = await newTenant(vault);
  const tenant = await newTenant(vault);
  const revoked = (
    await tenant.send('POST', '/applications', {
      key: tenant.managementKey,
      body: { name: 'revoked', type: 'private', permissions: everyTokenPermission },
    })
  ).body;
  const session = await begin(tenant, everyTokenPermission);
  const manage = (method: string, path: string, of: TestTenant) =>
    of.send(method, path, { key: of.managementKey });
  const path = `/applications/${revoked.id}/keys/${revoked.keys[0].id}`;
  assert.equal((await manage('DELETE', path, tenant)).status, 204);
  assert.equal((await manage('DELETE', '/tenants/self', closed)).status, 204);
  vault.clock.advance(180_000);
  return [
    { name: 'no key', key: undefined },
    { name: 'garbage', key: 'garbage' },
    { name: 'an id', key: tenant.id },
    {
      name: 'a key that was never given',
      key: newApiKey({ env: 'test', kind: 'pvt', random: pooledRandom() }),
    },
    { name: 'a revoked key', key: revoked.key },
    { name: 'an expired session', key: session },
    { name: 'a key of a deleted tenant', key: closed.key },
  ];
}

/** Everybody that the other tenant can send. */
async function insiders(tenant: TestTenant): Promise<Identity[]> {
  const rule = {
    priority: 1,
    container: '/',
    permissions: everyTokenPermission,
    transform: 'reveal',
  };
  const everything = { rules: [rule], permissions: intentPermissions };
  const publicPermissions = ['token:create', 'token:update', 'token-intent:create'];
  return [
    { name: 'management', key: tenant.managementKey },
    { name: 'private', key: await tenant.application(everything) },
    {
      name: 'public',
      key: await tenant.application({ type: 'public', permissions: publicPermissions }),
    },
    { name: 'an authorized session', key: await begin(tenant, everyTokenPermission) },
    { name: 'a session that is not authorized', key: await begin(tenant, undefined) },
  ];
}

async function begin(tenant: TestTenant, permissions: readonly string[] | undefined) {
  const key = await tenant.application({ type: 'public', permissions: ['token:create'] });
  const { nonce, session_key } = (await tenant.send('POST', '/sessions', { key })).body;
  if (permissions) {
    const authorizer = await tenant.application({ permissions });
    const sent = { key: authorizer, body: { nonce, permissions } };
    assert.equal((await tenant.send('POST', '/sessions/authorize', sent)).status, 200);
  }
  return session_key as string;
}

/** The intruder's own things, which lead a request to where the foreign id is looked up. */
async function plausibleOf(tenant: TestTenant): Promise<Readonly<Record<string, unknown>>> {
  const key = tenant.managementKey;
  const own = await tenant.send('POST', '/applications', {
    key,
    body: { name: 'own', type: 'private', permissions: ['token:read'] },
  });
  const { body: token } = await tenant.token({ type: 'token', data: 'own' });
  return {
    id: own.body.id,
    application_id: own.body.id,
    container: '/',
    keyId: own.body.keys[0].id,
    token_id: token.id,
    permission: 'token:read',
    permissions: ['token:read'],
    transform: 'mask',
    priority: 1,
    type: 'token',
    data: 'own',
    name: 'own',
    destination_url: destination,
    nonce: 'x',
    query: `id:${token.id}`,
    tokens: [],
  };
}
