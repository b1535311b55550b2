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

for (const purpose of ['webhooks', 'log']) {
  test(`of two commands that rotate ${purpose} at once one is refused with exit code 1`, async (t) => {
    const place = await engineOf('sqlite').place(t);
    const environment = environmentOf(place);
    const vault = await spawnVault(t, environment);
    const run = (...words: string[]) => runCommand(['keys', ...words], environment);

    const both = await Promise.all([run('rotate', purpose), run('rotate', purpose, '--json')]);

    const codes = both.map(({ code }) => code).sort();
    assert.deepEqual(codes, [0, 1], both.map(({ stderr }) => stderr).join('\n'));
    const refused = both.find(({ code }) => code === 1);
    assert.match(refused?.stderr ?? '', /is under way|signs until/);
    const { keys } = JSON.parse((await run('list', '--json')).stdout);
    const versions = keys
      .filter((one: { purpose: string }) => one.purpose === purpose)
      .map(({ version, state }: Record<string, unknown>) => [version, state]);
    assert.deepEqual(versions, [
      [1, 'decrypt_only'],
      [2, 'active'],
    ]);
    for (const [code, ...words] of [
      [1, purpose, '2', '--yes'],
      [1, purpose, '9', '--yes'],
      [0, purpose, '1', '--yes'],
      [1, purpose, '1', '--yes'],
      [1, 'row', '1', '--yes'],
      [1, 'cursor', '1', '--yes'],
    ] as const) {
      const { code: given, stderr } = await run('destroy', ...words);
      assert.equal(given, code, `${words.join(' ')}: ${stderr}`);
    }
    assert.equal((await request(`${vault.url}/keys/webhooks.v1.key`, 'GET')).status, 200);
  });
}

test('every purpose of the keyring is listed, and the root key', async (t) => {
  const place = await engineOf('sqlite').place(t);
  const environment = environmentOf(place);
  await spawnVault(t, environment);
  const { keys } = JSON.parse((await runCommand(['keys', 'list', '--json'], environment)).stdout);
  const purposes = keys.map(({ purpose }: { purpose: string }) => purpose);
  assert.deepEqual(purposes, [
    ...['root', 'data', 'reply', 'search', 'fingerprint', 'row', 'cursor', 'log', 'webhooks'],
  ]);
});
