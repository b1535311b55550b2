/** With many tenants: what a start, an idle job and a cache cost goes by what is used, not by how many there are. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasNoRootKey, openVaultKeys } from '../../src/access/keyrings/open-vault-keys.ts';
import { bootstrap } from '../../src/access/tenants/bootstrap.ts';
import { createTenants } from '../../src/access/tenants/tenants.ts';
import { setQuotas } from '../../src/access/tenants/update.ts';
import { day, hour, minute } from '../../src/base/clock.ts';
import { perform } from '../../src/rules/operation.ts';
import { jobsOf } from '../../src/runtime/jobs/jobs.ts';
import type { Store } from '../../src/store/store.ts';
import { onBothEngines } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import { signCheckpoints } from '../support/logs.ts';
import { addWebhook } from '../support/receivers.ts';
import { newTenant } from '../support/tenant.ts';
import { startVault, type TestVault, threads } from '../support/vault.ts';

/** The vault's own parts over a store that counts what is read. */
function counted({ running, clock }: TestVault) {
  const { store, roots, vaultKeys, random } = running.vault;
  const read = { queries: 0, rows: 0, tenants: new Set<string>() };
  const noting = <R>(rows: R[]): R[] => {
    read.queries += 1;
    read.rows += rows.length;
    return rows;
  };
  const counting: Store = {
    ...store,
    get: async (table, key) => {
      const row = await store.get(table, key);
      noting(row ? [row] : []);
      if (table === 'tenants' && 'tenant_id' in key) read.tenants.add(String(key.tenant_id));
      return row;
    },
    select: async (query) => noting(await store.select(query)),
    scan: async (query, payer) => noting(await store.scan(query, payer)),
  };
  const tenants = createTenants({ store: counting, vaultKeys, clock, random });
  return { read, tools: { store: counting, tenants, roots, vaultKeys, clock, random } };
}

/** Jobs that pass over all tenants in the course of time, some in each run: so many, however many there are. */
const passing = new Set(['recount stored bytes', 'renew aged keys']);

/** What a start reads, and one run of every other job. */
async function readAtStart(vault: TestVault) {
  const { read, tools } = counted(vault);
  assert.equal(await hasNoRootKey(tools.store), false);
  assert.equal((await openVaultKeys(tools)).proof, 'proven');
  await bootstrap(tools, { tenant: 'default', type: 'test', key: undefined });
  const timer = { now: () => 0, pause: async () => undefined };
  for (const job of jobsOf({ ...tools, timer }, undefined, vault.running.vault.reactorRuns)) {
    if (passing.has(job.name)) continue;
    await job.run(new AbortController().signal);
  }
  const { queries, rows, tenants } = read;
  return { queries, rows, tenants: tenants.size };
}

/** Until nothing is due of any tenant any more. */
async function settle(vault: TestVault): Promise<void> {
  await signCheckpoints(vault);
  vault.clock.advance(hour);
  await signCheckpoints(vault);
  vault.clock.advance(hour);
  await signCheckpoints(vault);
}

onBothEngines('with many tenants', (engine) => {
  test('a start and an idle run of every job read the same as with few, and open no keyring', async (t) => {
    const vault = await startVault(t, engine);
    for (let count = 0; count < 2; count++) await newTenant(vault);
    await settle(vault);
    const few = await readAtStart(vault);
    for (let count = 0; count < 30; count++) await newTenant(vault);
    await settle(vault);
    const many = await readAtStart(vault);
    assert.deepEqual(many, few);
    assert.equal(many.tenants, 0);
    assert.ok(many.rows < 10, `${many.rows} rows`);
  });

  test('a job looks at the tenants that have something due, and at no others', async (t) => {
    const vault = await startVault(t, engine);
    const tenants = await Promise.all(Array.from({ length: 6 }, () => newTenant(vault)));
    const [busy, hooked] = tenants;
    assert.ok(busy && hooked);
    await settle(vault);
    const expires_at = new Date(vault.clock.now() + minute).toISOString();
    await busy.token({ type: 'token', data: 'x', expires_at });
    await addWebhook(vault.running.vault, hooked.id, { url: 'https://hooks.example' });
    vault.clock.advance(hour);
    const { read, tools } = counted(vault);
    const timer = { now: () => 0, pause: async () => undefined };
    for (const job of jobsOf({ ...tools, timer })) await job.run(new AbortController().signal);
    const own = tenants.map(({ id }) => String(id));
    const looked = own.filter((id) => read.tenants.has(id));
    // The webhook was made with an entry in the log, which a checkpoint covers.
    assert.deepEqual(new Set(looked), new Set([busy.id, hooked.id]));
    assert.deepEqual(await busy.rows('tokens'), []);
  });

  test('every tenant that has something due is served, and one whose row was altered stops nobody', async (t) => {
    const vault = await startVault(t, engine);
    const tenants = await Promise.all(Array.from({ length: 5 }, () => newTenant(vault)));
    const expires_at = new Date(vault.clock.now() + minute).toISOString();
    for (const tenant of tenants) await tenant.token({ type: 'token', data: 'x', expires_at });
    const [altered, ...others] = tenants;
    assert.ok(altered);
    await engine.run(
      vault.place,
      `update tenants set type = 'production' where tenant_id = '${altered.id}'`,
    );
    vault.clock.advance(hour);
    await assert.rejects(runJob(vault, 'expire tokens'), {
      code: 'integrity',
      message: new RegExp(altered.id),
    });
    for (const tenant of others) assert.deepEqual(await tenant.rows('tokens'), []);
    assert.equal((await altered.rows('tokens')).length, 1);
  });

  test('a log that grew before a stop has its checkpoint after the next start', async (t) => {
    const vault = await startVault(t, engine);
    const tenants = [await newTenant(vault), await newTenant(vault)] as const;
    await settle(vault);
    const signed = (await tenants[0].rows('checkpoints')).length;
    await tenants[0].token({ type: 'token', data: 'x' });
    await vault.stop();
    const next = await startVault(t, engine, { place: vault.place, clock: vault.clock });
    // The first run, at the start, has signed it.
    const store = next.running.vault.store;
    const rows = await store.select((db) =>
      db.selectFrom('checkpoints').selectAll().where('tenant_id', '=', tenants[0].id),
    );
    assert.equal(rows.length, signed + 1);
    assert.equal(await signCheckpoints(next), 0);
  });

  test('notes of logs that have not grown any more go, and come again with the next entry', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const notes = async () =>
      (await tenant.rows('due_work')).filter(({ work }) => work === 'checkpoint').length;
    // Each thread that answers makes its own.
    const some = (count: number) => assert.ok(count >= 1 && count <= Number(threads), `${count}`);
    some(await notes());
    await settle(vault);
    assert.equal(await notes(), 0);
    await tenant.token({ type: 'token', data: 1 });
    await tenant.token({ type: 'token', data: 2 });
    some(await notes());
  });

  test('a shorter retention of the log takes effect with the next run', async (t) => {
    const vault = await startVault(t, engine);
    const { tenants, clock, store } = vault.running.vault;
    const one = await newTenant(vault);
    await signCheckpoints(vault);
    vault.clock.advance(10 * day);
    assert.equal(await runJob(vault, 'remove old logs'), 0);
    const tenant = await tenants.find(one.id);
    assert.ok(tenant);
    const operator = { tenant, application: null };
    const set = setQuotas({ tenants, clock }, operator, { log_retention: day });
    await perform({ store, actor: undefined }, set);
    assert.ok((await runJob(vault, 'remove old logs')) > 0);
    // One note is left, of the next time.
    const due = (await one.rows('due_work')).filter(({ work }) => work === 'old logs');
    assert.equal(due.length, 1);
    assert.ok((due[0]?.due_at ?? 0) > vault.clock.now());
  });

  test('opened keyrings are bounded, and the one that was used last stays', async (t) => {
    const vault = await startVault(t, engine);
    const ids = [await newTenant(vault), await newTenant(vault), await newTenant(vault)].map(
      ({ id }) => id,
    );
    const { store, vaultKeys, random } = vault.running.vault;
    const { clock } = vault;
    const tenants = createTenants({ store, vaultKeys, clock, random, cachedMax: 2 });
    const keyringOf = async (at: number) => (await tenants.find(ids[at] as never))?.keyring;
    const first = await keyringOf(0);
    assert.equal(await keyringOf(0), first);
    await keyringOf(1);
    const third = await keyringOf(2);
    assert.equal(await keyringOf(2), third);
    assert.notEqual(await keyringOf(0), first);
  });
});
