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

async function versionsOf({ vault, managementKey: key }: TestTenant, purpose: string) {
  const { body } = await vault.send('GET', '/tenants/self/keys', { key });
  return body.keys.filter((one: { purpose: string }) => one.purpose === purpose).length;
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
