/** A database of the release before is counted when it is migrated, and then by itself. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { managementKey, startVault } from '../support/vault.ts';

onBothEngines('stored bytes', (engine) => {
  test('the upgrade counts every row that is stored already', async (t) => {
    const vault = await startVault(t, engine);
    const key = await vault.application();
    const own = await vault.application({ type: 'public', permissions: ['token:create'] });
    const body = { type: 'token', data: 'a', metadata: { a: 'b' }, search_indexes: ['{{ data }}'] };
    for (const by of [key, own]) {
      const headers = { 'svc-idempotency-key': '6cb8b4ae-5c0b-4f0e-9a51-0a6b3c1f2d11' };
      assert.equal((await vault.send('POST', '/tokens', { key: by, body, headers })).status, 201);
    }
    assert.equal((await vault.send('POST', '/sessions', { key: own })).status, 201);
    const counted = async () => {
      const sum =
        'select application_id, sum(bytes) as bytes from stored_bytes group by 1 order by 1';
      return (await engine.run(vault.place, sum)).map(({ bytes }) => Number(bytes));
    };
    const before = await counted();
    assert.equal(before.length, 2);
    await vault.stop();
    for (const statement of await undone()) await engine.run(vault.place, statement);
    const again = await startVault(t, engine, { place: vault.place });
    assert.deepEqual(await counted(), before);
    const usage = { key: managementKey };
    const { body: report } = await again.send('GET', '/tenants/self/reports/usage', usage);
    assert.equal(
      report.storage.stored_bytes,
      before.reduce((sum, one) => sum + one, 0),
    );
  });

  /** What leads back to schema version 4, except for a column that may stay. */
  async function undone(): Promise<readonly string[]> {
    const tables = ['tokens', 'token_intents', 'replies', 'sessions'];
    const actions = ['insert', 'update', 'delete'];
    const on = (table: string) => (engine.name === 'postgres' ? ` on ${table}` : '');
    return [
      ...tables.flatMap((table) =>
        actions.map((action) => `drop trigger stored_bytes_${table}_${action}${on(table)}`),
      ),
      'drop table stored_bytes',
      'update replies set charged_to = null',
      'alter table replies drop column charged_to',
      'update schema_version set version = 4',
    ];
  }
});
