/** Who can write to the database cannot make the vault destroy data by itself: what jobs remove is checked. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { jobsOf } from '../../src/runtime/jobs/jobs.ts';
import type { Store } from '../../src/store/store.ts';
import { type Engine, engineOf, onBothEngines } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import { having } from '../support/sql.ts';
import { newTenant } from '../support/tenant.ts';
import { startVault, type TestVault } from '../support/vault.ts';

const hour = 3_600_000;
const longAgo = 1;
const altered = { code: 'integrity' };

onBothEngines('An end that was altered in the database', (engine) => {
  test('of a token destroys nothing, and others are removed when they are due', async (t) => {
    const { vault, tenant, write } = await prepare(t, engine);
    const expires_at = new Date(vault.clock.now() + hour).toISOString();
    for (const id of ['a-1', 'b-1', 'c-1']) await tenant.token({ id, type: 'token', data: id });
    await tenant.token({ id: 'due-1', type: 'token', data: 1, expires_at });
    for (const token_id of ['a-1', 'b-1']) {
      const own = having(engine, 'tokens', { token_id });
      await write(`update tokens set expires_at = ${longAgo} where ${own}`);
    }
    vault.clock.advance(2 * hour);
    await assert.rejects(runJob(vault, 'expire tokens'), altered);
    const ids = (await tenant.rows('tokens')).map(({ token_id }) => token_id);
    assert.deepEqual(ids.toSorted(), ['a-1', 'b-1', 'c-1']);
    assert.equal((await tenant.logged()).filter((one) => one === 'expire').length, 1);
    await write(`update tokens set expires_at = null`);
    assert.equal((await tenant.send('GET', '/tokens/a-1')).body.data, 'a-1');
  });

  test('of a token lets no other take its id, or answer for its value', async (t) => {
    const { vault, tenant, write } = await prepare(t, engine);
    const value = { type: 'token', data: 'a value', deduplicate_token: true };
    await tenant.token({ ...value, id: 'taken' });
    await write(`update tokens set expires_at = ${longAgo}`);
    for (const body of [{ ...value, id: 'taken', data: 'another' }, value]) {
      const answer = await tenant.send('POST', '/tokens', { body });
      assert.equal(answer.status, 500, answer.text);
      assert.equal(answer.body.type, 'urn:strongroom:problem:integrity');
    }
    assert.equal((await tenant.rows('tokens')).length, 1);
    assert.equal(await failuresOf(vault), 2);
  });

  test('of a token intent destroys nothing', async (t) => {
    const { vault, tenant, write } = await prepare(t, engine);
    const key = await tenant.application({
      permissions: ['token-intent:create', 'token-intent:read'],
    });
    const sent = { key, body: { type: 'token', data: 'waits' } };
    const { id } = (await tenant.send('POST', '/token-intents', sent)).body;
    await write(`update token_intents set expires_at = ${longAgo}`);
    await assert.rejects(runJob(vault, 'expire token intents'), altered);
    assert.deepEqual(
      (await tenant.rows('token_intents')).map((row) => row.token_intent_id),
      [id],
    );
  });

  test('of a session removes neither it nor the key of somebody else', async (t) => {
    const { vault, tenant, write } = await prepare(t, engine);
    const opening = await tenant.application({ type: 'public', permissions: ['token:create'] });
    await tenant.send('POST', '/sessions', { key: opening });
    const { key_hash } = (await tenant.rows('api_keys'))[0] ?? {};
    await write(`update sessions set expires_at = ${longAgo}, key_hash = '${key_hash}'`);
    await tenant.send('POST', '/sessions', { key: opening });
    const keys = (await tenant.rows('api_keys')).length;
    vault.clock.advance(hour);
    await assert.rejects(runJob(vault, 'remove sessions'), altered);
    assert.equal((await tenant.rows('sessions')).length, 1);
    assert.equal((await tenant.rows('api_keys')).length, keys - 1);
    assert.equal(
      (await tenant.send('GET', '/tenants/self', { key: tenant.managementKey })).status,
      200,
    );
  });

  test('of a tenant destroys nothing: its keys are refused until the row is repaired', async (t) => {
    const { vault, tenant, write } = await prepare(t, engine);
    const [other, gone] = [await newTenant(vault), await newTenant(vault)];
    await tenant.token({ id: 'kept', type: 'token', data: 'kept' });
    await gone.send('DELETE', '/tenants/self', { key: gone.managementKey });
    const [tombstone] = await gone.rows('tenants');
    const where = `where tenant_id = '${tenant.id}'`;
    for (const proof of ['', tombstone?.proof]) {
      const [row] = await tenant.rows('tenants');
      await write(`update tenants set deleted_at = 5, proof = '${proof}' ${where}`);
      await runJob(vault, 'remove deleted tenants');
      assert.equal((await tenant.rows('tokens')).length, 1);
      assert.deepEqual(await gone.rows('applications'), []);
      assert.equal((await tenant.send('GET', '/tokens/kept')).status, 401);
      assert.ok((await tenant.logged('application_key')).includes('authenticate denied'));
      assert.equal(
        (await other.send('GET', '/tenants/self', { key: other.managementKey })).status,
        200,
      );
      await write(`update tenants set deleted_at = null, proof = '${row?.proof}' ${where}`);
      assert.equal((await tenant.send('GET', '/tokens/kept')).body.data, 'kept');
    }
  });

  test('is an alert in the log and in the metrics', async (t) => {
    const { vault: first, tenant, write } = await prepare(t, engine);
    await tenant.token({ id: 'a-secret-id', type: 'token', data: 1 });
    await write(`update tokens set expires_at = ${longAgo}`);
    await first.stop();
    const vault = await startVault(t, engine, { place: first.place });
    const failed = vault.logged.filter(({ message }) => /^a job failed/.test(message));
    const [reason] = failed.map(({ fields }) => fields?.reason ?? '');
    assert.equal(failed.length, 1);
    assert.match(reason ?? '', /^a token of tenant [0-9a-f-]+ was altered outside the vault/);
    assert.equal(reason?.includes('a-secret-id'), false);
    assert.equal(await failuresOf(vault), 1);
  });
});

onBothEngines('A token that is due', (engine) => {
  test('and that somebody else removes meanwhile, is no damage and keeps no other back', async (t) => {
    const { vault, tenant } = await prepare(t, engine);
    const expires_at = new Date(vault.clock.now() + hour).toISOString();
    const ids = ['a-1', 'b-1', 'c-1'];
    for (const id of ids) await tenant.token({ id, type: 'token', data: id, expires_at });
    vault.clock.advance(2 * hour);
    const { store } = vault.running.vault;
    const remove = `delete from tokens where ${having(engine, 'tokens', { token_id: 'b-1' })}`;
    /** As another server would, between what this one finds and what it reads. */
    const scan: Store['scan'] = async (query, payer) => {
      const found = await store.scan(query, payer);
      await engine.run(vault.place, remove);
      return found;
    };
    const jobs = jobsOf({ ...vault.running.vault, store: { ...store, scan } });
    const job = jobs.find(({ name }) => name === 'expire tokens');
    assert.equal(await job?.run(new AbortController().signal), 2);
    assert.deepEqual(await tenant.rows('tokens'), []);
    assert.equal((await tenant.logged()).filter((one) => one === 'expire').length, 2);
  });
});

test('A token whose id is not even of its type is damage, and the rest of its batch is removed', async (t) => {
  const engine = engineOf('sqlite');
  const { vault, tenant } = await prepare(t, engine);
  const expires_at = new Date(vault.clock.now() + hour).toISOString();
  for (const id of ['due-1', 'due-2']) {
    await tenant.token({ id, type: 'token', data: id, expires_at });
  }
  const file = join(vault.place.dataDir, 'strongroom.db');
  const open = () => new DatabaseSync(file, { timeout: 5000, defensive: false });
  const schema = open();
  schema.exec('pragma writable_schema = on');
  schema.exec("update sqlite_schema set sql = replace(sql, ') strict', ')') where name = 'tokens'");
  schema.close();
  const planting = open();
  const columns = planting.prepare('select * from tokens').columns();
  const names = columns.map(({ name }) => name);
  const values = names.map((name) => (name === 'token_id' ? '5' : name));
  planting.exec(`insert into tokens (${names}) select ${values} from tokens limit 1`);
  planting.close();
  vault.clock.advance(2 * hour);
  await assert.rejects(runJob(vault, 'expire tokens'), altered);
  assert.equal((await tenant.rows('tokens')).length, 1);
  assert.equal((await tenant.logged()).filter((one) => one === 'expire').length, 2);
});

async function prepare(t: TestContext, engine: Engine) {
  const vault = await startVault(t, engine);
  const tenant = await newTenant(vault);
  /** Beside the vault; every cache has forgotten what was there when it resolves. */
  const write = async (sql: string) => {
    await engine.run(vault.place, sql);
    vault.clock.advance(4000);
  };
  return { vault, tenant, write };
}

async function failuresOf(vault: TestVault): Promise<number> {
  const { text } = await vault.send('GET', '/metrics');
  return Number(/^strongroom_integrity_failures_total (\d+)$/m.exec(text)?.[1]);
}
