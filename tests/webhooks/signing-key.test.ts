/** The key that signs webhooks: one for the vault, made once, sealed by the root key. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { ForeignRootKeyError, openVaultKeys } from '../../src/access/keyrings/open-vault-keys.ts';
import { createSigningPairs } from '../../src/access/keyrings/signing-pairs.ts';
import { systemClock } from '../../src/base/clock.ts';
import { pooledRandom } from '../../src/base/random.ts';
import { openRootKeys } from '../../src/keys/root/sources.ts';
import type { Store } from '../../src/store/store.ts';
import { type Engine, onBothEngines } from '../support/engines.ts';
import { rowsOf } from '../support/rows.ts';
import { startVault } from '../support/vault.ts';

const newRootKey = () => randomBytes(32).toString('base64');

/** Those of a server with this root key. */
async function tools(store: Store, rootKey: string) {
  const parts = { store, clock: systemClock, random: pooledRandom() };
  const roots = await openRootKeys({
    ...parts,
    source: 'environment',
    read: () => rootKey,
    environment: {},
    file: '',
    createIfMissing: true,
  });
  const { vaultKeys } = await openVaultKeys({ ...parts, roots });
  return { ...parts, vaultKeys };
}

/** The public key of the pair that all tenants share. */
function sharedKey(server: Parameters<typeof createSigningPairs>[0]): Promise<string | undefined> {
  return createSigningPairs(server).publicKey(1);
}

async function twoServers(engine: Engine, t: Parameters<Engine['place']>[0]) {
  const place = await engine.place(t);
  const stores = [await engine.open(place), await engine.open(place)] as const;
  t.after(async () => {
    for (const store of stores) await store.close();
  });
  return { place, stores };
}

onBothEngines('the key that signs webhooks', (engine) => {
  test('two servers that make it at the same time have the same one, and so has every later start', async (t) => {
    const { place, stores } = await twoServers(engine, t);
    const root = newRootKey();
    const servers = await Promise.all(stores.map((store) => tools(store, root)));
    const keys = await Promise.all(
      servers.flatMap((server) => [sharedKey(server), sharedKey(server)]),
    );
    const later = await sharedKey(await tools(stores[0], root));
    assert.equal(new Set([...keys, later]).size, 1);
    const names = (await rowsOf(engine, place, 'vault_keys')).map(({ name }) => name);
    assert.deepEqual(names.sort(), ['root.1', 'webhooks.v1']);
  });

  test('it is sealed, and opens neither with another root key nor altered', async (t) => {
    const { place, stores } = await twoServers(engine, t);
    const root = newRootKey();
    await sharedKey(await tools(stores[0], root));
    const row = (await rowsOf(engine, place, 'vault_keys')).find(
      ({ name }) => name === 'webhooks.v1',
    );
    assert.doesNotMatch(Buffer.from(row?.private_key ?? '').toString('latin1'), /PRIVATE KEY/);
    const integrity = { code: 'integrity' };
    await assert.rejects(tools(stores[1], newRootKey()), ForeignRootKeyError);
    const cut =
      engine.name === 'sqlite' ? 'substr(private_key, 2)' : 'substring(private_key from 2)';
    await engine.run(
      place,
      `update vault_keys set private_key = ${cut} where name = 'webhooks.v1'`,
    );
    await assert.rejects(sharedKey(await tools(stores[0], root)), integrity);
  });

  test('200: anybody reads its public half as text; the next start shows the same', async (t) => {
    const vault = await startVault(t, engine);
    const shown = await vault.send('GET', '/keys/webhooks.v1.key');
    assert.equal(shown.status, 200);
    assert.match(shown.headers.get('content-type') ?? '', /^text\/plain/);
    assert.match(
      shown.text,
      /^-----BEGIN PUBLIC KEY-----\n[A-Za-z0-9+/=\n]+-----END PUBLIC KEY-----\n$/,
    );
    await vault.stop();
    const next = await startVault(t, engine, { place: vault.place });
    assert.equal((await next.send('GET', '/keys/webhooks.v1.key')).text, shown.text);
  });
});
