/** What an attacker with write access writes into the rows of rotations makes no keys, and stops no other tenant. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rotationWork } from '../../src/access/key-rotations/open-rotations.ts';
import { newNote } from '../../src/queue/notes.ts';
import { rotateTenantKeys } from '../../src/runtime/jobs/rotate-keys.ts';
import { onBothEngines } from '../support/engines.ts';
import { newTenant, type TestTenant } from '../support/tenant.ts';
import { startVault, type TestVault } from '../support/vault.ts';

const path = '/tenants/self/keys/rotations';

const rotated = ({ running }: TestVault) =>
  rotateTenantKeys({ ...running.vault, isAlone: () => true }).run(new AbortController().signal);

async function begin({ vault, managementKey: key }: TestTenant, purpose: string): Promise<void> {
  const { status } = await vault.send('POST', path, { key, body: { purpose } });
  assert.equal(status, 202);
}

/** Servers look at the tenant's rotations again. */
async function remind({ vault, id }: TestTenant): Promise<void> {
  const { store, clock } = vault.running.vault;
  const note = await newNote(store, { tenant: id, work: rotationWork }, clock.now());
  await store.record({ insert: { due_work: [note] } });
}

interface ShownKey {
  readonly purpose: string;
  readonly state: string;
  readonly rows: number;
}

async function keysOf({ vault, managementKey: key }: TestTenant, purpose: string) {
  const { body } = await vault.send('GET', '/tenants/self/keys', { key });
  return body.keys.filter((one: ShownKey) => one.purpose === purpose) as readonly ShownKey[];
}

async function versionsOf(tenant: TestTenant, purpose: string): Promise<number> {
  return (await keysOf(tenant, purpose)).length;
}

async function rotationsOf({ vault, managementKey: key }: TestTenant) {
  return (await vault.send('GET', path, { key })).body;
}

function destroy({ vault, managementKey: key }: TestTenant, version: number) {
  return vault.send('DELETE', `/tenants/self/keys/data/${version}`, { key });
}

/** So many steps of the tenant's rotation, as a server does that is stopped after them. */
async function steps({ running }: TestVault, count: number): Promise<void> {
  const stopping = new AbortController();
  let left = count;
  const { store, ...others } = running.vault;
  const counting = {
    ...store,
    commit: (async (change, ...more) => {
      const outcome = await store.commit(change, ...more);
      left -= 1;
      if (left === 0) stopping.abort();
      return outcome;
    }) as typeof store.commit,
  };
  const job = rotateTenantKeys({ ...others, store: counting, isAlone: () => true });
  await job.run(stopping.signal);
}

const lie = (assignments: string, { id }: TestTenant) =>
  `update key_rotations set ${assignments} where tenant_id = '${id}'`;

onBothEngines('the row of a rotation', (engine) => {
  test('begins nothing where the log does not say that the vault began a rotation', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    await begin(tenant, 'data');
    await engine.run(vault.place, lie("purpose = 'fingerprint'", tenant));
    await assert.rejects(rotated(vault), /begun outside the vault/);
    assert.equal(await versionsOf(tenant, 'fingerprint'), 1);
    assert.equal(await versionsOf(tenant, 'data'), 1);
    await begin(tenant, 'fingerprint');
    await rotated(vault);
    assert.equal(await versionsOf(tenant, 'fingerprint'), 2, 'one that the vault begins goes on');
  });

  test('makes no second keys when it is set back, or said to have begun at another time', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    await begin(tenant, 'data');
    await rotated(vault);
    assert.equal(await versionsOf(tenant, 'data'), 2);
    for (const time of ['started_at', 'started_at + 1', 'started_at - 1']) {
      const back = lie(`phase = 'waiting', finished_at = null, started_at = ${time}`, tenant);
      await engine.run(vault.place, back);
      await remind(tenant);
      await assert.rejects(rotated(vault), /begun outside the vault/);
      assert.equal(await versionsOf(tenant, 'data'), 2);
    }
  });

  test('is what the keyring says once new keys are in it: nothing stalls the rotation or ends it early', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const read = { type: 'token', data: 'a', id: 'kept' };
    await tenant.send('POST', '/tokens', { body: read });
    const lies: readonly (readonly [name: string, sql: string])[] = [
      ['finished', lie("phase = 'finished', finished_at = 1", tenant)],
      ['removed', `delete from key_rotations where tenant_id = '${tenant.id}'`],
      ['unreadable', lie('rows_done = 9223372036854775807', tenant)],
      ['without a note', `delete from due_work where work = '${rotationWork}'`],
      ['set back', lie("phase = 'waiting'", tenant)],
      ['advanced', lie("phase = 'sealing'", tenant)],
    ];
    for (const [name, sql] of lies) {
      const versions = await versionsOf(tenant, 'data');
      await begin(tenant, 'data');
      await steps(vault, 1);
      await engine.run(vault.place, sql);
      const again = { key: tenant.managementKey, body: { purpose: 'data' } };
      assert.equal((await vault.send('POST', path, again)).status, 409, name);
      assert.equal((await destroy(tenant, versions)).status, 409, `${name}: nothing is destroyed`);
      await rotated(vault).catch(({ message }) => assert.match(message, /outside the vault/));
      const keys = await keysOf(tenant, 'data');
      assert.deepEqual(
        keys.map(({ state, rows }) => [state, rows]),
        [...Array(versions).fill(['decrypt_only', 0]), ['active', 1]],
        name,
      );
      const [rotation] = await rotationsOf(tenant);
      assert.equal(rotation.state, 'finished', name);
    }
    assert.equal((await tenant.send('GET', '/tokens/kept')).body.data, 'a');
  });

  test('never says that a rotation is finished whose rows are not sealed again', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    await tenant.send('POST', '/tokens', { body: { type: 'token', data: 'a' } });
    await begin(tenant, 'search');
    await steps(vault, 2);
    await engine.run(vault.place, lie("phase = 'finished', finished_at = 1", tenant));
    const [rotation] = await rotationsOf(tenant);
    assert.equal(rotation.state, 'sealing');
    assert.equal(rotation.finished_at, undefined);
    assert.equal((await destroy(tenant, 1)).status, 409);
    await assert.rejects(rotated(vault), /altered or removed outside the vault/);
    assert.equal((await rotationsOf(tenant))[0].state, 'finished');
    assert.equal((await destroy(tenant, 1)).status, 204);
  });

  test('pauses nothing that the log does not say was paused', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    await begin(tenant, 'data');
    await engine.run(vault.place, lie('is_paused = 1', tenant));
    await assert.rejects(rotated(vault), /paused outside the vault/);
    await rotated(vault);
    assert.equal(await versionsOf(tenant, 'data'), 2);
    await begin(tenant, 'data');
    const key = tenant.managementKey;
    await vault.send('POST', `${path}/pause`, { key });
    await rotated(vault);
    assert.equal(await versionsOf(tenant, 'data'), 2, 'a pause of the vault holds');
    const resumed = await vault.send('POST', `${path}/resume`, { key });
    assert.equal(resumed.body[0].state, 'waiting');
    await engine.run(vault.place, lie('is_paused = 1', tenant));
    await assert.rejects(rotated(vault), /paused outside the vault/);
    await rotated(vault);
    assert.equal(await versionsOf(tenant, 'data'), 3);
  });

  test('stops the rotations of no other tenant, whatever numbers it has', async (t) => {
    const vault = await startVault(t, engine);
    const [one, other] = [await newTenant(vault), await newTenant(vault)];
    await begin(one, 'data');
    await begin(other, 'data');
    for (const column of ['revision', 'until', 'rows_done']) {
      await engine.run(vault.place, lie(`${column} = 9223372036854775807`, one));
    }
    await rotated(vault);
    assert.equal(await versionsOf(other, 'data'), 2);
    assert.equal(
      (await one.send('POST', '/tokens', { body: { type: 'token', data: 'a' } })).status,
      201,
    );
  });
});
