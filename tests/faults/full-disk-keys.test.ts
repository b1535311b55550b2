/** A disk that is full while keys are rotated or a backup is written: nothing is lost, and the vault says why. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { nextLook } from '../support/poll.ts';
import { environmentOf, runCommand, spawnVault } from '../support/process.ts';
import { freeOn, smallDisk } from '../support/small-disk.ts';
import { createApplication, managementKey, request } from '../support/vault.ts';

const pollsMax = 12_000;
const tokens = 300;
const rotations = '/tenants/self/keys/rotations';

test('a rotation on a full disk waits for room, and finishes by itself', async (t) => {
  const disk = smallDisk(t, 64);
  if (disk === undefined) return t.diagnostic('nobody may mount a small disk here: not tested');
  const place = { databaseUrl: undefined, dataDir: join(disk, 'data') };
  const environment = environmentOf(place);
  const vault = await spawnVault(t, environment);
  const key = await createApplication(vault.url);
  for (let n = 0; n < tokens; n++) {
    const body = { id: `token-${n}`, type: 'token', data: `${n} ${'a'.repeat(20_000)}` };
    assert.equal((await request(`${vault.url}/tokens`, 'POST', { key, body })).status, 201);
  }
  const fill = () => {
    const free = freeOn(disk);
    try {
      if (free > 0) writeFileSync(join(disk, 'other'), Buffer.alloc(free), { flag: 'a' });
    } catch (error) {
      // The vault has taken some of it meanwhile.
      assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
    }
  };
  const begun = await request(`${vault.url}${rotations}`, 'POST', {
    key: managementKey,
    body: { purpose: 'data' },
  });
  assert.equal(begun.status, 202);
  const state = async () => {
    const { body } = await request(`${vault.url}${rotations}`, 'GET', { key: managementKey });
    return body;
  };
  // From its first row on there is no room for what the rotation writes.
  for (let poll = 0; ; poll += 1) {
    const { status, body } = await request(`${vault.url}${rotations}`, 'GET', {
      key: managementKey,
    });
    if (status !== 200 || JSON.stringify(body).includes('"sealing"')) break;
    assert.ok(poll < pollsMax);
    await nextLook();
  }
  fill();
  let failures = 0;
  for (let round = 0; round < 40; round++) {
    fill();
    const { status } = await request(`${vault.url}/tokens/token-${round}`, 'GET', { key });
    assert.ok(status === 200 || status === 503 || status === 507, String(status));
    if (status !== 200) failures += 1;
    await nextLook();
  }
  rmSync(join(disk, 'other'), { force: true });
  for (let poll = 0; !JSON.stringify(await state()).includes('"finished"'); poll += 1) {
    assert.ok(poll < pollsMax, 'the rotation finishes once there is room');
    await nextLook();
  }
  for (let n = 0; n < tokens; n++) {
    const { status, body } = await request(`${vault.url}/tokens/token-${n}`, 'GET', { key });
    assert.equal(status, 200);
    assert.ok(body.data.startsWith(`${n} `));
  }
  const list = await runCommand(['keys', 'list', '--json'], environment);
  const listed = JSON.parse(list.stdout).keys.find(
    (one: Record<string, unknown>) => one['purpose'] === 'data' && one['version'] === 1,
  );
  assert.equal(listed.rows, 0);
  const verified = await runCommand(['logs', 'verify', '--state'], environment);
  assert.equal(verified.code, 0, verified.stdout);
  t.diagnostic(`${failures} reads were refused while nothing could be written`);
});

test('a backup onto a full disk says so, leaves nothing behind, and succeeds once there is room', async (t) => {
  const disk = smallDisk(t, 48);
  if (disk === undefined) return t.diagnostic('nobody may mount a small disk here: not tested');
  const place = { databaseUrl: undefined, dataDir: join(disk, 'data') };
  const environment = environmentOf(place);
  const vault = await spawnVault(t, environment);
  const key = await createApplication(vault.url);
  for (let n = 0; n < 150; n++) {
    const body = { id: `token-${n}`, type: 'token', data: 'a'.repeat(20_000) };
    assert.equal((await request(`${vault.url}/tokens`, 'POST', { key, body })).status, 201);
  }
  writeFileSync(join(disk, 'other'), Buffer.alloc(freeOn(disk) - 3 * 2 ** 20));
  const target = join(disk, 'backup');
  const refused = await runCommand(['backup', target], environment);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /The disk of \S+ is full\. No backup was made/);
  assert.deepEqual(existsSync(target) ? readdirSync(target) : [], []);
  const read = await request(`${vault.url}/tokens/token-1`, 'GET', { key });
  assert.equal(read.status, 200);
  rmSync(join(disk, 'other'));
  const made = await runCommand(['backup', target], environment);
  assert.equal(made.code, 0, made.stderr);
});
