/** Asynchronous calls of one tenant, whatever is wrong with them, keep those of no other tenant from being run. */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createOpenEncrypted } from '../../src/access/client-keys/open-encrypted.ts';
import { tokenReaders } from '../../src/api/token-shapes.ts';
import type { TenantId } from '../../src/base/ids.ts';
import { createForward } from '../../src/outbound/forward.ts';
import { failurePauses } from '../../src/queue/lanes.ts';
import { createStoredBytes } from '../../src/reactors/calls/stored-bytes.ts';
import { createAdmitLog } from '../../src/reactors/calls/stored-logs.ts';
import { createWaitingRuns, type WaitingRuns } from '../../src/reactors/calls/waiting-runs.ts';
import { memoryOfVault, openCode } from '../../src/reactors/code/engine.ts';
import { createBudgetMemory, processBudget } from '../../src/reactors/sandbox/process-budget.ts';
import { sqliteBuilder } from '../../src/store/query-builder.ts';
import type { Store } from '../../src/store/store.ts';
import { type Engine, onBothEngines } from '../support/engines.ts';
import { createReactor, invoker, takeDue } from '../support/reactors.ts';
import { newTenant, type TestTenant } from '../support/tenant.ts';
import { configFor, createStillClock, startVault, type TestVault } from '../support/vault.ts';

async function accept(tenant: TestTenant, calls = 1): Promise<void> {
  const key = await invoker(tenant);
  const { id } = await createReactor(tenant);
  for (let call = 0; call < calls; call++) {
    const sent = await tenant.send('POST', `/reactors/${id}/react-async`, { key, body: {} });
    assert.equal(sent.status, 202, sent.text);
  }
}

/** In the order in which they have their turns. */
async function tenantsInTurn(vault: TestVault, count: number): Promise<readonly TestTenant[]> {
  const tenants: TestTenant[] = [];
  for (let made = 0; made < count; made++) tenants.push(await newTenant(vault));
  return tenants.sort((one, two) => (one.id < two.id ? -1 : 1));
}

async function withTwoTenants(t: TestContext, engine: Engine) {
  const vault = await startVault(t, engine, { clock: createStillClock() });
  const [first, second] = await tenantsInTurn(vault, 2);
  assert.ok(first && second);
  return { vault, first, second };
}

/** How many of its calls wait; read as the vault cannot any more. */
async function waitingOf(engine: Engine, { id, vault }: TestTenant): Promise<number> {
  const where = `tenant_id = '${id}' and due_at is not null`;
  return (await engine.run(vault.place, `select run_id from reactor_runs where ${where}`)).length;
}

const runsOf = ({ running }: TestVault): WaitingRuns => {
  const { reactorRuns } = running.vault;
  assert.ok(reactorRuns);
  return reactorRuns;
};

async function run(runs: WaitingRuns): Promise<number> {
  const taken = await takeDue(runs);
  await runs.settled();
  return taken;
}

const setVersion = (engine: Engine, { id, vault }: TestTenant, version: bigint | 1) =>
  engine.run(vault.place, `update reactor_runs set version = ${version} where tenant_id = '${id}'`);

/** No number of JavaScript: neither engine gives the row. */
const unreadable = 2n ** 62n;

onBothEngines('asynchronous calls of other tenants', (engine) => {
  test('run while a row of one tenant cannot be read, which is run once it can', async (t) => {
    const { vault, first, second } = await withTwoTenants(t, engine);
    await accept(first);
    await accept(second);
    await setVersion(engine, first, unreadable);
    assert.equal(await run(runsOf(vault)), 1);
    assert.equal(await waitingOf(engine, second), 0);
    await setVersion(engine, first, 1);
    assert.equal(await run(runsOf(vault)), 1);
    assert.equal(await waitingOf(engine, first), 0);
  });

  test('run while the log of one tenant cannot be searched, which is reported, and not with each look', async (t) => {
    const { vault, first, second } = await withTwoTenants(t, engine);
    await accept(first);
    await accept(second);
    const failing = Promise.reject(new Error('no search'));
    failing.catch(() => undefined);
    const failures: unknown[] = [];
    const runs = runsOfHeldSearches(vault, first.id, {
      until: failing,
      onFailure: (error) => failures.push(error),
    });
    assert.equal(await run(runs), 1);
    assert.equal(await waitingOf(engine, second), 0);
    assert.equal(failures.length, 1);
    vault.clock.advance(failurePauses.firstMs / 2);
    await accept(second);
    assert.equal(await run(runs), 1);
    assert.equal(failures.length, 1);
    vault.clock.advance(failurePauses.firstMs);
    assert.equal(await run(runs), 0);
    assert.equal(failures.length, 2);
    assert.equal(await waitingOf(engine, first), 1);
  });

  test('run while the log of one tenant is searched', async (t) => {
    const { vault, first, second } = await withTwoTenants(t, engine);
    await accept(first, 3);
    const search = Promise.withResolvers<void>();
    const runs = runsOfHeldSearches(vault, first.id, {
      until: search.promise,
      onFailure: (error) => assert.fail(String(error)),
    });
    const begun = await runs.look();
    await accept(second);
    assert.equal(await takeDue(runs), 1);
    while ((await waitingOf(engine, second)) > 0) await new Promise(setImmediate);
    assert.equal(await waitingOf(engine, first), 3);
    search.resolve();
    assert.equal(await begun.taken, 2, 'each call once, and no more than a tenant may have');
    await runs.settled();
    assert.equal(await waitingOf(engine, first), 0);
  });

  test('run however many calls of one tenant have waited for longer', async (t) => {
    const { vault, first, second } = await withTwoTenants(t, engine);
    await accept(first);
    await accept(second);
    const columns = 'tenant_id, reactor_id, version, body, created_at, expires_at';
    await engine.run(
      vault.place,
      `insert into reactor_runs (run_id, due_at, ${columns})
        with recursive n (n) as (select 1 union all select n + 1 from n where n < 50001)
        select 'run' || n, due_at - 60000, ${columns} from reactor_runs, n where tenant_id = '${first.id}'`,
    );
    await runsOf(vault).look();
    // It runs while most of the others still wait.
    while ((await waitingOf(engine, second)) > 0) await new Promise(setImmediate);
    assert.ok((await waitingOf(engine, first)) > 1_000);
  });
});

/** A process's calls over a store whose searches in the log of one tenant have no result before that. */
function runsOfHeldSearches(
  vault: TestVault,
  tenant: TenantId,
  {
    until,
    onFailure,
  }: { readonly until: Promise<void>; readonly onFailure: (error: unknown) => void },
): WaitingRuns {
  const { running, clock, place } = vault;
  const tools = running.vault;
  const { reactors, outbound } = configFor(place);
  const store: Store = {
    ...tools.store,
    scan: async (query) => {
      const { sql, parameters } = query(sqliteBuilder).compile();
      if (sql.includes('"logs"') && parameters.includes(tenant)) await until;
      return tools.store.scan(query, 'vault');
    },
  };
  return createWaitingRuns({
    ...tools,
    store,
    clock,
    // Such calls end at once, and are done.
    code: openCode({
      ...reactors,
      isOn: false,
      isolation: undefined,
      log: tools.log,
      processes: processBudget(createBudgetMemory(memoryOfVault()), 0),
    }),
    forward: createForward({ ...outbound, vaultName: 'strongroom-0000000000000000' }),
    admitLog: createAdmitLog(clock),
    storedBytes: createStoredBytes({ store, clock }),
    openEncrypted: createOpenEncrypted({ store, clock }),
    ...tokenReaders,
    onMaskFailure: () => undefined,
    onFailure,
  });
}
