/** kill -9 in the middle of a rotation of the root key, under load: no read fails, and the servers finish it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTenantWithKey } from '../../src/access/tenants/bootstrap.ts';
import { readStored } from '../../src/keys/root/wrapped.ts';
import { readConfig } from '../../src/runtime/config/config.ts';
import { openVault } from '../../src/runtime/open-vault.ts';
import { onBothEngines } from '../support/engines.ts';
import { verifyPlace } from '../support/logs.ts';
import { nextLook, untilSo } from '../support/poll.ts';
import { beginCommand, environmentOf, spawnVault } from '../support/process.ts';
import { seeded } from '../support/random.ts';
import { keysInFile, openedWith } from '../support/root-keys.ts';
import { rowsOf, storedRows } from '../support/rows.ts';
import { createApplication, request } from '../support/vault.ts';

const tenantsMade = 300;
const readers = 4;

onBothEngines('a rotation of the root key that is killed', (engine) => {
  test('no read fails, and the server finishes it by itself', async (t) => {
    const below = seeded(t);
    const place = await engine.place(t);
    const server = await spawnVault(t, environmentOf(place));
    const key = await createApplication(server.url);
    const body = { type: 'token', data: 'kept', id: 'kept' };
    await request(`${server.url}/tokens`, 'POST', { key, body });
    const own = await openVault(readConfig(environmentOf(place)));
    for (let made = 0; made < tenantsMade; made += 1) {
      const settings = { tenant: `tenant ${made}`, type: 'test', key: undefined } as const;
      await createTenantWithKey(own, settings);
    }
    await own.close();
    const [old] = keysInFile(place);
    assert.ok(old);
    let reads = 0;
    let isOver = false;
    const reading = Promise.all(
      Array.from({ length: readers }, async () => {
        while (!isOver) {
          const { status, body: token } = await request(`${server.url}/tokens/kept`, 'GET', {
            key,
          });
          assert.equal(status, 200);
          assert.equal(token.data, 'kept');
          reads += 1;
        }
      }),
    );
    const rotated = async () =>
      (await storedRows(engine, place, 'tenants')).filter(
        ({ keyring }) => readStored(keyring)?.header?.generation === 2,
      ).length;

    const until = below(tenantsMade / 2);
    const command = beginCommand(t, ['keys', 'rotate', 'root'], environmentOf(place));
    while ((await rotated()) <= until) await nextLook();
    await command.kill();
    assert.equal((await command.finished).code, null, 'killed by the signal');

    const names = async () => (await rowsOf(engine, place, 'vault_keys')).map(({ name }) => name);
    await untilSo(
      async () => (await names()).join() === 'root.2',
      () => 'the server does not finish it',
    );
    isOver = true;
    await reading;
    assert.ok(reads > 0);
    assert.equal(keysInFile(place).length, 1);
    assert.deepEqual(await openedWith(engine, place, old), []);
    assert.equal(await rotated(), tenantsMade + 1);
    assert.deepEqual((await verifyPlace(place)).findings, []);
    t.diagnostic(`${reads} reads, killed after ${until} tenants`);
  });
});
