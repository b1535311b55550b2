/** Rotating the keys of a tenant: nothing is lost, missed or doubled, and nothing remains under the keys before. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAuthentication } from '../../src/access/authenticate.ts';
import { createOpenEncrypted } from '../../src/access/client-keys/open-encrypted.ts';
import { destroyKey } from '../../src/access/key-rotations/destroy.ts';
import { listTenantKeys } from '../../src/access/key-rotations/key-list.ts';
import {
  activateKeys,
  beginRotation,
  introduceKeys,
  livingVersionsMax,
  versionsADayMax,
} from '../../src/access/key-rotations/rotation.ts';
import { tenantRowOf } from '../../src/access/tenants/read.ts';
import { day, minute, second } from '../../src/base/clock.ts';
import { createKeyedMutex } from '../../src/base/keyed-mutex.ts';
import { pooledRandom } from '../../src/base/random.ts';
import type { Operator } from '../../src/rules/caller.ts';
import { systemEntry } from '../../src/rules/log-entries.ts';
import { perform } from '../../src/rules/operation.ts';
import { gentleBatch, type Timer } from '../../src/runtime/jobs/pace.ts';
import { rotateTenantKeys } from '../../src/runtime/jobs/rotate-keys.ts';
import type { RotatedPurpose } from '../../src/store/key-tables.ts';
import {
  countsByVersion,
  readVersionCounts,
  type SealedName,
  sealedColumns,
  sealedNames,
} from '../../src/store/queries/key-versions.ts';
import { unverifiedColumns } from '../../src/store/stored-row.ts';
import { createToken } from '../../src/tokens/create.ts';
import { exportTokens } from '../../src/tokens/export.ts';
import { listByCursor, listByPage } from '../../src/tokens/list.ts';
import { leaveApproval } from '../support/approvals.ts';
import { onBothEngines } from '../support/engines.ts';
import { environmentOf, runCommand } from '../support/process.ts';
import { sendSensitiveTraffic } from '../support/sensitive-traffic.ts';
import { createStillClock, managementKey, startVault, type TestVault } from '../support/vault.ts';

async function operatorOf({ running: { vault } }: TestVault): Promise<Operator> {
  const [row] = await vault.tenants.all();
  const tenant = row && (await vault.tenants.find(row.tenant_id));
  assert(tenant);
  return { tenant, application: null };
}

async function begin(vault: TestVault, purpose: RotatedPurpose): Promise<void> {
  const { vault: parts } = vault.running;
  const actor = await operatorOf(vault);
  await perform({ store: parts.store, actor }, beginRotation(parts, actor, purpose));
}

async function rotate(vault: TestVault, purpose: RotatedPurpose): Promise<void> {
  await begin(vault, purpose);
  const job = rotateTenantKeys({ ...vault.running.vault, isAlone: () => true });
  await job.run(new AbortController().signal);
}

async function keysOf(vault: TestVault) {
  const { vault: parts } = vault.running;
  const { tenant } = await operatorOf(vault);
  return listTenantKeys(parts, await tenantRowOf(parts.tenants, tenant));
}

async function destroy(
  vault: TestVault,
  purpose: 'data' | 'search' | 'fingerprint',
  version: number,
) {
  const { vault: parts } = vault.running;
  const actor = await operatorOf(vault);
  return perform({ store: parts.store, actor }, destroyKey(parts, actor, { purpose, version }));
}

const origin = { address: '127.0.0.1', traceId: 'trace', dialect: 'SVC' };

const cards = ['4242424242424242', '5555555555554444', '378282246310005'];

onBothEngines('rotation of keys', (engine) => {
  for (const purpose of ['data', 'search', 'fingerprint'] as const) {
    test(`after a rotation of ${purpose} keys all is found once, and the old key can be destroyed`, async (t) => {
      const vault = await startVault(t, engine);
      const key = await vault.application();
      const create = (number: string) =>
        vault.send('POST', '/tokens', {
          key,
          body: {
            type: 'card',
            data: { number, expiration_month: 12, expiration_year: 2030, cvc: '123' },
            metadata: { shop: 'north' },
            search_indexes: ['{{ data.number }}'],
            deduplicate_token: true,
          },
        });
      const ids: string[] = [];
      for (const number of cards) ids.push((await create(number)).body.id);
      await rotate(vault, purpose);
      for (const [index, number] of cards.entries()) {
        const read = await vault.send('GET', `/tokens/${ids[index]}`, { key });
        assert.equal(read.status, 200, read.text);
        assert.equal(read.body.data.number, number);
        const found = await vault.send('POST', '/tokens/search', {
          key,
          body: { query: `data:${number}` },
        });
        assert.deepEqual(
          found.body.data.map(({ id }: { id: string }) => id),
          [ids[index]],
        );
        const again = await create(number);
        assert.equal(again.body.id, ids[index], again.text);
      }
      const keys = await keysOf(vault);
      const before = keys.find((one) => one.purpose === purpose && one.version === 1);
      const after = keys.find((one) => one.purpose === purpose && one.version === 2);
      assert.equal(before?.state, 'decrypt_only');
      assert.equal(before?.rows, 0, JSON.stringify(keys));
      assert.equal(after?.state, 'active');
      assert(Number(after?.rows) >= cards.length);
      await destroy(vault, purpose, 1);
      for (const id of ids) {
        assert.equal((await vault.send('GET', `/tokens/${id}`, { key })).status, 200);
      }
      await assert.rejects(destroy(vault, purpose, 2), /active/);
    });
  }

  test('between the steps all is found once, and new values are claimed under the earlier key', async (t) => {
    const vault = await startVault(t, engine);
    const key = await vault.application();
    const create = async (data: string, more: object = {}) => {
      const body = {
        type: 'token',
        data,
        search_indexes: ['{{ data }}'],
        metadata: { of: data },
        deduplicate_token: true,
        ...more,
      };
      const made = await vault.send('POST', '/tokens', { key, body });
      assert.equal(made.status, 201, made.text);
      return made.body.id as string;
    };
    const find = async (data: string) => {
      const body = { query: `data:${data} AND metadata.of:${data}` };
      const found = await vault.send('POST', '/tokens/search', { key, body });
      return found.body.data.map(({ id }: { id: string }) => id);
    };
    const expectExact = async (ids: Readonly<Record<string, string>>) => {
      for (const [data, id] of Object.entries(ids)) {
        assert.deepEqual(await find(data), [id], data);
        assert.equal(await create(data), id, `${data} is deduplicated`);
      }
    };
    const claims = async () =>
      Number(
        (await engine.run(vault.place, 'select count(*) as count from fingerprint_claims'))[0]?.[
          'count'
        ],
      );
    const parts = vault.running.vault;
    const { tenant } = await operatorOf(vault);
    const rotation = async (purpose: RotatedPurpose) => {
      const row = await parts.store.get('key_rotations', { tenant_id: tenant.id, purpose });
      assert(row);
      return row;
    };
    const finish = () =>
      rotateTenantKeys({ ...parts, isAlone: () => true }).run(new AbortController().signal);
    const ids: Record<string, string> = { early: await create('early') };
    for (const purpose of ['search', 'fingerprint'] as const) {
      await begin(vault, purpose);
      const introduced = await introduceKeys(parts, await rotation(purpose));
      assert(introduced);
      assert.deepEqual(await parts.store.commit(introduced), {});
      await expectExact(ids);
      ids[`${purpose}1`] = await create(`${purpose}1`);
      const activated = await activateKeys(parts, await rotation(purpose));
      assert(activated);
      assert.deepEqual(await parts.store.commit(activated), {});
      await expectExact(ids);
      ids[`${purpose}2`] = await create(`${purpose}2`);
      await expectExact(ids);
      assert.equal(await claims(), purpose === 'fingerprint' ? 2 : 0);
      const patched = await vault.send('PATCH', `/tokens/${ids['early']}`, {
        key,
        body: { metadata: { seen: purpose } },
      });
      assert.equal(patched.status, 200, patched.text);
      await expectExact(ids);
      // Rotations of a tenant follow one another.
      if (purpose === 'search') await finish();
    }
    // Its value is free again, although the claim was made for it.
    const changed = { data: 'another', deduplicate_token: true };
    await vault.send('PATCH', `/tokens/${ids['fingerprint2']}`, { key, body: changed });
    assert.notEqual(await create('fingerprint2'), ids['fingerprint2']);
    await finish();
    assert.equal(await claims(), 0);
    const { fingerprint2: _changed, ...same } = ids;
    await expectExact(same);
    // Nothing has a digest under the earlier keys any more.
    for (const purpose of ['search', 'fingerprint'] as const) await destroy(vault, purpose, 1);
    await expectExact(same);
  });

  test('a request that outlasts a rotation misses nothing that was sealed under the new keys', async (t) => {
    const vault = await startVault(t, engine);
    const key = await vault.application();
    const body = {
      type: 'token',
      data: 'early',
      search_indexes: ['{{ data }}'],
      metadata: { a: 'b' },
    };
    const { body: token } = await vault.send('POST', '/tokens', { key, body });
    const parts = vault.running.vault;
    const authenticate = createAuthentication({ ...parts, onFailure: async () => undefined });
    const caller = await authenticate(key, origin);
    for (let round = 0; round < 2; round += 1) await rotate(vault, 'search');
    const route = { permission: 'token:search', method: 'POST', path: '/tokens/search' } as const;
    const tools = { ...parts, inTurn: createKeyedMutex(), onMaskFailure: () => undefined };
    const filter = { data: ['early'], metadataCase: 'folded' } as const;
    const listing = {
      permission: 'token:search',
      route: 'POST /v2/tokens/search',
      filter,
    } as const;
    for (const list of [listByCursor, listByPage]) {
      const { body: found } = await perform(
        { ...parts, actor: caller, route },
        list(tools, caller, listing),
      );
      const { data } = found as { readonly data: readonly { readonly id: string }[] };
      assert.deepEqual(
        data.map(({ id }) => id),
        [token.id],
      );
    }
    await rotate(vault, 'fingerprint');
    const creating = createToken({ ...tools, openEncrypted: createOpenEncrypted(parts) }, caller, {
      type: 'token',
      data: 'early',
      deduplicate_token: true,
    });
    // It knows one of two fingerprints of the value, so nothing is stored.
    await assert.rejects(perform({ ...parts, actor: caller, route }, creating), {
      code: 'unavailable',
    });
    const exporting = { caller: async () => caller, tokensOfBatch: (most: number) => most, filter };
    const exported = await Array.fromAsync(exportTokens(tools, exporting));
    assert.deepEqual(
      exported.flat().map(({ id }) => id),
      [token.id],
    );
  });

  test('a rotation through the interface takes a permission, and one of a purpose at a time', async (t) => {
    const vault = await startVault(t, engine);
    const key = await vault.application();
    const path = '/tenants/self/keys/rotations';
    const body = { purpose: 'data' };
    assert.equal((await vault.send('POST', path, { key, body })).status, 403);
    assert.equal((await vault.send('POST', path, { key: managementKey, body })).status, 202);
    for (const [step, state] of [
      ['pause', 'paused'],
      ['resume', 'waiting'],
    ] as const) {
      assert.equal((await vault.send('POST', `${path}/${step}`, { key })).status, 403);
      const { body: rotations } = await vault.send('POST', `${path}/${step}`, {
        key: managementKey,
      });
      assert.deepEqual(
        rotations.map((one: { state: string }) => one.state),
        [state],
      );
    }
    assert.equal((await vault.send('POST', path, { key: managementKey, body })).status, 409);
    const wrong = await vault.send('POST', path, { key: managementKey, body: { purpose: 'row' } });
    assert.equal(wrong.status, 400);
    assert.ok(wrong.body.errors.purpose);
    const destroying = (words: string) =>
      vault.send('DELETE', `/tenants/self/keys/${words}`, { key: managementKey });
    assert.equal((await destroying('data/1')).status, 409);
    assert.equal((await destroying('data/9')).status, 404);
    assert.equal((await destroying('data/one')).status, 400);
    const job = rotateTenantKeys({ ...vault.running.vault, isAlone: () => true });
    await job.run(new AbortController().signal);
    const listed = await vault.send('GET', '/tenants/self/keys', { key: managementKey });
    const states = listed.body.keys
      .filter(({ purpose }: { purpose: string }) => purpose === 'data')
      .map(({ version, state, rows }: Record<string, unknown>) => [version, state, rows]);
    assert.deepEqual(states, [
      [1, 'decrypt_only', 0],
      [2, 'active', 0],
    ]);
    const uncountedPath = '/tenants/self/keys?counts=none';
    const uncounted = await vault.send('GET', uncountedPath, { key: managementKey });
    const without = listed.body.keys.map((one: object) => ({ ...one, rows: null }));
    assert.deepEqual(uncounted.body.keys, without, 'the same keys, of which nothing was counted');
    assert.equal((await destroying('data/1')).status, 204);
    assert.equal((await destroying('data/1')).status, 409);
  });

  test('of pause and resume at once the later one is decided by what the other one left', async (t) => {
    const vault = await startVault(t, engine);
    const path = '/tenants/self/keys/rotations';
    const key = managementKey;
    await vault.send('POST', path, { key, body: { purpose: 'data' } });
    const revision = async () =>
      Number(
        (await engine.run(vault.place, 'select revision from key_rotations'))[0]?.['revision'],
      );
    const before = await revision();
    const steps = Array.from({ length: 20 }, (_, at) => (at % 2 ? 'resume' : 'pause'));
    const sent = steps.map((step) => vault.send('POST', `${path}/${step}`, { key }));
    const statuses = (await Promise.all(sent)).map(({ status }) => status);
    assert.ok(statuses.includes(200));
    const done = statuses.filter((status) => status === 200).length;
    assert.equal(await revision(), before + done);
  });

  test('a rotation that is paused between two commits counts all rows that are sealed again', async (t) => {
    const vault = await startVault(t, engine, { clock: createStillClock() });
    const key = await vault.application();
    const count = gentleBatch + 5;
    for (let at = 0; at < count; at++) {
      await vault.send('POST', '/tokens', { key, body: { type: 'token', data: at } });
    }
    const path = '/tenants/self/keys/rotations';
    const send = (step: string) =>
      vault.send('POST', `${path}${step}`, { key: managementKey, body: { purpose: 'data' } });
    const shown = async () => {
      const { body } = await vault.send('GET', path, { key: managementKey });
      return body.map((one: Record<string, unknown>) => [one['state'], one['rows_done']]);
    };
    await send('');
    let isPaused = false;
    const pausing = {
      now: () => 0,
      pause: async () => {
        if (isPaused) return;
        isPaused = true;
        await send('/pause');
        // Then the process renews its lease, and notices.
        vault.clock.advance(5 * second);
      },
    };
    const run = async (timer: Timer) => {
      const parts = vault.running.vault;
      const job = rotateTenantKeys({ ...parts, timer, isAlone: () => true });
      await job.run(new AbortController().signal);
    };
    await run(pausing);
    assert.deepEqual(await shown(), [['paused', gentleBatch]]);
    await send('/resume');
    vault.clock.advance(minute);
    await run({ ...pausing, pause: async () => undefined });
    assert.deepEqual(await shown(), [['finished', count]]);
  });

  test('nobody makes keyrings grow without limit: versions of a day, and those that live, are counted', async (t) => {
    const vault = await startVault(t, engine, { clock: createStillClock() });
    const send = async () => {
      const path = '/tenants/self/keys/rotations';
      const sent = { key: managementKey, body: { purpose: 'log' } };
      const { status, body } = await vault.send('POST', path, sent);
      const job = rotateTenantKeys({ ...vault.running.vault, isAlone: () => true });
      await job.run(new AbortController().signal);
      vault.clock.advance(second);
      return [status, body.detail];
    };
    for (let version = 1; version <= versionsADayMax; version++) {
      assert.deepEqual(await send(), [202, undefined], `version ${version}`);
    }
    const [soon, why] = await send();
    assert.equal(soon, 409);
    assert.match(why, /24 times within a day/);
    vault.clock.advance(day);

    const { store, tenants } = vault.running.vault;
    const { tenant } = await operatorOf(vault);
    const row = await tenantRowOf(tenants, tenant);
    const made = { random: pooledRandom(), now: vault.clock.now() };
    let keyring = await tenants.keyringOf(row);
    while (keyring.versions.audit.length < livingVersionsMax) {
      keyring = keyring.withVersion('audit', made);
    }
    const many = await tenants.rekeyed(row, keyring.withNewestActive('audit'));
    const fact = { entity: 'keyring', id: tenant.id, operation: 'rotate' } as const;
    const entry = systemEntry({ tenant: tenant.id, at: vault.clock.now(), ...fact });
    assert.deepEqual(await store.commit({ ...many, entries: [entry] }), {});
    vault.clock.advance(day);
    const [status, detail] = await send();
    assert.equal(status, 409);
    assert.match(detail, /has 100 versions of a key that are not destroyed/);
    const destroying = await vault.send('DELETE', '/tenants/self/keys/log/1', {
      key: managementKey,
    });
    assert.equal(destroying.status, 204);
    assert.deepEqual(await send(), [202, undefined]);
  });

  test('what was sealed under a key that is destroyed by now is not stored', async (t) => {
    const vault = await startVault(t, engine);
    const key = await vault.application();
    const { body } = await vault.send('POST', '/tokens', {
      key,
      body: { type: 'token', data: 'one' },
    });
    const { store } = vault.running.vault;
    const { tenant } = await operatorOf(vault);
    const row = await store.get('tokens', { tenant_id: tenant.id, token_id: body.id });
    assert.ok(row);
    await rotate(vault, 'data');
    await destroy(vault, 'data', 1);
    // As a request would that has decided before, and commits after a long wait.
    const late = { ...unverifiedColumns(row), token_id: `late-${body.id}` as typeof row.token_id };
    const fact = { entity: 'token', id: late.token_id, operation: 'create' } as const;
    const entry = systemEntry({ tenant: tenant.id, at: vault.clock.now(), ...fact });
    const writing = store.commit({ insert: { tokens: [late] }, entries: [entry] });
    await assert.rejects(writing, { code: 'unavailable' });
  });

  test('rows of every table with a sealed column are sealed again, and the log explains them', async (t) => {
    const vault = await startVault(t, engine, { environment: { STRONGROOM_REACTORS: 'on' } });
    await vault.send('POST', '/webhooks', {
      key: managementKey,
      body: { name: 'all', url: 'https://example.com/', events: ['token.created'] },
    });
    await sendSensitiveTraffic(vault.url);
    const key = await vault.application({
      permissions: ['token-intent:create', 'token-intent:read'],
    });
    const made = [
      await vault.send('POST', '/token-intents', { key, body: { type: 'token', data: 'intent' } }),
      await vault.send('POST', '/keys', { key: managementKey }),
      await vault.send('POST', '/proxies', {
        key: managementKey,
        body: { name: 'kept', destination_url: 'https://example.com/', require_auth: true },
      }),
    ];
    assert.deepEqual(
      made.map(({ status }) => status),
      [201, 201, 201],
    );
    const { store } = vault.running.vault;
    const { tenant } = await operatorOf(vault);
    await leaveApproval({ id: tenant.id, vault });
    const versionsOf = async (table: SealedName) =>
      readVersionCounts(await store.scan(countsByVersion(table, tenant.id), 'vault'));
    const before = await Promise.all(sealedNames.map(versionsOf));
    assert.deepEqual(
      sealedNames.filter((_, at) => before[at]?.length === 0),
      [],
      'each table has rows',
    );
    for (const purpose of ['data', 'fingerprint'] as const) await rotate(vault, purpose);
    const rows = await store.get('key_rotations', { tenant_id: tenant.id, purpose: 'data' });
    assert.equal(rows?.unreadable, 0);
    for (const table of sealedNames) {
      const expected = sealedColumns[table].purpose === 'reply' ? 2 : 3;
      assert.deepEqual(
        (await versionsOf(table)).map(({ version }) => version),
        [expected],
        table,
      );
    }
    for (const path of ['/proxies', '/reactors', '/webhooks', '/keys']) {
      const listed = await vault.send('GET', path, { key: managementKey });
      assert.equal(listed.status, 200, listed.text);
    }
    const { id, fingerprint } = made[0]?.body ?? {};
    const intent = await vault.send('GET', `/token-intents/${id}`, { key });
    assert.equal(intent.status, 200, intent.text);
    assert.notEqual(intent.body.fingerprint, fingerprint);
    await vault.stop();
    const state = await runCommand(
      ['logs', 'verify', '--state', '--json'],
      environmentOf(vault.place),
    );
    assert.equal(state.code, 0, state.stdout);
  });
});
