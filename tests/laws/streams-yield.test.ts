/**
 * A caller pays for processor time, so long work is done in parts that let others pass. This law knows of no route and
 * of no finding: each described route that streams asks for its turn before each part, and takes no more rows into a
 * part than its caller's share has time for.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAuthentication } from '../../src/access/authenticate.ts';
import type { StreamRoute } from '../../src/http/protocol/route.ts';
import { engineOf } from '../support/engines.ts';
import { bulk } from '../support/lines.ts';
import { newTenant } from '../support/tenant.ts';
import { routesOf, startVault } from '../support/vault.ts';

const rows = 100;
const rowsOfPart = 7;
const origin = { address: '127.0.0.1', traceId: 'trace', dialect: 'SVC' };

test('each part of a stream waits for its turn, and has as many rows as its share has time for', async (t) => {
  const vault = await startVault(t, engineOf('sqlite'));
  const tenant = await newTenant(vault);
  const line = { type: 'token', data: 'value' };
  await bulk(tenant, new Array(rows).fill(line));
  const { store, tenants } = vault.running.vault;
  const { clock } = vault;
  const authenticate = createAuthentication({
    ...{ store, tenants, clock },
    onFailure: async () => undefined,
  });
  const routes = (await routesOf(vault)).filter((route): route is StreamRoute => 'stream' in route);
  assert.ok(routes.length >= 2, 'imports and exports');
  async function* sent() {
    yield Buffer.from(`${JSON.stringify(line)}\n`.repeat(rows));
  }
  for (const { path, stream } of routes) {
    let turns = 0;
    let asked = 0;
    let received = 0;
    const parts = stream({
      caller: async () => {
        turns += 1;
        return authenticate(tenant.key, origin);
      },
      rowsOfPart: (rowsMax: number) => {
        asked += 1;
        return Math.min(rowsOfPart, rowsMax);
      },
      key: tenant.key,
      count: async (granted) => ({ granted, refusal: undefined }),
      query: {} as never,
      body: sent(),
    });
    for await (const part of parts) {
      assert.ok(Array.isArray(part), path);
      assert.ok(part.length <= rowsOfPart, `${part.length} rows in a part of ${path}`);
      received += part.length;
    }
    assert.ok(received >= rows, `${received} rows of ${path}`);
    assert.ok(asked >= rows / rowsOfPart, `${asked} parts of ${path}`);
    assert.ok(turns >= asked, `${turns} turns for ${asked} parts of ${path}`);
  }
});
