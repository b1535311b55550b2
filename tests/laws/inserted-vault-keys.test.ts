/** Rows that an attacker inserts beside the vault's own key cost the vault nothing. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readStored, withHeader } from '../../src/keys/root/wrapped.ts';
import { type Engine, onBothEngines, type Place } from '../support/engines.ts';
import {
  type Environment,
  environmentOf,
  runCommand,
  runWithInput,
  spawnVault,
  untilOutput,
} from '../support/process.ts';
import { rowsOf } from '../support/rows.ts';
import { createApplication, managementKey, request } from '../support/vault.ts';

const succeed = async (words: readonly string[], environment: Environment) => {
  const { code, stdout, stderr } = await runCommand([...words, '--json'], environment);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
};

const namesOf = async (engine: Engine, place: Place) =>
  (await rowsOf(engine, place, 'vault_keys')).map(({ name }) => name).sort();

/** Rows like the vault's own, as far as an attacker without the root key can write them. */
async function insertStrangers(engine: Engine, place: Place, keyId: string): Promise<void> {
  const [own] = (await rowsOf(engine, place, 'vault_keys')).filter(({ name }) =>
    /^root\.\d+$/.test(name),
  );
  assert.ok(own);
  const stored = readStored(own.private_key);
  assert.ok(stored?.header);
  const { header, sealed } = stored;
  const naming = (more: Partial<typeof header>) => withHeader({ ...header, ...more }, sealed);
  const rows: Readonly<Record<string, Uint8Array>> = {
    'root.2': naming({ keyId: 'deadbeef' }),
    'root.3': own.private_key,
    'root.7': naming({ source: 'file', keyId: 'deadbeef', generation: 7 }),
    'root.8.previous': Buffer.from('of an attacker'),
    'root.9': Buffer.from('of an attacker'),
    'root.900000000': naming({ source: 'shamir', keyId, generation: 900_000_000 }),
  };
  const taken = await namesOf(engine, place);
  for (const [name, bytes] of Object.entries(rows)) {
    if (taken.includes(name)) continue;
    const hex = Buffer.from(bytes).toString('hex');
    const value = engine.name === 'sqlite' ? `x'${hex}'` : `decode('${hex}', 'hex')`;
    await engine.run(
      place,
      `insert into vault_keys (name, private_key, created_at) values ('${name}', ${value}, 1)`,
    );
  }
}

onBothEngines('rows that an attacker inserts beside the key of the vault', (engine) => {
  test('keep no server from starting, sealing and rotating, and go with the next rotation', async (t) => {
    const place = await engine.place(t);
    const environment = environmentOf(place);
    const server = await spawnVault(t, environment);
    await insertStrangers(engine, place, 'deadbeef/9');
    const keys = ['tenant', 'create', '--name'];
    const early = await succeed([...keys, 'early'], environment);
    await succeed(['tenant', 'delete', '--tenant', early.id, '--yes'], environment);
    await server.kill();

    const again = await spawnVault(t, environment);
    await untilOutput(again, /"level":50[^\n]*row that proves the root key/);
    const made = await succeed([...keys, 'late'], environment);
    const key = { key: made.key };
    assert.equal((await request(`${again.url}/tenants/self`, 'GET', key)).status, 200);
    const report = await runCommand(['doctor'], environment);
    assert.match(report.stdout, /rows of the vault's own key, of which the vault wrote one/);
    const listed = await succeed(['keys', 'list'], environment);
    const roots = listed.keys.filter(({ purpose }: { purpose: string }) => purpose === 'root');
    assert.deepEqual(
      roots.map(({ version, state }: Record<string, unknown>) => [version, state]),
      [[1, 'active']],
    );

    await succeed(['keys', 'rotate', 'root'], environment);
    assert.deepEqual(await namesOf(engine, place), ['root.2']);
    assert.equal((await request(`${again.url}/tenants/self`, 'GET', key)).status, 200);
    const self = await request(`${again.url}/tenants/self`, 'GET', { key: managementKey });
    assert.equal(self.status, 200);
  });

  test('keep no shares from unsealing the vault', async (t) => {
    const place = await engine.place(t);
    const server = await spawnVault(t, environmentOf(place));
    const key = await createApplication(server.url);
    const body = { type: 'token', data: 'kept', id: 'kept' };
    assert.equal((await request(`${server.url}/tokens`, 'POST', { key, body })).status, 201);
    const count = ['--to', 'shamir', '--shares', '2', '--threshold', '2'];
    const { shares } = await succeed(['keys', 'rotate', 'root', ...count], environmentOf(place));
    await server.kill();
    await insertStrangers(engine, place, 'deadbeef/9');
    const shamir = environmentOf(place, { STRONGROOM_ROOT_KEY_SOURCE: 'shamir' });
    const sealed = await spawnVault(t, shamir);
    for (const share of shares) {
      const { code, stderr } = await runWithInput(['unseal'], shamir, `${share}\n`);
      assert.equal(code, 0, stderr);
    }
    const read = await request(`${sealed.url}/tokens/kept`, 'GET', { key });
    assert.equal(read.body.data, 'kept');
    await succeed(['tenant', 'create', '--name', 'late'], shamir);
  });
});
