/** The log explains the database: whatever was written outside the vault is named, and nothing else is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setQuotas } from '../../src/access/tenants/update.ts';
import { day, hour, minute } from '../../src/base/clock.ts';
import { perform } from '../../src/rules/operation.ts';
import type { ChainedEntry } from '../../src/store/log-chain/entries.ts';
import type { Row } from '../../src/store/tables.ts';
import { type EncryptionKey, encrypted } from '../support/client-encryption.ts';
import { type Engine, onBothEngines, type Place } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import { bulk } from '../support/lines.ts';
import { environmentOf, runCommand } from '../support/process.ts';
import { createProxy, sendProxy } from '../support/proxies.ts';
import { createReactor, invoker, sendReactor } from '../support/reactors.ts';
import { having, insertion } from '../support/sql.ts';
import { newTenant, type TestTenant, untilUsed } from '../support/tenant.ts';
import { takeTour } from '../support/tour.ts';
import { createStillClock, routesOf, startVault, type TestVault } from '../support/vault.ts';

const visa = {
  number: '4242424242424242',
  expiration_month: 12,
  expiration_year: 2030,
  cvc: '123',
};

interface StateVerification {
  readonly code: number | null;
  readonly rows: number;
  readonly beyond: number;
  readonly findings: readonly {
    readonly kind: string;
    readonly id?: string;
    readonly seq?: number;
    readonly stream_id?: string;
    readonly entity_type?: string;
  }[];
}

async function verifyState(place: Place, ...flags: string[]): Promise<StateVerification> {
  const words = ['logs', 'verify', '--state', '--json', ...flags];
  const { code, stdout, stderr } = await runCommand(words, environmentOf(place));
  assert.ok(stdout.startsWith('{'), stderr);
  return { ...JSON.parse(stdout), code };
}

async function assertExplained(place: Place): Promise<StateVerification> {
  const verified = await verifyState(place);
  assert.deepEqual(verified.findings, []);
  assert.equal(verified.code, 0);
  return verified;
}

/** The entry that the log has about the row's last change. */
async function lastChange(tenant: TestTenant, id: string): Promise<ChainedEntry> {
  const entries = (await tenant.rows('logs')).filter(
    (entry) => entry.entity_id === id && entry.state !== null,
  );
  const version = ({ state }: ChainedEntry) => Number.parseInt(state?.slice(1) ?? '', 10);
  const last = entries.toSorted((one, two) => version(one) - version(two)).at(-1);
  assert.ok(last, id);
  return last;
}

/** Some of everything that makes, changes and removes rows. */
async function live(tenant: TestTenant): Promise<void> {
  const { vault } = tenant;
  const manage = (method: string, path: string, body?: unknown) =>
    tenant.send(method, path, { key: tenant.managementKey, body });
  await manage('PUT', '/tenants/self', {
    name: 'own name',
    settings: { deduplicate_tokens: 'true' },
  });
  await tenant.token({ id: 'changed', type: 'token', data: 1, search_indexes: ['{{ data }}'] });
  for (const metadata of [{ a: 'b' }, { a: null, c: 'd' }]) {
    await tenant.send('PATCH', '/tokens/changed', { body: { metadata } });
  }
  for (let life = 0; life < 3; life++) {
    await tenant.token({ id: 'again', type: 'token', data: `life ${life}` });
    await tenant.send('PATCH', '/tokens/again', { body: { containers: [`/life/${life}/`] } });
    if (life < 2) await tenant.send('DELETE', '/tokens/again');
  }
  await tenant.token({ type: 'card', data: visa });
  await tenant.token({ type: 'card', data: visa });
  await tenant.set({ deduplicate_tokens: 'true', token_deduplication_behavior: 'update_existing' });
  await tenant.token({ type: 'card', data: visa, metadata: { merged: 'yes' } });
  await bulk(tenant, [
    { id: 'line', type: 'token', data: 'x' },
    { id: 'line', type: 'token', data: 'x' },
    { type: 'card', data: visa },
    { type: 'card', data: visa },
  ]);
  await tenant.send('POST', '/tokenize', { body: [{ type: 'token', data: 'a' }, 'b', 'b'] });
  const intents = await tenant.application({
    permissions: ['token-intent:create', 'token-intent:read', 'token-intent:delete'],
    rules: [],
  });
  const intent = async () =>
    (
      await tenant.send('POST', '/token-intents', {
        key: intents,
        body: { type: 'card', data: visa },
      })
    ).body.id;
  await tenant.send('DELETE', `/token-intents/${await intent()}`, { key: intents });
  await tenant.token({ token_intent_id: await intent() });
  await intent();
  const webhook = { name: 'one', url: 'https://receiver.invalid/', events: ['token.created'] };
  const { id: hook } = (await manage('POST', '/webhooks', webhook)).body;
  await manage('PUT', `/webhooks/${hook}`, { ...webhook, ordered: true });
  await manage('POST', `/webhooks/${hook}/secret/rotate`);
  await tenant.token({ type: 'token', data: 'with an event' });
  await manage('POST', `/webhooks/${hook}/test`);
  const { id: gone } = (await manage('POST', '/webhooks', webhook)).body;
  await manage('DELETE', `/webhooks/${gone}`);
  const made = await manage('POST', '/applications', {
    name: 'one',
    type: 'private',
    permissions: ['token:create'],
  });
  const path = `/applications/${made.body.id}`;
  await manage('PUT', path, { name: 'two', permissions: ['token:read'] });
  const second = await manage('POST', `${path}/keys`);
  await manage('DELETE', `${path}/keys/${made.body.keys[0].id}`);
  await tenant.send('GET', '/applications/key', { key: second.body.key });
  const other = await manage('POST', '/applications', {
    name: 'gone',
    type: 'private',
    permissions: ['token:create'],
  });
  await manage('DELETE', `/applications/${other.body.id}`);
  const open = await tenant.application({ type: 'public', permissions: ['token:create'] });
  const session = await tenant.send('POST', '/sessions', { key: open });
  await tenant.send('POST', '/sessions', { key: open });
  const grant = { nonce: session.body.nonce, permissions: ['token:create'] };
  assert.equal((await tenant.send('POST', '/sessions/authorize', { body: grant })).status, 200);
  const proxy = await createProxy(tenant, { name: 'lived' });
  await sendProxy(tenant, 'PATCH', `/${proxy.id}`, { body: { timeout: 5 } });
  await createProxy(tenant, { name: 'altered' });
  await sendProxy(tenant, 'DELETE', `/${(await createProxy(tenant)).id}`);
  const reactor = await createReactor(tenant);
  await sendReactor(tenant, 'PATCH', `/${reactor.id}`, { body: { name: 'patched' } });
  await createReactor(tenant, { name: 'altered' });
  const caller = await invoker(tenant);
  const logging = await createReactor(tenant, {
    code: "module.exports = () => { console.log('x'); return {} }",
  });
  for (const one of [logging, await createReactor(tenant)]) {
    await tenant.send('POST', `/reactors/${one.id}/react`, { key: caller, body: {} });
    for (let call = 0; call < 2; call++) {
      await tenant.send('POST', `/reactors/${one.id}/react-async`, { key: caller, body: {} });
    }
    await vault.running.vault.reactorRuns?.look();
    await vault.running.vault.reactorRuns?.settled();
    await tenant.send('POST', `/reactors/${one.id}/react-async`, { key: caller, body: {} });
    if (one !== logging) await sendReactor(tenant, 'DELETE', `/${one.id}`);
  }
  await useKey(tenant, await newClientKey(tenant), 'kept');
  const removed = await newClientKey(tenant);
  await useKey(tenant, removed, 'goes with its key');
  assert.equal((await manage('DELETE', `/keys/${removed.id}`)).status, 204);
  await setQuota(vault, tenant, { cvc_retention: minute });
}

async function newClientKey(tenant: TestTenant): Promise<EncryptionKey> {
  const { status, body } = await tenant.send('POST', '/keys', { key: tenant.managementKey });
  assert.equal(status, 201);
  return body;
}

/** Makes a token of what can be used once. */
async function useKey(tenant: TestTenant, key: EncryptionKey, jti: string): Promise<void> {
  const body = { type: 'card', encrypted: await encrypted(key, JSON.stringify(visa), { jti }) };
  assert.equal((await tenant.send('POST', '/tokens', { body })).status, 201);
}

async function setQuota(vault: TestVault, tenant: TestTenant, quotas: object): Promise<void> {
  const found = await vault.running.vault.tenants.find(tenant.id);
  assert.ok(found);
  const operator = { tenant: found, application: null };
  await perform(
    { store: vault.running.vault.store, actor: operator },
    setQuotas(vault.running.vault, operator, quotas),
  );
}

async function runJobs(vault: TestVault): Promise<void> {
  for (const job of [
    'expire card codes',
    'expire card codes of token intents',
    'expire tokens',
    'expire token intents',
    'remove sessions',
    'remove results of reactors',
  ]) {
    await runJob(vault, job);
  }
}

onBothEngines('the log explains the database', (engine) => {
  test('after an ordinary life, also at a clock that stands still', async (t) => {
    const vault = await startVault(t, engine, { clock: createStillClock() });
    const tenant = await newTenant(vault);
    await live(tenant);
    const before = await assertExplained(vault.place);
    assert.ok(before.rows > 20);
    const soon = new Date(vault.clock.now() + minute).toISOString();
    await tenant.token({ id: 'short', type: 'token', data: 1, expires_at: soon });
    await tenant.token({ id: 'way', type: 'card', data: visa, expires_at: soon });
    vault.clock.advance(10 * minute);
    await tenant.token({ id: 'short', type: 'token', data: 'makes way' });
    vault.clock.advance(2 * hour);
    await runJobs(vault);
    vault.clock.advance(2 * day);
    await runJobs(vault);
    await assertExplained(vault.place);
  });

  test('after every route was called and the tenant deleted', async (t) => {
    const vault = await startVault(t, engine);
    await newTenant(vault);
    const environment = environmentOf(vault.place);
    const giveHost = (host: string) =>
      runCommand(['tenant', 'hosts', 'add', host, '--tenant', 'default'], environment);
    await takeTour(vault.url, await routesOf(vault), giveHost);
    await assertExplained(vault.place);
    await runJob(vault, 'remove deleted tenants');
    await assertExplained(vault.place);
  });

  test('of two servers, whose streams are read one after the other', async (t) => {
    const vault = await startVault(t, engine);
    const beside = await startVault(t, engine, { place: vault.place });
    const tenant = await newTenant(vault);
    await tenant.token({ id: 'shared', type: 'token', data: 0 });
    for (let turn = 0; turn < 10; turn++) {
      const server = turn % 2 === 0 ? beside : vault;
      const body = { metadata: { turn: String(turn) } };
      const { status } = await server.send('PATCH', '/tokens/shared', { key: tenant.key, body });
      assert.equal(status, 200);
      if (turn % 3 === 0) {
        await server.send('DELETE', '/tokens/shared', { key: tenant.key });
        await tenant.token({ id: 'shared', type: 'token', data: turn });
      }
    }
    await assertExplained(vault.place);
  });

  test('as far as retention has left the log, and counts what is older', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    await tenant.token({ id: 'old', type: 'token', data: 1 });
    await tenant.token({ id: 'deleted', type: 'token', data: 1 });
    await tenant.send('DELETE', '/tokens/deleted');
    await tenant.setQuotas({ log_retention: day });
    vault.clock.advance(3 * day);
    await tenant.token({ id: 'new', type: 'token', data: 1 });
    assert.ok((await runJob(vault, 'remove old logs')) > 0);
    const { beyond } = await assertExplained(vault.place);
    assert.ok(beyond > 0);
    await engine.run(
      vault.place,
      `update tokens set container = '/x/' where ${having(engine, 'tokens', { token_id: 'old' })}`,
    );
    await engine.run(
      vault.place,
      `update tokens set container = '/x/' where ${having(engine, 'tokens', { token_id: 'new' })}`,
    );
    const kinds = (await verifyState(vault.place)).findings.map(({ kind, id }) => `${kind} ${id}`);
    assert.deepEqual(kinds.sort(), ['edited new', 'inserted old']);
  });
});

interface Deed {
  readonly kind: string;
  readonly id: string;
  readonly entity: string;
}

onBothEngines('what was written outside the vault', (engine) => {
  test('is named by its kind, its id and the entry that last spoke of it', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    await live(tenant);
    const expected = await tamper(engine, tenant);
    const { code, findings } = await verifyState(vault.place);
    assert.equal(code, 3);
    const told = findings.map(({ kind, id, entity_type }) => `${kind} ${entity_type} ${id}`);
    assert.deepEqual(
      told.sort(),
      expected.map(({ kind, entity, id }) => `${kind} ${entity} ${id}`).sort(),
    );
    for (const { kind, id, seq, stream_id } of findings) {
      if (kind === 'inserted') {
        assert.equal(seq, undefined);
        continue;
      }
      const last = await lastChange(tenant, id ?? '');
      assert.deepEqual({ id, seq, stream_id }, { id, seq: last.seq, stream_id: last.stream_id });
    }
  });

  test('is named where it lets what a client encrypted be used again, or says that it was used', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const key = await newClientKey(tenant);
    const uses = async () => {
      const rows = await tenant.rows('client_key_uses');
      return rows.toSorted((one, two) => one.used_at - two.used_at);
    };
    const nameIn = (use?: Row<'client_key_uses'>) => use?.use_id ?? assert.fail();
    const takeAway = (use_id: string) =>
      engine.run(vault.place, `delete from client_key_uses where use_id = '${use_id}'`);
    for (const jti of ['removed', 'altered', 'fine']) {
      await useKey(tenant, key, jti);
      vault.clock.advance(1);
    }
    await assertExplained(vault.place);
    const [removed, altered, fine] = await uses();
    assert.ok(fine);
    const [removedId, alteredId] = [nameIn(removed), nameIn(altered)];
    await takeAway(removedId);
    await engine.run(
      vault.place,
      `update client_key_uses set used_at = 1 where use_id = '${alteredId}'`,
    );
    const planted = { ...fine, jti_digest: 'planted', use_id: 'planted' };
    await engine.run(vault.place, insertion(engine, 'client_key_uses', planted));
    const expected = [`missing ${removedId}`, `edited ${alteredId}`, 'inserted planted'];
    const named = async () => {
      const { findings } = await verifyState(vault.place);
      assert.ok(findings.every(({ entity_type }) => entity_type === 'key_use'));
      return findings.map(({ kind, id }) => `${kind} ${id}`).toSorted();
    };
    assert.deepEqual(await named(), expected.toSorted());
    // Also once it was used again, and the row is there.
    await useKey(tenant, key, 'removed');
    assert.deepEqual(await named(), expected.toSorted());
  });

  test('is named also once the vault has written the row again', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const row = async (id: string) => {
      const found = (await tenant.rows('tokens')).find(({ token_id }) => token_id === id);
      return found ?? assert.fail();
    };
    const change = (id: string, metadata: unknown) =>
      tenant.send('PATCH', `/tokens/${id}`, { body: { metadata } });
    const put = (older: Row<'tokens'>) =>
      engine.run(vault.place, insertion(engine, 'tokens', older));
    const takeAway = (id: string) =>
      engine.run(
        vault.place,
        `delete from tokens where ${having(engine, 'tokens', { tenant_id: tenant.id, token_id: id })}`,
      );
    for (const id of ['changed', 'deleted', 'gone', 'fine']) {
      await tenant.token({ id, type: 'token', data: id });
    }
    const [changed, deleted] = [await row('changed'), await row('deleted')];
    await change('changed', { a: 'first' });
    await tenant.send('DELETE', '/tokens/deleted');
    for (const id of ['changed', 'gone']) await takeAway(id);
    for (const older of [changed, deleted]) await put(older);
    for (const id of ['changed', 'deleted', 'fine']) {
      for (const a of ['second', 'third']) assert.equal((await change(id, { a })).status, 200);
    }
    await tenant.token({ id: 'gone', type: 'token', data: 'another' });
    const { code, findings } = await verifyState(vault.place);
    assert.equal(code, 3);
    assert.deepEqual(findings.map(({ kind, id }) => `${kind} ${id}`).toSorted(), [
      'missing gone',
      'restored changed',
      'restored deleted',
    ]);
  });

  test('is named also where it brought a deleted key back, which was used since', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const manage = (method: string, path: string, body?: unknown) =>
      tenant.send(method, path, { key: tenant.managementKey, body });
    const { body } = await manage('POST', '/applications', {
      name: 'leaked',
      type: 'private',
      permissions: ['token:create'],
    });
    const path = `/applications/${body.id}`;
    const [{ id: key_id, key }] = body.keys;
    await manage('POST', `${path}/keys`);
    const rows = async () => ({
      application: (await tenant.rows('applications')).find(
        ({ application_id }) => application_id === body.id,
      ),
      key: (await tenant.rows('api_keys')).find((one) => one.key_id === key_id),
    });
    const older = await rows();
    assert.ok(older.application && older.key);
    assert.equal((await manage('DELETE', `${path}/keys/${key_id}`)).status, 204);
    await engine.run(
      vault.place,
      `delete from applications where ${having(engine, 'applications', { application_id: body.id })}`,
    );
    await engine.run(vault.place, insertion(engine, 'applications', older.application));
    await engine.run(vault.place, insertion(engine, 'api_keys', older.key));
    // Servers know a revoked key for longer than this.
    vault.clock.advance(hour);
    assert.equal((await manage('POST', `${path}/keys`)).status, 201);
    const beside = await startVault(t, engine, { place: vault.place, clock: vault.clock });
    const used = await beside.send('POST', '/tokens', { key, body: { type: 'token', data: 1 } });
    assert.equal(used.status, 201);
    await untilUsed(tenant, key);
    const { findings } = await verifyState(vault.place);
    const kinds = findings.map(({ kind, entity_type, id }) => `${kind} ${entity_type} ${id}`);
    const restored = [`restored application ${body.id}`, `restored application_key ${key_id}`];
    assert.deepEqual(kinds, restored);
  });

  test('3: and in words, with --tenant alone as well; 2: with an exported file', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    await tenant.token({ id: 'mine', type: 'token', data: 1 });
    const text = (...flags: string[]) =>
      runCommand(['logs', 'verify', '--state', ...flags], environmentOf(vault.place));
    const fine = await text('--tenant', tenant.id);
    assert.equal(fine.code, 0, fine.stdout + fine.stderr);
    assert.match(fine.stdout, /^The log explains every row of the database\.$/m);
    await engine.run(
      vault.place,
      `delete from tokens where ${having(engine, 'tokens', { token_id: 'mine' })}`,
    );
    const found = await text();
    assert.equal(found.code, 3);
    assert.match(found.stdout, /^The log does NOT explain these rows:$/m);
    assert.match(found.stdout, /^ {2}missing: token mine is gone/m);
    assert.match(found.stdout, /entry \d+ of stream \S+ is the last about it/);
    assert.equal((await text('--file', 'x')).code, 2);
  });
});

/** All at once, as a thief with the database would, each row in one way. */
async function tamper(engine: Engine, tenant: TestTenant): Promise<Deed[]> {
  const { place } = tenant.vault;
  const run = (sql: string) => engine.run(place, sql);
  const tokenIs = (token_id: string) =>
    having(engine, 'tokens', { tenant_id: tenant.id, token_id });
  await tenant.set({ fingerprint_tokens: 'false' });
  const restore = async <T extends 'tokens' | 'api_keys'>(table: T, row: Row<T>) => {
    await run(insertion(engine, table, row));
  };
  const tokenOf = async (id: string) => {
    const row = (await tenant.rows('tokens')).find(({ token_id }) => token_id === id);
    assert.ok(row, id);
    return row;
  };
  for (const id of ['edited', 'rolled-back', 'put-back', 'lost']) {
    await tenant.token({ id, type: 'token', data: id });
  }
  await run(`update tokens set mask = 'null' where ${tokenIs('edited')}`);

  const older = await tokenOf('rolled-back');
  await tenant.send('PATCH', '/tokens/rolled-back', { body: { containers: ['/moved/'] } });
  await run(`delete from tokens where ${tokenIs('rolled-back')}`);
  await restore('tokens', older);

  const removed = await tokenOf('put-back');
  await tenant.send('DELETE', '/tokens/put-back');
  await restore('tokens', removed);

  await run(`delete from tokens where ${tokenIs('lost')}`);
  await restore('tokens', { ...older, token_id: 'planted' as typeof older.token_id });

  const made = await tenant.send('POST', '/applications', {
    key: tenant.managementKey,
    body: { name: 'x', type: 'private', permissions: ['token:create'] },
  });
  const keyId = made.body.keys[0].id;
  await tenant.send('GET', '/applications/key', { key: made.body.key });
  await untilUsed(tenant, made.body.key);
  const key = (await tenant.rows('api_keys')).find(({ key_id }) => key_id === keyId);
  assert.ok(key);
  const path = `/applications/${made.body.id}/keys/${keyId}`;
  await tenant.send('DELETE', path, { key: tenant.managementKey });
  await restore('api_keys', key);
  await run(`update applications set type = 'public' where application_id = '${made.body.id}'`);
  const proxy = (await tenant.rows('proxies')).find(({ name }) => name === 'altered');
  assert.ok(proxy);
  await run(`update proxies set name = 'x' where proxy_id = '${proxy.proxy_id}'`);
  const reactor = (await tenant.rows('reactors')).find(({ name }) => name === 'altered');
  assert.ok(reactor);
  await run(`update reactors set name = 'x' where reactor_id = '${reactor.reactor_id}'`);
  const [session] = await tenant.rows('sessions');
  assert.ok(session);
  await run(
    `update sessions set expires_at = 9999999999999 where session_id = '${session.session_id}'`,
  );
  await run(
    `update tenants set quotas = '{"cvc_retention":999999999}' where tenant_id = '${tenant.id}'`,
  );
  return [
    { kind: 'edited', entity: 'token', id: 'edited' },
    { kind: 'restored', entity: 'token', id: 'rolled-back' },
    { kind: 'restored', entity: 'token', id: 'put-back' },
    { kind: 'missing', entity: 'token', id: 'lost' },
    { kind: 'inserted', entity: 'token', id: 'planted' },
    { kind: 'restored', entity: 'application_key', id: keyId },
    { kind: 'edited', entity: 'proxy', id: proxy.proxy_id },
    { kind: 'edited', entity: 'reactor', id: reactor.reactor_id },
    { kind: 'edited', entity: 'application', id: made.body.id },
    { kind: 'edited', entity: 'session', id: session.session_id },
    { kind: 'edited', entity: 'tenant', id: tenant.id },
  ];
}
