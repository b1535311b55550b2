/** `strongroom keys`: keys of tenants are listed, rotated and destroyed, also where no server runs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { engineOf } from '../support/engines.ts';
import { environmentOf, runCommand, spawnVault } from '../support/process.ts';
import { createApplication, request } from '../support/vault.ts';

test('without a server the command rotates by itself, and refuses to destroy what is needed', async (t) => {
  const place = await engineOf('sqlite').place(t);
  const environment = environmentOf(place);
  const vault = await spawnVault(t, environment);
  const key = await createApplication(vault.url);
  const body = { id: 'kept', type: 'token', data: 'kept' };
  await request(`${vault.url}/tokens`, 'POST', { key, body });
  await vault.kill();
  const run = (...words: string[]) => runCommand(['keys', ...words], environment);

  const rotated = await run('rotate', 'data', '--json');

  assert.equal(rotated.code, 0, rotated.stderr);
  const [{ state, rows_done }] = JSON.parse(rotated.stdout).rotations;
  assert.deepEqual({ state, rows_done }, { state: 'finished', rows_done: 1 });
  const listed = await run('list', '--json');
  const { keys } = JSON.parse(listed.stdout);
  assert.deepEqual(Object.keys(keys[0]).sort(), [
    'created_at',
    'purpose',
    'rows',
    'state',
    'tenant_id',
    'version',
  ]);
  const ofData = keys.filter(({ purpose }: { purpose: string }) => purpose === 'data');
  assert.deepEqual(
    ofData.map((one: Record<string, unknown>) => [one['version'], one['state'], one['rows']]),
    [
      [1, 'decrypt_only', 0],
      [2, 'active', 1],
    ],
  );
  for (const [code, ...words] of [
    [2, 'data', '1'],
    [2, 'other', '1', '--yes'],
    [2, 'data', 'one', '--yes'],
    [1, 'data', '2', '--yes'],
    [1, 'data', '3', '--yes'],
    [0, 'data', '1', '--yes'],
    [1, 'data', '1', '--yes'],
  ] as const) {
    const { code: given, stderr } = await run('destroy', ...words);
    assert.equal(given, code, `${words.join(' ')}: ${stderr}`);
  }
  const again = await spawnVault(t, environment);
  const read = await request(`${again.url}/tokens/kept`, 'GET', { key });
  assert.equal(read.body.data, 'kept');
});
