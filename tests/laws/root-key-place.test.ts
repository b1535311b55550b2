/** The operator is warned once, at the start, of a root key that lies beside what it protects. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type EngineName, engineOf } from '../support/engines.ts';
import type { Environment } from '../support/process.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { startVault } from '../support/vault.ts';

const production = { STRONGROOM_BOOTSTRAP_TENANT_TYPE: 'production' };

async function warnings(t: TestContext, name: EngineName, environment: Environment = {}) {
  const vault = await startVault(t, engineOf(name), { environment });
  const count = () =>
    vault.logged.filter(({ message }) => /root key is in the data directory/.test(message)).length;
  return { vault, count };
}

test('a root key next to the database of a production tenant causes one warning', async (t) => {
  const { vault, count } = await warnings(t, 'sqlite', production);
  await vault.application();
  assert.equal(count(), 1);
});

test('a link to it changes nothing', async (t) => {
  const place = await engineOf('sqlite').place(t);
  const link = join(temporaryDirectory(t), 'root.key');
  mkdirSync(join(place.dataDir, 'keys'));
  symlinkSync(join(place.dataDir, 'keys', 'root.key'), link);
  const first = await startVault(t, engineOf('sqlite'), { place, environment: production });
  await first.stop();
  copyFileSync(join(place.dataDir, 'root.key'), join(place.dataDir, 'keys', 'root.key'));
  rmSync(join(place.dataDir, 'root.key'));
  const environment = { STRONGROOM_ROOT_KEY_FILE: link };
  const second = await startVault(t, engineOf('sqlite'), { place, environment });
  assert.equal(
    second.logged.filter(({ message }) => /root key is in the data directory/.test(message)).length,
    1,
  );
  assert.equal(readFileSync(link).length > 0, true);
});

test('nothing is said of a tenant for tests, of a key elsewhere, and on PostgreSQL', async (t) => {
  const elsewhere = { STRONGROOM_ROOT_KEY_FILE: join(temporaryDirectory(t), 'root.key') };
  const inVariable = { STRONGROOM_ROOT_KEY: randomBytes(32).toString('base64') };
  for (const { count } of [
    await warnings(t, 'sqlite'),
    await warnings(t, 'sqlite', { ...production, ...elsewhere }),
    await warnings(t, 'sqlite', { ...production, ...inVariable }),
    await warnings(t, 'postgres', production),
  ]) {
    assert.equal(count(), 0);
  }
});
