/** A vault that was stopped and has rows in every table that there is, for what has to bring all of them along. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { activateKeys, introduceKeys } from '../../src/access/key-rotations/rotation.ts';
import { indexLog } from '../../src/audit/search-index/build.ts';
import { day, hour } from '../../src/base/clock.ts';
import { shapes, type Table } from '../../src/store/tables.ts';
import { leaveApproval } from './approvals.ts';
import { newRootKey } from './backups.ts';
import { encrypted } from './client-encryption.ts';
import { pushingTo } from './collector.ts';
import { answer, startDestination } from './destination.ts';
import type { Engine, Place } from './engines.ts';
import { runJob } from './jobs.ts';
import { mixedTraffic, signCheckpoints } from './logs.ts';
import { addLocalPasskey } from './passkeys.ts';
import { signInPerson } from './people.ts';
import { nextLook } from './poll.ts';
import type { Environment } from './process.ts';
import { createProxy } from './proxies.ts';
import { createReactor, invoker, takeDue } from './reactors.ts';
import { addWebhook } from './receivers.ts';
import { storedRows } from './rows.ts';
import type { Lender } from './temporary.ts';
import { newTenant, type TestTenant } from './tenant.ts';
import { createTestClock, revealEverything, startVault, type TestVault } from './vault.ts';

/** What a caller reads, which stays the same as long as nobody writes. */
export interface KnownRead {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly key: string;
  readonly body?: unknown;
}

export interface CompleteVault {
  readonly place: Place;
  readonly rootKey: Environment;
  readonly reads: readonly KnownRead[];
}

export async function completeVault(t: Lender, engine: Engine): Promise<CompleteVault> {
  const place = await engine.place(t);
  const rootKey = newRootKey();
  const collector = await startDestination(t);
  // It takes the log, and no events.
  collector.behave(async (exchange) => {
    const { url } = await exchange.received;
    await answer(url === '/log' ? 200 : 503)(exchange);
  });
  const clock = createTestClock();
  // What the log no longer has was written so long ago, and all else is of today.
  clock.advance(-agedMs);
  const environment = {
    ...rootKey,
    ...pushingTo(t, `${collector.url}/log`, collector.authority),
    STRONGROOM_OUTBOUND_ALLOW: collector.name,
    STRONGROOM_TRUSTED_PROXIES: '127.0.0.1',
  };
  const vault = await startVault(t, engine, { place, clock, environment });
  const tenant = await newTenant(vault);
  await makeRemovedLogs(vault, tenant);
  const reads = [
    ...(await makeTokens(tenant)),
    ...(await makeCalls(tenant, collector.url)),
    ...(await makePeople(tenant)),
  ];
  await makeRotation(tenant);
  await makeLogs(tenant, () => collector.requests.length > 0);
  await vault.stop();
  await assertComplete(engine, place);
  return { place, rootKey, reads };
}

const agedMs = 3 * day;

/** Every table has a row. */
export async function assertComplete(engine: Engine, place: Place): Promise<void> {
  const names = Object.keys(shapes) as Table[];
  const counts = await Promise.all(
    names.map(async (name) => [name, (await storedRows(engine, place, name)).length] as const),
  );
  const empty = counts.filter(([, count]) => count === 0).map(([name]) => name);
  assert.deepEqual(empty, [], 'give these tables a row in tests/support/every-row.ts');
}

async function makeRemovedLogs(vault: TestVault, tenant: TestTenant): Promise<void> {
  await mixedTraffic(vault, 2);
  for (const data of ['old', 'older']) await tenant.token({ type: 'token', data });
  await tenant.setQuotas({ log_retention: day });
  await signCheckpoints(vault);
  vault.clock.advance(agedMs);
  await tenant.token({ type: 'token', data: 'of today' });
  await signCheckpoints(vault);
  assert.ok((await runJob(vault, 'remove old logs')) > 0);
}

async function makeTokens(tenant: TestTenant): Promise<readonly KnownRead[]> {
  const { key, managementKey } = tenant;
  const get = (path: string): KnownRead => ({ method: 'GET', path, key });
  const reads: KnownRead[] = [];
  for (let number = 0; number < tokenCount; number++) {
    const made = await tenant.token({
      type: 'token',
      data: { number, text: randomBytes(number % 7 === 0 ? 20_000 : 20).toString('base64') },
      metadata: { number: String(number), name: 'ünï "quoted" \\ text' },
      search_indexes: ['{{ data.number }}'],
      containers: [number % 2 === 0 ? '/even/' : '/odd/'],
      ...(number % 3 === 0 && { expires_at: new Date(Date.now() + day).toISOString() }),
    });
    reads.push(get(`/tokens/${made.body.id}`));
    reads.push({
      method: 'POST',
      path: '/v2/tokens/search',
      key,
      body: { query: `data:${number}` },
    });
  }
  const headers = { 'svc-idempotency-key': 'a key of at least 22 characters' };
  const body = { type: 'token', data: 'repeated once', deduplicate_token: true };
  assert.equal((await tenant.send('POST', '/tokens', { body, headers })).status, 201);
  const permissions = ['token-intent:create', 'token:create'];
  const publicKey = await tenant.application({ type: 'public', permissions });
  const intent = { key: publicKey, body: { type: 'token', data: 'intended' } };
  assert.equal((await tenant.send('POST', '/token-intents', intent)).status, 201);
  assert.equal((await tenant.send('POST', '/sessions', { key: publicKey })).status, 201);
  const pair = await tenant.send('POST', '/keys', { key: managementKey });
  await tenant.token({
    type: 'token',
    encrypted: await encrypted(pair.body, '"sealed by a client"', { jti: 'once' }),
  });
  for (const size of [5, 50]) reads.push(get(`/v2/tokens?size=${size}&metadata.number=7`));
  reads.push(get('/v2/tokens?size=20&container=%2Feven%2F'));
  return reads;
}

const tokenCount = 40;

async function makeCalls(tenant: TestTenant, receiver: string): Promise<readonly KnownRead[]> {
  const key = tenant.managementKey;
  const proxy = await createProxy(tenant, { proxy_host: 'calls.example.com', configuration });
  const reactor = await createReactor(tenant, { configuration });
  const calling = { key: await invoker(tenant), body: { args: { of: 'this call' } } };
  const later = await tenant.send('POST', `/reactors/${reactor.id}/react-async`, calling);
  assert.equal(later.status, 202, later.text);
  await takeDue(tenant.vault.running.vault.reactorRuns);
  await leaveApproval(tenant);
  await addWebhook(tenant.vault.running.vault, tenant.id, { url: `${receiver}/hook` });
  await tenant.token({ type: 'token', data: 'an event' });
  while ((await tenant.rows('webhook_failures')).length === 0) await nextLook();
  return [`/proxies/${proxy.id}`, '/proxies', `/reactors/${reactor.id}`, '/reactors'].map(
    (path): KnownRead => ({ method: 'GET', path, key }),
  );
}

const configuration = { SECRET: 'a value' };

async function makePeople(tenant: TestTenant): Promise<readonly KnownRead[]> {
  const { managementKey: key } = tenant;
  const { body: own } = await tenant.send('GET', '/applications/key', { key });
  const person = await signInPerson(tenant.vault.url, key, { applications: [own.id] });
  await addLocalPasskey(tenant.vault.url, person);
  const link = await tenant.send('POST', `/people/${person.id}/links`, { key });
  assert.equal(link.status, 201, link.text);
  return [{ method: 'GET', path: `/people/${person.id}`, key }];
}

/** One that is paused between its steps, with a value that was claimed meanwhile. */
async function makeRotation(tenant: TestTenant): Promise<void> {
  const { managementKey: key, id: tenant_id } = tenant;
  const parts = tenant.vault.running.vault;
  const path = '/tenants/self/keys/rotations';
  const purpose = 'fingerprint';
  const begun = await tenant.send('POST', path, { key, body: { purpose } });
  assert.equal(begun.status, 202, begun.text);
  for (const step of [introduceKeys, activateKeys]) {
    const row = await parts.store.get('key_rotations', { tenant_id, purpose });
    const change = row && (await step(parts, row));
    assert.ok(change);
    assert.deepEqual(await parts.store.commit(change), {});
  }
  await tenant.token({ type: 'token', data: 'claimed', deduplicate_token: true });
  const paused = await tenant.send('POST', `${path}/pause`, { key });
  assert.equal(paused.status, 200, paused.text);
}

/** What is known of the log beside its entries, and the last: who works on what of it. */
async function makeLogs(tenant: TestTenant, hasPushed: () => boolean): Promise<void> {
  const { vault, id: tenant_id } = tenant;
  const { store, clock, tenants } = vault.running.vault;
  const key = await tenant.application({ rules: [revealEverything] });
  const readFrom = (address: string) =>
    tenant.send('GET', '/v2/tokens?size=1', { key, headers: { 'x-forwarded-for': address } });
  await readFrom('198.51.100.1');
  while ((await tenant.rows('alert_marks')).length === 0) await nextLook();
  vault.clock.advance(2 * hour);
  const keys = await tenants.find(tenant_id);
  assert.ok(keys);
  const indexing = { store, clock, chapterEntries: 50 };
  assert.ok((await indexLog(indexing, keys, new AbortController().signal)) > 0);
  vault.clock.advance(-2 * hour);
  while (!hasPushed() || (await tenant.rows('log_pushes')).length === 0) await nextLook();
  await runJob(vault, 'record activity');
  const now = clock.now();
  const lease = { tenant_id, name: 'of a server that was killed', holder: 'none', until: now };
  await store.record({ insert: { leases: [lease] } });
}
