/** After a rotation of the root key nothing in the database opens with the old one, and no request has failed. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { rotateRoot } from '../../src/access/keyrings/rotate-root.ts';
import { takeRotation } from '../../src/access/keyrings/rotation-lock.ts';
import { createSigningPairs } from '../../src/access/keyrings/signing-pairs.ts';
import { createTenantWithKey } from '../../src/access/tenants/bootstrap.ts';
import { deleteTenant } from '../../src/access/tenants/delete.ts';
import { instantAfter, minute, systemClock } from '../../src/base/clock.ts';
import type { TenantId } from '../../src/base/ids.ts';
import { perform } from '../../src/rules/operation.ts';
import { readConfig } from '../../src/runtime/config/config.ts';
import { followRootKey } from '../../src/runtime/jobs/follow-root-key.ts';
import { openVault, type Vault } from '../../src/runtime/open-vault.ts';
import { tenantsAfter } from '../../src/store/queries/tenants.ts';
import type { Store } from '../../src/store/store.ts';
import { type Engine, onBothEngines, type Place } from '../support/engines.ts';
import { verifyPlace } from '../support/logs.ts';
import { type Environment, environmentOf, runCommand, spawnVault } from '../support/process.ts';
import {
  formerNameOf,
  keyFileOf,
  keysInFile,
  openedWith,
  toFormerForm,
} from '../support/root-keys.ts';
import { rowsOf } from '../support/rows.ts';
import { freePort } from '../support/temporary.ts';
import { createApplication, request } from '../support/vault.ts';

const rotate = (place: Place, words: readonly string[] = [], more: Environment = {}) =>
  runCommand(['keys', 'rotate', 'root', '--json', ...words], environmentOf(place, more));

/** Opens the vault of a place, as a process that starts then. */
async function opened(place: Place, startedMs = 0, more: Environment = {}): Promise<Vault> {
  const clock = { now: () => instantAfter(systemClock.now(), startedMs) };
  return openVault(readConfig(environmentOf(place, more)), { clock });
}

interface Filled {
  readonly living: readonly TenantId[];
  readonly publicKey: string;
}

/** Three tenants, a deleted one, and the key that signs webhooks. */
async function fill(place: Place): Promise<Filled> {
  const vault = await opened(place);
  const living: TenantId[] = [];
  for (const name of ['one', 'two', 'three', 'gone']) {
    const { tenant } = await createTenantWithKey(vault, {
      tenant: name,
      type: 'test',
      key: undefined,
    });
    const actor = { tenant, application: null };
    if (name !== 'gone') living.push(tenant.id);
    else await perform({ store: vault.store, actor }, deleteTenant(vault, actor));
  }
  const publicKey = await createSigningPairs(vault).publicKey(1);
  assert.ok(publicKey);
  await vault.close();
  return { living, publicKey };
}

async function assertWhole(vault: Vault, { living, publicKey }: Filled): Promise<void> {
  for (const id of living) assert.ok(await vault.tenants.find(id), 'a tenant opens');
  assert.equal(await createSigningPairs(vault).publicKey(1), publicKey);
  const rows = await vault.store.select(tenantsAfter(undefined, 9));
  const gone = await Promise.all(rows.map(vault.tenants.isTombstone));
  assert.equal(gone.filter((isGone) => isGone).length, 1);
}

async function namesOf(engine: Engine, place: Place): Promise<string[]> {
  return (await rowsOf(engine, place, 'vault_keys')).map(({ name }) => name).sort();
}

onBothEngines('a rotation of the root key', (engine) => {
  test('replaces the file while a server runs, which goes on with the new key', async (t) => {
    const place = await engine.place(t);
    const vault = await spawnVault(t, environmentOf(place));
    const key = await createApplication(vault.url);
    const body = { type: 'token', data: 'kept', id: 'kept' };
    await request(`${vault.url}/tokens`, 'POST', { key, body });
    await request(`${vault.url}/keys/webhooks.v1.key`, 'GET');
    const [old] = keysInFile(place);
    assert.ok(old);
    assert.ok(
      (await openedWith(engine, place, old)).includes('tenants.keyring'),
      'the trial works',
    );

    const { code, stdout, stderr } = await rotate(place);

    assert.equal(code, 0, stderr);
    const { source, generation, tenants, unreadable } = JSON.parse(stdout);
    assert.deepEqual(
      { source, generation, tenants, unreadable },
      { source: 'file', generation: 2, tenants: 1, unreadable: 0 },
    );
    const [fresh, ...others] = keysInFile(place);
    assert.ok(fresh && !fresh.equals(old) && others.length === 0);
    assert.equal(statSync(keyFileOf(place)).mode & 0o7777, 0o600);
    assert.deepEqual(await openedWith(engine, place, old), []);
    assert.deepEqual(await namesOf(engine, place), ['root.2', 'webhooks.v1']);
    const read = await request(`${vault.url}/tokens/kept`, 'GET', { key });
    assert.equal(read.body.data, 'kept');
    const made = await runCommand(['tenant', 'create', '--name', 'new'], environmentOf(place));
    assert.equal(made.code, 0, made.stderr);
    assert.deepEqual((await verifyPlace(place)).findings, []);
    await vault.kill();
    const again = await spawnVault(t, environmentOf(place));
    assert.equal((await request(`${again.url}/tokens/kept`, 'GET', { key })).body.data, 'kept');
    const state = ['logs', 'verify', '--state', '--json'];
    const verified = await runCommand(state, environmentOf(place));
    assert.equal(verified.code, 0, verified.stdout);
  });

  test('may be killed at every step: the vault starts and serves, and the next call finishes it', async (t) => {
    const place = await engine.place(t);
    const filled = await fill(place);
    for (const died of ['before', 'after'] as const) {
      const [old] = keysInFile(place);
      assert.ok(old);
      for (let attempt = 1; ; attempt += 1) {
        // Each attempt runs a minute after the one before, whose lease has ended by then.
        const vault = await opened(place, attempt * minute);
        await assertWhole(vault, filled);
        const store = dying(vault.store, { writes: attempt, died });
        const outcome = await rotateRoot({ ...vault, store }).catch((error: Error) => error);
        await vault.close();
        if (!(outcome instanceof Error)) break;
        assert.equal(outcome.message, 'killed', String(outcome.stack));
        assert.ok(attempt < 60, 'each attempt gets further');
      }
      const vault = await opened(place, 90 * minute);
      await assertWhole(vault, filled);
      await vault.close();
      assert.equal(keysInFile(place).length, 1);
      assert.deepEqual(await openedWith(engine, place, old), []);
    }
    // A process that died after its last write had finished, and the call after it was another rotation.
    const names = (await namesOf(engine, place)).join(' ');
    assert.match(names, /^root\.[34] webhooks\.v1$/);
  });

  test('is refused with exit code 1 while another process is at work on one', async (t) => {
    const place = await engine.place(t);
    await fill(place);
    const vault = await opened(place);
    t.after(() => vault.close());
    const lock = await takeRotation(vault, { to: 'file', generation: 2 });
    const { code, stderr } = await rotate(place);
    assert.equal(code, 1);
    assert.match(stderr, /another process is rotating the root key/);
    await lock.release('unfinished');
    assert.equal((await rotate(place, ['--to', 'environment'])).code, 1);
    assert.equal((await rotate(place)).code, 0);
    assert.deepEqual(await namesOf(engine, place), ['root.2', 'webhooks.v1']);
  });

  test('moves to another source, whose variables servers have next to those of the old one', async (t) => {
    const place = await engine.place(t);
    const filled = await fill(place);
    const [old] = keysInFile(place);
    const both = {
      STRONGROOM_ROOT_KEY_SOURCE: 'file',
      STRONGROOM_ROOT_KEY: randomBytes(32).toString('base64'),
    };
    const running = await opened(place, 0, both);
    t.after(() => running.close());
    await assertWhole(running, filled);
    const missing = await rotate(place, ['--to', 'environment']);
    assert.equal(missing.code, 1);
    assert.match(missing.stderr, /the source environment is not configured/);

    const moved = await rotate(place, ['--to', 'environment'], both);

    assert.equal(moved.code, 0, moved.stderr);
    const later = await opened(place, 0, {
      STRONGROOM_ROOT_KEY: both.STRONGROOM_ROOT_KEY,
      STRONGROOM_ROOT_KEY_FILE: '/nowhere',
    });
    await assertWhole(later, filled);
    await later.close();
    assert.ok(old);
    assert.deepEqual(await openedWith(engine, place, old), []);
    const onlyOld = await runCommand(['serve'], environmentOf(place));
    assert.equal(onlyOld.code, 1, 'the old root key opens nothing');
    const again = await rotate(place, [], { STRONGROOM_ROOT_KEY: both.STRONGROOM_ROOT_KEY });
    assert.equal(again.code, 1);
    assert.match(again.stderr, /still has the present root key/);
  });

  test('that cannot begin, or whose new source is never reached, is in the way of no other one', async (t) => {
    const place = await engine.place(t);
    const filled = await fill(place);
    const [old] = keysInFile(place);
    const kept = {
      STRONGROOM_ROOT_KEY_SOURCE: 'environment',
      STRONGROOM_ROOT_KEY: String(old?.export().toString('base64')),
    };
    const before = await namesOf(engine, place);
    const same = await rotate(place, [], kept);
    assert.equal(same.code, 1);
    assert.match(same.stderr, /still has the present root key.*--to file/);
    assert.deepEqual(await namesOf(engine, place), before, 'nothing has begun');
    const unreachable = {
      ...kept,
      STRONGROOM_VAULT_ADDRESS: `http://127.0.0.1:${await freePort()}`,
      STRONGROOM_VAULT_TOKEN: 'unused',
    };
    const failed = await rotate(place, ['--to', 'vault-transit'], unreachable);
    assert.equal(failed.code, 1);
    assert.match(failed.stderr, /cannot be reached/);
    const file = `${keyFileOf(place)}.new`;
    writeFileSync(file, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
    const moved = await rotate(place, ['--to', 'file'], {
      ...kept,
      STRONGROOM_ROOT_KEY_FILE: file,
    });
    assert.equal(moved.code, 0, moved.stderr);
    const later = await opened(place, 0, { STRONGROOM_ROOT_KEY_FILE: file });
    await assertWhole(later, filled);
    await later.close();
  });

  test('does not finish while the row of a tenant is altered, and does not repair the row', async (t) => {
    const place = await engine.place(t);
    const { living } = await fill(place);
    const where = `where tenant_id = '${living[0]}'`;
    await engine.run(place, `update tenants set type = 'production' ${where}`);
    const refused = await rotate(place);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, new RegExp(`altered outside the vault.*${living[0]}`));
    assert.equal(keysInFile(place).length, 2, 'the key before stays until the end');
    await engine.run(place, `update tenants set type = 'test' ${where}`);
    const finished = await rotate(place);
    assert.equal(finished.code, 0, finished.stderr);
    assert.equal(keysInFile(place).length, 1);
  });

  test('of a database of an earlier release: it opens, keeps its name, and leaves the old form', async (t) => {
    const place = await engine.place(t);
    const filled = await fill(place);
    const before = await opened(place);
    await toFormerForm(engine, place, before).finally(before.close);
    const [old] = keysInFile(place);
    assert.ok(old);
    assert.ok((await namesOf(engine, place)).includes('root_key.check'));
    for (let start = 0; start < 2; start += 1) {
      const vault = await opened(place);
      await assertWhole(vault, filled);
      assert.equal(vault.vaultKeys.name, formerNameOf(old));
      await vault.close();
    }
    const { code, stderr } = await rotate(place);
    assert.equal(code, 0, stderr);
    const vault = await opened(place);
    await assertWhole(vault, filled);
    assert.equal(vault.vaultKeys.name, formerNameOf(old));
    await vault.close();
    assert.deepEqual(await openedWith(engine, place, old), []);
    assert.deepEqual(await namesOf(engine, place), ['root.2', 'webhooks.v1']);
  });

  test('conflicts with a new tenant and a deletion that were sealed before it and are stored after it', async (t) => {
    const place = await engine.place(t);
    const { living } = await fill(place);
    const slow = await opened(place);
    t.after(() => slow.close());
    const { row, guard } = await slow.tenants.draft({ name: 'late', type: 'test' });
    const tenant = await slow.tenants.find(living[0] as TenantId);
    assert.ok(tenant);
    const actor = { tenant, application: null };
    const effect = await deleteTenant(slow, actor)(undefined);
    assert.ok('change' in effect && effect.change);
    assert.equal((await rotate(place)).code, 0);
    const late = {
      remove: { vault_keys: guard.remove },
      insert: { tenants: [row], vault_keys: guard.insert },
      entries: effect.change.entries,
    };
    assert.match((await slow.store.commit(late)).conflict ?? '', /^vault_keys\./);
    assert.ok((await slow.store.commit(effect.change)).conflict);
    await perform({ store: slow.store, actor }, deleteTenant(slow, actor));
    assert.deepEqual(await namesOf(engine, place), ['root.2', 'webhooks.v1']);
  });

  test('is finished by a running server after the command was killed', async (t) => {
    const place = await engine.place(t);
    const filled = await fill(place);
    const [old] = keysInFile(place);
    assert.ok(old);
    const dead = await opened(place);
    const store = dying(dead.store, { writes: 3, died: 'after' });
    await assert.rejects(rotateRoot({ ...dead, store }), { message: 'killed' });
    await dead.close();
    assert.equal(keysInFile(place).length, 2);
    const { stdout } = await runCommand(['doctor', '--json'], environmentOf(place));
    assert.match(stdout, /a rotation is under way, begun 20/);
    const server = await opened(place, minute);
    t.after(() => server.close());
    const job = followRootKey(server);
    assert.ok((await job.run(new AbortController().signal)) > 0);
    await assertWhole(server, filled);
    assert.equal(keysInFile(place).length, 1);
    assert.deepEqual(await openedWith(engine, place, old), []);
    assert.equal(await job.run(new AbortController().signal), 0);
  });

  test('goes nowhere that an attacker with the database names', async (t) => {
    const place = await engine.place(t);
    const source = { STRONGROOM_ROOT_KEY: randomBytes(32).toString('base64') };
    const server = await opened(place, 0, source);
    t.after(() => server.close());
    const job = followRootKey(server);
    const names = await namesOf(engine, place);
    const { current } = await server.vaultKeys.refresh();
    const { bytes } = await server.vaultKeys.seal({
      binding: { tenant: '', id: 'webhooks.v1', field: 'private_key' },
      text: JSON.stringify(['file', 2]),
    });
    const form = { to: 'file', generation: 2, holder: '', until: 0 };
    const planted = [
      form,
      { ...form, generation: 1 },
      { ...form, generation: 3 },
      { ...form, proof: Buffer.from(bytes).toString('base64') },
      { ...form, proof: 'none' },
      { ...form, to: 'environment' },
      null,
    ];
    for (const note of planted) {
      await server.store.record({
        insert: {
          vault_keys: [
            {
              name: 'rotation.root',
              private_key: Buffer.from(JSON.stringify(note)),
              created_at: systemClock.now(),
            },
          ],
        },
      });
      assert.equal(await job.run(new AbortController().signal), 0);
      assert.ok(!existsSync(keyFileOf(place)), 'no key was put into a file');
      const now = (await server.vaultKeys.refresh()).current;
      assert.deepEqual(now?.stored.row, current?.stored.row);
      await server.store.record({ remove: { vault_keys: [{ name: 'rotation.root' }] } });
    }
    assert.deepEqual(await namesOf(engine, place), names);
  });

  test('begins where an attacker has written that one is under way', async (t) => {
    const place = await engine.place(t);
    await fill(place);
    const [old] = keysInFile(place);
    for (const note of [
      JSON.stringify({ to: 'environment', generation: 9, holder: '', until: 8e15 }),
      'no JSON',
    ]) {
      const hex = Buffer.from(note).toString('hex');
      const bytes = engine.name === 'sqlite' ? `x'${hex}'` : `'\\x${hex}'`;
      await engine.run(
        place,
        `insert into vault_keys (name, private_key, created_at) values ('rotation.root', ${bytes}, 1)`,
      );
      const { code, stderr } = await rotate(place);
      assert.equal(code, 0, stderr);
    }
    assert.ok(old);
    assert.deepEqual(await openedWith(engine, place, old), []);
    assert.deepEqual(await namesOf(engine, place), ['root.3', 'webhooks.v1']);
  });

  test('keeps the present key of the file where the next one stands before it', async (t) => {
    const place = await engine.place(t);
    await fill(place);
    const [present] = keysInFile(place);
    const next = randomBytes(32).toString('base64');
    const both = `${next}\n${present?.export().toString('base64')}\n`;
    writeFileSync(keyFileOf(place), both);
    const server = await opened(place, minute);
    t.after(() => server.close());
    const planted = { to: 'file', generation: 1, holder: '', until: 0 };
    await server.store.record({
      insert: {
        vault_keys: [
          {
            name: 'rotation.root',
            private_key: Buffer.from(JSON.stringify(planted)),
            created_at: systemClock.now(),
          },
        ],
      },
    });
    await followRootKey(server).run(new AbortController().signal);
    assert.equal(readFileSync(keyFileOf(place), 'utf8'), both);
    assert.equal((await rotate(place)).code, 0);
    assert.equal(keysInFile(place).length, 1);
  });

  test('leaves the file as it is when it cannot be replaced', async (t) => {
    const place = await engine.place(t);
    await fill(place);
    const [old] = keysInFile(place);
    writeFileSync(keyFileOf(place), `${old?.export().toString('base64')}\nnot a key\n`);
    assert.equal((await rotate(place)).code, 1);
    writeFileSync(keyFileOf(place), `${old?.export().toString('base64')}\n`);
    assert.deepEqual(await namesOf(engine, place), ['root.1', 'webhooks.v1']);
  });
});

interface Death {
  /** Acknowledged before it. */
  readonly writes: number;
  /** Whether the write after them still reaches the database. */
  readonly died: 'before' | 'after';
}

/** A store that acknowledges nothing after so many writes: the process was killed. */
function dying(store: Store, { writes, died }: Death): Store {
  let left = writes;
  const write = async <T>(run: () => Promise<T>): Promise<T> => {
    left -= 1;
    if (left >= 0) return run();
    if (left === -1 && died === 'after') await run();
    throw new Error('killed');
  };
  return {
    ...store,
    commit: (change) => write(() => store.commit(change)),
    record: (work) => write(() => store.record(work)),
  };
}
