/** Rows by their ids without what is large: its length is known, and it is not read. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { isWhole } from '../../src/store/stored-row.ts';
import { referencedRows, wholeRows } from '../../src/tokens/tokenization/reference-rows.ts';
import { engineOf, onBothEngines } from '../support/engines.ts';
import { newTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

const ids = Array.from({ length: 12 }, (_, at) => `token-${at}`);
const references = ids.map((id) => ({ kind: 'data', id }) as const);

onBothEngines('rows of many references', (engine) => {
  test('what is large is read as it is by then, or is gone', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const { store } = vault.running.vault;
    for (const [at, id] of ids.entries()) {
      await tenant.token({ id, type: 'token', data: 'x'.repeat(at < 6 ? 9_000 : 9) });
    }
    const rows = await referencedRows(store, tenant.id, references);
    const isSmall = ids.map((id) => {
      const row = rows.tokens.get(id);
      return row && isWhole(row);
    });
    assert.deepEqual(isSmall, [...Array(6).fill(false), ...Array(6).fill(true)]);
    assert.equal((await wholeRows(store, tenant.id, rows)).tokens.size, ids.length);
    await tenant.send('DELETE', '/tokens/token-0');
    const body = { data: 'y'.repeat(1_000_000) };
    assert.equal((await tenant.send('PATCH', '/tokens/token-1', { body })).status, 200);
    const whole = await wholeRows(store, tenant.id, rows);
    assert.equal(whole.tokens.size, ids.length - 1);
    assert.ok((whole.tokens.get('token-1')?.bytes ?? 0) > body.data.length);
    for (const [id, row] of whole.tokens) {
      const { bytes, ...stored } = row;
      const now = await store.get('tokens', { tenant_id: tenant.id, token_id: row.token_id });
      assert.deepEqual({ ...stored }, { ...now }, id);
    }
  });
});

const counters = '/proc/self/io';
const skip = existsSync(counters) ? false : 'nothing counts here what is read';

test('nothing of what is large is read from the file for its length', { skip }, async (t) => {
  const vault = await startVault(t, engineOf('sqlite'));
  const tenant = await newTenant(vault);
  const { store } = vault.running.vault;
  const data = 'x'.repeat(900_000);
  for (const id of ids) await tenant.token({ id, type: 'token', data });
  const readBytes = () => Number(/^rchar: (\d+)/m.exec(readFileSync(counters, 'utf8'))?.[1]);
  const before = readBytes();
  const rows = await referencedRows(store, tenant.id, references);
  assert.ok(readBytes() - before < data.length, 'less than one of them');
  assert.equal(rows.tokens.size, ids.length);
});
