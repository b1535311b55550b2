/** Ids that are taken: of the tokens that hold them, however large, no more than one at a time is read. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAuthentication } from '../../src/access/authenticate.ts';
import { createOpenEncrypted } from '../../src/access/client-keys/open-encrypted.ts';
import { hour } from '../../src/base/clock.ts';
import { perform } from '../../src/rules/operation.ts';
import type { Store } from '../../src/store/store.ts';
import { createTokens } from '../../src/tokens/create.ts';
import { beginImport, importLines } from '../../src/tokens/import.ts';
import { onBothEngines } from '../support/engines.ts';
import { having } from '../support/sql.ts';
import { newTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

const origin = { address: '192.0.2.1', traceId: 'trace', dialect: 'SVC' };
const count = 8;
const named = (name: string) => Array.from({ length: count }, (_, at) => `${name}-${at}`);

/** The store, and how many whole tokens were read of it at once, and altogether. */
function watched(store: Store) {
  const reads = { underWay: 0, most: 0, all: 0 };
  const get: Store['get'] = async (table, key) => {
    if (table !== 'tokens') return store.get(table, key);
    reads.underWay += 1;
    reads.most = Math.max(reads.most, reads.underWay);
    reads.all += 1;
    try {
      return await store.get(table, key);
    } finally {
      reads.underWay -= 1;
    }
  };
  return { observed: { ...store, get }, reads };
}

onBothEngines('ids that are taken', (engine) => {
  test('have their tokens read one by one, and only where it matters what they hold', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const other = await tenant.application();
    const expiry = { expires_at: new Date(vault.clock.now() + hour).toISOString() };
    for (const id of named('same')) await tenant.token({ id, type: 'token', data: id });
    for (const id of named('expired')) {
      await tenant.token({ id, type: 'token', data: id, ...expiry });
    }
    for (const id of named('foreign')) {
      await tenant.send('POST', '/tokens', { key: other, body: { id, type: 'token', data: id } });
    }
    vault.clock.advance(2 * hour);

    const { store, tenants, random } = vault.running.vault;
    const { clock } = vault;
    const { observed, reads } = watched(store);
    const onFailure = async () => undefined;
    const authenticate = createAuthentication({ store, tenants, clock, onFailure });
    const caller = await authenticate(tenant.key, origin);
    const openEncrypted = createOpenEncrypted({ store, clock });
    const tools = {
      store: observed,
      tenants,
      clock,
      random,
      openEncrypted,
      onMaskFailure: () => undefined,
    };
    const requestsOf = (ids: readonly string[]) =>
      ids.map((id) => ({ id, type: 'token', data: id }) as const);

    const ids = ['same', 'expired', 'foreign'].flatMap(named);
    const results = await importLines(tools, beginImport(tools), {
      caller,
      lines: requestsOf(ids),
      turn: async () => caller,
    });
    const outcomes = results.map((result) => {
      if ('failure' in result) return result.failure.code;
      return result.repeated ? 'repeated' : 'created';
    });
    assert.deepEqual(outcomes, [
      ...named('').map(() => 'repeated'),
      ...named('').map(() => 'created'),
      ...named('').map(() => 'conflict'),
    ]);
    assert.deepEqual([reads.most, reads.all], [1, 2 * count]);

    reads.all = 0;
    const requests = requestsOf(ids.toReversed()).map((request) => ({ request, path: '' }));
    const replyFor = () => ({ status: 201 }) as const;
    const creation = createTokens(tools, caller, { requests, replyFor });
    const route = { permission: 'token:create', method: 'POST', path: '/tokens' };
    const performing = { store: observed, actor: caller, clock: tools.clock, route };
    await assert.rejects(perform(performing, creation), { code: 'conflict' });
    assert.deepEqual([reads.most, reads.all], [1, 0]);
  });

  test('fail the one line whose token was altered, and no other', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    for (const id of ['altered', 'whole']) await tenant.token({ id, type: 'token', data: id });
    const where = having(engine, 'tokens', { tenant_id: tenant.id, token_id: 'altered' });
    await engine.run(vault.place, `update tokens set metadata = '{"a":"b"}' where ${where}`);
    const lines = ['altered', 'whole', 'new'].map((id) => ({ id, type: 'token', data: id }));
    const body = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    const headers = { 'content-type': 'application/x-ndjson' };
    const answer = await tenant.send('POST', '/tokens/bulk', { body, headers });
    const answered = answer.text.trimEnd().split('\n');
    assert.deepEqual(
      answered.map((line) => JSON.parse(line).status),
      [500, 200, 201],
    );
    assert.ok((await tenant.logged('token')).includes('create denied'));
  });
});
