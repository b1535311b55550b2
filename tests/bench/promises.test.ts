/** The benchmark's prices: a vault that breaks one promise serves requests like any other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { engines } from '../../bench/storage.ts';
import { startVault } from '../../bench/vault.ts';

const card = '{"type":"card","data":{"number":"4242424242424242"}}';

test('a vault without its log creates and reveals, and writes no entry about either', async (t) => {
  const open = engines['embedded'];
  assert.ok(open);
  const vault = await startVault(await open({ durable: false }), { without: 'the audit log' });
  t.after(() => vault.close());
  const { id } = JSON.parse(await vault.send('POST', { path: '/tokens', body: card }));
  const token = JSON.parse(await vault.send('GET', { path: `/tokens/${id}` }));
  assert.equal(token.data.number, '4242424242424242');
  const entries = await vault.send('GET', { path: '/logs' }, vault.managementKey);
  assert.deepEqual(JSON.parse(entries).data, []);
});
