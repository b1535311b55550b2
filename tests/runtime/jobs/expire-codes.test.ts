/** Card codes: off the disk within the hour, and nothing else of the token with them. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { batchMax } from '../../../src/runtime/jobs/pace.ts';
import { engineOf, onBothEngines, type Place } from '../../support/engines.ts';
import { runJob } from '../../support/jobs.ts';
import { having } from '../../support/sql.ts';
import { newTenant, type TestTenant, tenantsOf } from '../../support/tenant.ts';
import { visa } from '../../support/values.ts';
import { startVault } from '../../support/vault.ts';

const minute = 60_000;
const hour = 60 * minute;
const { cvc: _cvc, ...kept } = visa;

async function onlyToken(tenant: TestTenant) {
  const [row, ...others] = await tenant.rows('tokens');
  assert.ok(row);
  assert.deepEqual(others, []);
  return { ...row };
}

/** True when any file of the embedded database holds the bytes. */
function holds(place: Place, bytes: Uint8Array): boolean {
  const files = readdirSync(place.dataDir).filter((name) => name.startsWith('strongroom.db'));
  return files.some((name) => readFileSync(join(place.dataDir, name)).includes(bytes));
}

onBothEngines('The job that removes card codes', (engine) => {
  const tenants = tenantsOf(engine);

  test('seals the data again without the code; the rest of the token stays as it was', async () => {
    const tenant = await tenants();
    const { id } = (await tenant.token({ type: 'card', data: visa, metadata: { a: 'b' } })).body;
    const before = await onlyToken(tenant);
    tenant.vault.clock.advance(hour - minute);
    assert.equal(await runJob(tenant.vault, 'expire card codes'), 0);
    tenant.vault.clock.advance(10 * minute);
    const shown = await tenant.send('GET', `/tokens/${id}`);
    assert.equal(await runJob(tenant.vault, 'expire card codes'), 1);
    const after = await onlyToken(tenant);
    const { data } = after;
    assert.deepEqual(after, { ...before, data, version: 2, code_expires_at: null });
    assert.ok(data.length < before.data.length);
    assert.deepEqual((await tenant.send('GET', `/tokens/${id}`)).text, shown.text);
    assert.deepEqual(shown.body.data, kept);
    const entries = (await tenant.rows('logs')).filter(({ operation }) => operation === 'expire');
    assert.deepEqual(
      entries.map((entry) => [entry.entity_type, entry.entity_id, entry.message]),
      [['token', id, 'Token property expired']],
    );
    assert.equal(await runJob(tenant.vault, 'expire card codes'), 0);
  });

  test('leaves the search terms, none of which came from the code', async () => {
    const tenant = await tenants();
    const search_indexes = ['{{ data.number }}{{ data.cvc }}'];
    await tenant.token({ type: 'card', data: visa, search_indexes, metadata: { a: 'b' } });
    const before = (await tenant.rows('search_terms')).map(({ term }) => term);
    tenant.vault.clock.advance(hour + 10 * minute);
    await runJob(tenant.vault, 'expire card codes');
    const after = (await tenant.rows('search_terms')).map(({ term }) => term);
    assert.deepEqual(after, before);
    const query = `data:${visa.number}`;
    const found = await tenant.send('POST', '/tokens/search', { body: { query } });
    assert.equal(found.body.data.length, 1);
  });

  test('does the others where a token was tampered with, and says so', async (t) => {
    const tenant = await newTenant(await startVault(t, engine));
    for (const id of ['one', 'two', 'three']) {
      await tenant.token({ id, type: 'card', data: visa });
    }
    const bytes = engine.name === 'sqlite' ? "x'00'" : "'\\x00'::bytea";
    await engine.run(
      tenant.vault.place,
      `update tokens set data = ${bytes} where ${having(engine, 'tokens', { tenant_id: tenant.id, token_id: 'two' })}`,
    );
    tenant.vault.clock.advance(hour + 10 * minute);
    await assert.rejects(runJob(tenant.vault, 'expire card codes'), { code: 'integrity' });
    const left = (await tenant.rows('tokens')).filter((row) => row.code_expires_at !== null);
    assert.deepEqual(
      left.map((row) => row.token_id),
      ['two'],
    );
  });

  test('does the others also where more are damaged than are found at a time', async (t) => {
    const tenant = await newTenant(await startVault(t, engine));
    const made = Array.from({ length: batchMax + 1 }, () =>
      tenant.token({ type: 'card', data: visa }),
    );
    await Promise.all(made);
    const bytes = engine.name === 'sqlite' ? "x'00'" : "'\\x00'::bytea";
    const own = having(engine, 'tokens', { tenant_id: tenant.id });
    await engine.run(tenant.vault.place, `update tokens set data = ${bytes} where ${own}`);
    tenant.vault.clock.advance(minute);
    await tenant.token({ id: 'whole', type: 'card', data: visa });
    tenant.vault.clock.advance(hour + 10 * minute);
    await assert.rejects(runJob(tenant.vault, 'expire card codes'), { code: 'integrity' });
    const done = (await tenant.rows('tokens')).filter((row) => row.code_expires_at === null);
    assert.deepEqual(
      done.map((row) => row.token_id),
      ['whole'],
    );
  });

  test('several servers at once change each token once', async (t) => {
    const vault = await startVault(t, engine);
    const second = await startVault(t, engine, { place: vault.place, clock: vault.clock });
    const tenant = await newTenant(vault);
    const count = 60;
    const made = Array.from({ length: count }, () => tenant.token({ type: 'card', data: visa }));
    await Promise.all(made);
    vault.clock.advance(hour + 10 * minute);
    const done = [runJob(vault, 'expire card codes'), runJob(second, 'expire card codes')];
    const [first = 0, other = 0] = await Promise.all(done);
    assert.equal(first + other, count);
    const versions = (await tenant.rows('tokens')).map(({ version }) => version);
    assert.deepEqual(new Set(versions), new Set([2]));
    const entries = (await tenant.logged()).filter((operation) => operation === 'expire');
    assert.equal(entries.length, count);
  });
});

test('what was removed is in no file of the embedded database, byte for byte', async (t) => {
  const engine = engineOf('sqlite');
  const vault = await startVault(t, engine);
  const tenant = await newTenant(vault);
  const expires_at = new Date(vault.clock.now() + 2 * hour).toISOString();
  for (let card = 0; card < 100; card += 1) {
    await tenant.token({ type: 'card', data: visa, ...(card % 2 === 0 && { expires_at }) });
  }
  // Without its first 40 bytes, which say how it is sealed, each ciphertext is like no other.
  const ciphertexts = async () =>
    (await tenant.rows('tokens')).map(({ data }) => data.subarray(40));
  const held = (bytes: readonly Uint8Array[]) => bytes.filter((one) => holds(vault.place, one));
  const withCodes = await ciphertexts();
  assert.equal(held(withCodes).length, 100);
  vault.clock.advance(hour + 10 * minute);
  assert.equal(await runJob(vault, 'expire card codes'), 100);
  assert.ok(held(withCodes).length > 0, 'the write-ahead log still has the old pages');
  await runJob(vault, 'scrub the store');
  assert.equal(held(withCodes).length, 0);
  const expired = await ciphertexts();
  assert.equal(held(expired).length, 100);
  vault.clock.advance(hour);
  assert.equal(await runJob(vault, 'expire tokens'), 50);
  await runJob(vault, 'scrub the store');
  assert.equal(held(expired).length, 50);
});
