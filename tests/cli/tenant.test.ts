/** `strongroom tenant …` and `strongroom key …`, beside a server that runs on the same data. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { entriesIn } from '../support/blocks.ts';
import { onBothEngines } from '../support/engines.ts';
import { environmentOf, runCommand } from '../support/process.ts';
import { rowsOf } from '../support/rows.ts';
import { insertion } from '../support/sql.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { managementKey, startVault } from '../support/vault.ts';

onBothEngines('the operator’s commands', (engine) => {
  async function besideServer(t: Parameters<typeof startVault>[0]) {
    const vault = await startVault(t, engine);
    const environment = environmentOf(vault.place);
    const run = (...words: string[]) => runCommand(words, environment);
    const json = async (...words: string[]) => {
      const { code, stdout, stderr } = await run(...words, '--json');
      assert.equal(code, 0, stderr);
      return stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line));
    };
    const get = (key: string, path = '/tenants/self') => vault.send('GET', path, { key });
    return { vault, run, json, get };
  }

  test('a tenant is of the type that the first start makes, unless another one is named', async (t) => {
    const { json } = await besideServer(t);
    await json('tenant', 'create', '--name', 'plain');
    const types = (await json('tenant', 'list')).map(({ type }) => type);
    assert.deepEqual(types, ['test', 'test']);
  });

  test('a tenant is created, listed, given quotas and deleted, and the server follows', async (t) => {
    const { vault, run, json, get } = await besideServer(t);
    const [created] = await json('tenant', 'create', '--name', 'acme', '--type', 'test');
    const { id, key } = created;
    assert.equal((await get(key)).body.name, 'acme');
    const again = await run('tenant', 'create', '--name', 'acme');
    assert.equal(again.code, 1);
    assert.match(again.stderr, /A tenant with this name already exists/);

    const listed = await json('tenant', 'list');
    assert.deepEqual(
      listed.map(({ name }) => name),
      ['default', 'acme'],
    );

    const set = ['--set', 'cvc_retention=2h', '--set', 'detokenize_limit=50'];
    const [quota] = await json('tenant', 'quota', '--tenant', 'acme', ...set);
    assert.equal(quota.quotas.cvc_retention, 7_200_000);
    const seen = (await get(key)).body.quotas;
    assert.deepEqual(seen, quota.quotas);
    const shown = await run('tenant', 'quota', '--tenant', id);
    assert.match(shown.stdout, /^detokenize_limit 50$/m);
    assert.match(shown.stdout, /^cvc_retention 2h$/m);
    const table = (await run('tenant', 'list')).stdout.trimEnd().split('\n');
    assert.match(table[0] ?? '', /^ID +NAME +DISPLAY NAME +TYPE +QUOTAS$/);
    assert.match(table[1] ?? '', /^\S+ +default +test$/);
    assert.match(table[2] ?? '', /^\S+ +acme +test +detokenize_limit=50 cvc_retention=2h$/);
    assert.equal(table.length, 3);

    const token = { key, body: { name: 'a', type: 'private', permissions: ['token:create'] } };
    assert.equal((await vault.send('POST', '/applications', token)).status, 201);
    const refused = await run('tenant', 'delete', '--tenant', id);
    assert.equal(refused.code, 2);
    assert.equal((await get(key)).status, 200);
    const [deleted] = await json('tenant', 'delete', '--tenant', id, '--yes');
    assert.ok(deleted.removed_rows >= 4);
    const { receipt } = deleted;
    assert.deepEqual([receipt.entity, receipt.id, receipt.operation], ['tenant', id, 'delete']);
    assert.ok(receipt.keys.length >= 8);
    for (const { state, destroyed_at } of receipt.keys) {
      assert.deepEqual([state, destroyed_at], ['destroyed', receipt.erased_at]);
    }
    const file = join(temporaryDirectory(t), 'deleted.json');
    writeFileSync(file, JSON.stringify(deleted));
    const verified = await run('erasure', 'verify', file, '--public-key', receipt.public_key);
    assert.equal(verified.code, 0, verified.stderr);
    assert.match(verified.stdout, /The keys that sealed it are destroyed/);
    vault.clock.advance(1000);
    assert.equal((await get(key)).status, 401);
    assert.equal((await json('tenant', 'list')).length, 1);
    assert.equal((await get(managementKey)).status, 200);
    await json('tenant', 'create', '--name', 'acme');
  });

  test('a quota that is refused is named, and no other is set', async (t) => {
    const { run, get } = await besideServer(t);
    const before = (await get(managementKey)).body.quotas;
    const words = ['--set', 'detokenize_limit=7', '--set', 'tokenise_limit=5'];
    const refused = await run('tenant', 'quota', '--tenant', 'default', ...words);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /tokenise_limit is not a quota; the quotas are tokenize_limit/);
    assert.deepEqual((await get(managementKey)).body.quotas, before);
    const long = await run('tenant', 'quota', '--tenant', 'default', '--set', 'cvc_retention=366d');
    assert.equal(long.code, 1);
    assert.match(long.stderr, /: cvc_retention must be a duration from 0s to 365d, such as 90s/);
    const nobody = await run('tenant', 'quota', '--tenant', 'nobody');
    assert.equal(nobody.code, 2);
    assert.match(nobody.stderr, /there is no tenant/);
  });

  test('an operator gets in again who lost every management key, and can stop a leaked one', async (t) => {
    const { vault, run, json, get } = await besideServer(t);
    const application = (await get(managementKey, '/applications/key')).body;
    await vault.send('DELETE', `/applications/${application.id}`, { key: managementKey });
    assert.equal((await get(managementKey)).status, 401);
    const [made] = await json('key', 'create', '--tenant', 'default');
    const own = (await get(made.key, '/applications/key')).body;
    assert.equal(own.type, 'management');
    assert.equal((await get(made.key)).status, 200);

    const [second] = await json('key', 'create', '--tenant', 'default', '--application', own.id);
    assert.equal(second.application_id, own.id);
    const listed = await json('key', 'list', '--tenant', 'default');
    assert.deepEqual(listed.map(({ id }) => id).sort(), [made.id, second.id].sort());
    assert.ok(listed.every((row) => row.key === undefined));

    await json('key', 'delete', '--tenant', 'default', '--key', made.id);
    vault.clock.advance(1000);
    assert.equal((await get(made.key)).status, 401);
    assert.equal((await get(second.key)).status, 200);
    const missing = await run('key', 'delete', '--tenant', 'default', '--key', made.id);
    assert.equal(missing.code, 1);
    assert.match(missing.stderr, /There is no key with this id/);

    const entries = (await entriesIn(vault.running.vault.store)).filter(
      ({ actor_type }) => actor_type === 'operator',
    );
    assert.deepEqual(
      entries.map(({ entity_type, operation }) => `${entity_type} ${operation}`).sort(),
      [
        'application create',
        'application_key create',
        'application_key create',
        'application_key delete',
      ],
    );
  });

  test('a list of keys names none that was put back after it was deleted, and fails on an altered one', async (t) => {
    const { vault, run, json } = await besideServer(t);
    const [made] = await json('key', 'create', '--tenant', 'default');
    const rows = await rowsOf(engine, vault.place, 'api_keys');
    const row = rows.find(({ key_id }) => key_id === made.id);
    assert.ok(row);
    const before = await json('key', 'list', '--tenant', 'default');
    await json('key', 'delete', '--tenant', 'default', '--key', made.id);
    await engine.run(vault.place, insertion(engine, 'api_keys', row));
    const listed = await json('key', 'list', '--tenant', 'default');
    assert.deepEqual(
      listed.map(({ id }) => id),
      before.map(({ id }) => id).filter((id) => id !== made.id),
    );
    await engine.run(vault.place, 'update api_keys set created_at = 1');
    const refused = await run('key', 'list', '--tenant', 'default', '--json');
    assert.equal(refused.code, 1);
    assert.equal(refused.stdout, '');
    assert.match(refused.stderr, /altered outside the vault; "strongroom logs verify --state"/);
  });

  test('a tenant that renames itself to another’s name gets nothing meant for that one', async (t) => {
    const { vault, run, json } = await besideServer(t);
    const rename = async (key: string, name: string) => {
      const { status } = await vault.send('PUT', '/tenants/self', { key, body: { name } });
      assert.equal(status, 200);
    };
    // Older than its victim, so that it comes first wherever tenants are looked through in order.
    await rename(managementKey, 'victim');
    const [victim] = await json('tenant', 'create', '--name', 'victim', '--type', 'test');
    const [other] = await json('tenant', 'create', '--name', 'other', '--type', 'test');
    const { tenant_id } = (await vault.running.vault.tenants.all())[0] ?? {};

    const tenantOf = async (key: string) =>
      (await vault.send('GET', '/tenants/self', { key })).body.id;
    const [made] = await json('key', 'create', '--tenant', 'victim');
    assert.equal(await tenantOf(made.key), victim.id);
    await rename(other.key, 'shared');
    for (const words of [
      ['key', 'create'],
      ['tenant', 'delete', '--yes'],
      ['logs', 'verify'],
    ]) {
      const refused = await run(...words, '--tenant', 'shared');
      assert.equal(refused.code, 2, `${words.join(' ')}: ${refused.stdout}`);
      assert.match(refused.stderr, /there is no tenant with that id or name/);
    }
    const log = await run('logs', 'export', '--tenant', 'victim');
    assert.equal(log.stdout.split('\n')[0], `{"kind":"begin","tenant_id":"${victim.id}"}`);

    const [quota] = await json('tenant', 'quota', '--tenant', 'default');
    assert.equal(quota.id, tenant_id);
    const [byId] = await json('tenant', 'quota', '--tenant', victim.id.toUpperCase());
    assert.equal(byId.id, victim.id);
    const listed = await json('tenant', 'list');
    assert.deepEqual(
      listed.map(({ name, display_name }) => [name, display_name]),
      [
        ['default', 'victim'],
        ['victim', 'victim'],
        ['other', 'shared'],
      ],
    );
    const deleted = await run('tenant', 'delete', '--tenant', 'other', '--yes');
    assert.match(deleted.stdout, /^Deleted the tenant "other"/);
  });

  test('a handle that reads like an id is refused, and one written outside the vault is ambiguous', async (t) => {
    const { vault, run, json } = await besideServer(t);
    const [victim] = await json('tenant', 'create', '--name', 'victim');
    const refused = await run('tenant', 'create', '--name', victim.id);
    assert.equal(refused.code, 1, refused.stdout);
    assert.match(refused.stderr, /name must not be a UUID/);
    assert.equal((await vault.running.vault.tenants.all()).length, 2);

    const { place } = vault;
    await engine.run(place, `update tenants set name = '${victim.id}' where name = 'default'`);
    for (const words of [
      ['key', 'create'],
      ['logs', 'verify'],
    ]) {
      const ambiguous = await run(...words, '--tenant', victim.id);
      assert.equal(ambiguous.code, 2, ambiguous.stdout);
      assert.match(ambiguous.stderr, /the id of one tenant and the name of another/);
    }
  });
});
