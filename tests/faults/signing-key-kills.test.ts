/** Vaults and databases are killed while the keys that sign are rotated: there is one new key, and a way to it. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { engineOf, onBothEngines, type Place } from '../support/engines.ts';
import { nextLook } from '../support/poll.ts';
import { startPostgres } from '../support/postgres.ts';
import { environmentOf, runCommand, spawnVault, untilReady } from '../support/process.ts';
import { seeded } from '../support/random.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { createApplication, managementKey, type Received, request } from '../support/vault.ts';

const purposes = ['webhooks', 'log'] as const;
const kills = 3;
/** Requests between kills: a rotation, whose steps wait for seconds, sees some hundreds of them. */
const killWithin = 120;

interface Killed {
  readonly place: Place;
  /** Kills the database and starts it again; absent for the embedded one, which dies with the vault. */
  readonly restartDatabase: (() => Promise<void>) | undefined;
}

/** `undefined` where the vault is away. @throws for every response but those of a vault that is just starting. */
async function attempt(send: () => Promise<Received>): Promise<Received | undefined> {
  let received: Received;
  try {
    received = await send();
  } catch {
    return undefined;
  }
  if (received.status === 503 || received.status === 409) return undefined;
  assert.ok(received.status < 300, `${received.status} ${received.text}`);
  return received;
}

onBothEngines('rotations of the keys that sign, which are killed', (engine) => {
  test('go on by themselves, make one new key each, and the log stays proven from the first key', async (t) => {
    const below = seeded(t);
    const { place, restartDatabase } = await placeToKill();
    const environment = environmentOf(place);
    const vaults = [await spawnVault(t, environment)];
    if (restartDatabase) vaults.push(await spawnVault(t, environment));
    const url = () => vaults[below(vaults.length)]?.url ?? '';
    const manage = async (method: string, path: string, body?: object): Promise<Received> => {
      for (;;) {
        const sent = { key: managementKey, ...(body && { body }) };
        const received = await attempt(() => request(url() + path, method, sent));
        if (received) return received;
        await nextLook();
      }
    };
    const key = await createApplication(url());
    const traffic = async (count: number): Promise<void> => {
      for (let sent = 0; sent < count; ) {
        const body = { type: 'token', data: `value ${sent}` };
        const made = await attempt(() => request(`${url()}/tokens`, 'POST', { key, body }));
        if (made) sent += 1;
        else await nextLook();
      }
    };
    await traffic(5);
    const kept = join(temporaryDirectory(t), 'kept.json');
    const first = await manage('GET', '/logs/checkpoint');
    writeFileSync(kept, first.text);
    const shared = (await manage('GET', '/keys/webhooks.v1.key')).text;
    for (const purpose of purposes) {
      await manage('POST', '/tenants/self/keys/rotations', { purpose });
    }
    for (let kill = 0; kill < kills; kill += 1) {
      await traffic(1 + below(killWithin));
      if (restartDatabase && kill % 2 === 1) {
        await restartDatabase();
        for (const vault of vaults) await untilReady(vault.url);
      } else {
        const victim = below(vaults.length);
        await vaults[victim]?.kill();
        vaults[victim] = await spawnVault(t, environment);
      }
    }
    for (;;) {
      const { body } = await manage('GET', '/tenants/self/keys/rotations');
      if (body.every(({ state }: { state: string }) => state === 'finished')) break;
      await traffic(5);
    }
    await traffic(5);
    const { body } = await manage('GET', '/tenants/self/keys');
    for (const purpose of purposes) {
      const versions = body.keys
        .filter((one: { purpose: string }) => one.purpose === purpose)
        .map(({ version, state, rows }: Record<string, unknown>) => [version, state, rows]);
      assert.deepEqual(
        versions,
        [
          [1, 'decrypt_only', 0],
          [2, 'active', 0],
        ],
        purpose,
      );
    }
    assert.equal((await manage('GET', '/keys/webhooks.v1.key')).text, shared);
    assert.notEqual((await manage('GET', '/keys/webhooks.v2.key')).text, shared);
    // Servers follow within a second.
    for (const vault of vaults) {
      for (;;) {
        const last = await attempt(() =>
          request(`${vault.url}/logs/checkpoint`, 'GET', { key: managementKey }),
        );
        if (last?.body.public_keys.indexOf(last.body.public_key) === 1) break;
        await nextLook();
        await traffic(1);
      }
    }
    const words = ['--public-key', first.body.public_key, '--checkpoint', kept, '--json'];
    const verified = await runCommand(['logs', 'verify', ...words], environment);
    assert.equal(verified.code, 0, verified.stdout + verified.stderr);
    for (const purpose of purposes) {
      const destroyed = await runCommand(['keys', 'destroy', purpose, '1', '--yes'], environment);
      assert.equal(destroyed.code, 0, destroyed.stderr);
    }
    const state = await runCommand(['logs', 'verify', '--state', ...words], environment);
    assert.equal(state.code, 0, state.stdout + state.stderr);

    async function placeToKill(): Promise<Killed> {
      if (engine.name === 'sqlite') {
        return { place: await engineOf('sqlite').place(t), restartDatabase: undefined };
      }
      const cluster = await startPostgres();
      t.after(() => cluster.stop());
      return {
        place: { databaseUrl: await cluster.createDatabase(), dataDir: temporaryDirectory(t) },
        restartDatabase: async () => {
          await cluster.kill();
          await cluster.restart();
        },
      };
    }
  });
});
