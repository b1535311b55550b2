/** Who can write to the database makes no code run that has run, whichever row of its call is put back. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { minute, parseInstant } from '../../src/base/clock.ts';
import { leaseMsMax } from '../../src/reactors/calls/called-reactor.ts';
import { blocksPerQuery, isWrittenBack } from '../../src/reactors/calls/written-back.ts';
import type { Query } from '../../src/store/store.ts';
import type { Unread } from '../../src/store/stored-row.ts';
import type { Row } from '../../src/store/tables.ts';
import { forgedBlocks } from '../support/blocks.ts';
import { type Engine, onBothEngines } from '../support/engines.ts';
import { environmentOf, runCommand } from '../support/process.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { createReactor, invoker, sendReactor, takeDue } from '../support/reactors.ts';
import { insertion } from '../support/sql.ts';
import type { Lender } from '../support/temporary.ts';
import { newTenant, type TestTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

const { destination, url, environment } = await startCalled({ after });

const asking = `module.exports = async ({ args }) => ({ raw: (await fetch(args.url)).status })`;

interface Called {
  readonly tenant: TestTenant;
  /** The rows of its first call, as they were after it was accepted, begun and done. */
  readonly versions: readonly Row<'reactor_runs'>[];
  readonly key: string;
  readonly path: string;
  readonly reactor: string;
}

async function called(t: Lender, engine: Engine): Promise<Called> {
  const vault = await startVault(t, engine, { environment });
  const tenant = await newTenant(vault);
  const key = await invoker(tenant);
  const { id } = await createReactor(tenant, { code: asking, runtime: { timeout: 20 } });
  const sent = { key, body: { args: { url } } };
  const { body } = await tenant.send('POST', `/reactors/${id}/react-async`, sent);
  const versions: Row<'reactor_runs'>[] = [];
  const note = async () => {
    const [row] = await tenant.rows('reactor_runs');
    assert.ok(row);
    versions.push(row);
  };
  await note();
  destination.behave(async ({ response }) => {
    await note();
    response.end();
  });
  await run(tenant);
  await note();
  assert.deepEqual(
    versions.map(({ version }) => version),
    [1, 2, 3],
  );
  const path = `/reactors/${id}/results/${body.asyncReactorRequestId}`;
  assert.equal((await tenant.send('GET', path, { key })).status, 200);
  destination.behave(({ response }) => void response.end());
  return { tenant, versions, key, path, reactor: id };
}

async function run({ vault }: TestTenant): Promise<number> {
  const { reactorRuns } = vault.running.vault;
  assert.ok(reactorRuns);
  const begun = await takeDue(reactorRuns);
  await reactorRuns.settled();
  return begun;
}

/** @param onScan called with each query that goes through the log. */
async function knownOf({ vault, id }: TestTenant, onScan = () => {}) {
  const { store, tenants } = vault.running.vault;
  const found = await tenants.find(id);
  assert.ok(found);
  const counting = {
    select: store.select,
    scan: <R>(query: Query<R> & Unread<R>) => {
      onScan();
      return store.scan(query, 'vault');
    },
  };
  return (row: Row<'reactor_runs'>) => isWrittenBack(counting, found, row);
}

async function findings({ vault: { place } }: TestTenant): Promise<string[]> {
  const words = ['logs', 'verify', '--state', '--json'];
  const { stdout, stderr } = await runCommand(words, environmentOf(place));
  assert.ok(stdout.startsWith('{'), stderr);
  const found: { kind: string; entity_type: string; id: string }[] = JSON.parse(stdout).findings;
  return found.map(({ kind, entity_type, id }) => `${kind} ${entity_type} ${id}`);
}

onBothEngines('a call of a reactor that has run', (engine) => {
  for (const [at, name] of ['was accepted', 'was begun'].entries()) {
    test(`is not run again when its row is put back as it ${name}, and is named`, async (t) => {
      const { tenant, versions, key, path } = await called(t, engine);
      const { place, clock, logged } = tenant.vault;
      const row = versions[at];
      assert.ok(row);
      const requests = destination.requests.length;
      await engine.run(place, 'delete from reactor_runs');
      await engine.run(place, insertion(engine, 'reactor_runs', row));
      assert.deepEqual(await findings(tenant), [`restored reactor_run ${row.run_id}`]);
      // Later than its lease.
      clock.advance(minute);
      assert.equal(await run(tenant), 0);
      assert.equal(destination.requests.length, requests);
      assert.deepEqual(await tenant.rows('reactor_runs'), []);
      assert.equal((await tenant.send('GET', path, { key })).status, 404);
      const last = (await tenant.rows('logs')).findLast(({ operation }) => operation === 'fail');
      assert.equal(last?.entity_id, row.run_id);
      assert.match(last?.message ?? '', /altered outside the vault/);
      assert.ok(logged.some(({ fields }) => /written back/.test(String(fields?.['reason']))));
      // Its result is gone, which the log says was there.
      assert.deepEqual(await findings(tenant), [`missing reactor_run ${row.run_id}`]);
    });
  }

  test('is known by what was logged up to five minutes before its row can have been made', async (t) => {
    const { tenant, versions } = await called(t, engine);
    const [row] = versions;
    assert.ok(row);
    const isKnown = await knownOf(tenant);
    const entries = await tenant.rows('logs');
    const end = entries.findLast(({ entity_id }) => entity_id === row.run_id)?.created_at ?? 0;
    const madeAt = (ms: number, leaseMs = 0) => {
      const created_at = parseInstant(end + ms);
      return {
        ...row,
        created_at: leaseMs ? row.created_at : created_at,
        due_at: parseInstant(end + ms + leaseMs),
      };
    };
    assert.equal(await isKnown(madeAt(5 * minute)), true);
    assert.equal(await isKnown(madeAt(5 * minute + 1)), false);
    assert.equal(await isKnown(madeAt(5 * minute, leaseMsMax)), true);
    assert.equal(await isKnown(madeAt(5 * minute + 1, leaseMsMax)), false);
  });

  test('is known however much was logged since, and no query goes through all of that', async (t) => {
    const { tenant, versions } = await called(t, engine);
    const [row] = versions;
    assert.ok(row);
    const { place } = tenant.vault;
    const columns = 'tenant_id, first_at, hash, proof, body';
    await engine.run(
      place,
      `insert into logs (stream_id, first_seq, last_seq, last_at, entities, ${columns})
        with recursive n (n) as (select 1 union all select n + 1 from n where n < ${2 * blocksPerQuery})
        select 'other', n, n, at + n, '', ${columns} from n,
          (select max(last_at) as at from logs where tenant_id = '${tenant.id}') newest,
          (select ${columns} from logs where tenant_id = '${tenant.id}' limit 1) block`,
    );
    let queries = 0;
    const isKnown = await knownOf(tenant, () => {
      queries += 1;
    });
    assert.equal(await isKnown(row), true);
    assert.ok(queries >= 4, `${queries} queries, two for each part`);
  });

  test('is known however much was added about it outside the vault, or read of it', async (t) => {
    const { tenant, versions } = await called(t, engine);
    const [row] = versions;
    assert.ok(row);
    const { place, running, clock } = tenant.vault;
    const isKnown = await knownOf(tenant);
    clock.advance(minute);
    const about = (await tenant.rows('logs')).find(({ entity_id }) => entity_id === row.run_id);
    assert.ok(about);
    const read = { ...about, created_at: clock.now(), operation: 'read', state: null };
    const many = Array.from({ length: 60 }, () => read);
    for (const block of forgedBlocks('other', many)) {
      await engine.run(place, insertion(engine, 'logs', block));
    }
    assert.equal(await isKnown(row), true);
    // Of the vault's own there are more than it looks at together.
    const more = Array.from({ length: 600 }, () => read);
    await running.vault.store.commit({ entries: [read, ...more] });
    assert.equal(await isKnown(row), true);
  });

  test('is known by nothing that was added outside the vault', async (t) => {
    const { tenant, versions } = await called(t, engine);
    const [row] = versions;
    assert.ok(row);
    const { place } = tenant.vault;
    const entries = await tenant.rows('logs');
    const begun = entries.find(
      ({ entity_id, state }) => entity_id === row.run_id && state?.startsWith('=2'),
    );
    assert.ok(begun);
    await engine.run(place, `delete from logs where tenant_id = '${tenant.id}'`);
    for (const block of forgedBlocks('other', [begun])) {
      await engine.run(place, insertion(engine, 'logs', block));
    }
    assert.equal(await (await knownOf(tenant))(row), false);
  });

  test('does not keep a call of its own from being run', async (t) => {
    const { tenant, versions } = await called(t, engine);
    const [row] = versions;
    assert.ok(row);
    const requests = destination.requests.length;
    const key = await invoker(tenant);
    await engine.run(tenant.vault.place, 'delete from reactor_runs');
    await engine.run(tenant.vault.place, insertion(engine, 'reactor_runs', row));
    const other = await createReactor(tenant, { code: asking, runtime: { timeout: 20 } });
    const sent = { key, body: { args: { url } } };
    await tenant.send('POST', `/reactors/${other.id}/react-async`, sent);
    await run(tenant);
    assert.equal(destination.requests.length, requests + 1, 'a call of its own still runs');
  });

  test('is not missing once its reactor was deleted', async (t) => {
    const { tenant, reactor } = await called(t, engine);
    assert.equal((await sendReactor(tenant, 'DELETE', `/${reactor}`)).status, 204);
    assert.deepEqual(await tenant.rows('reactor_runs'), []);
    assert.deepEqual(await findings(tenant), []);
  });

  test('is missing where its row was taken away while it waited', async (t) => {
    const { tenant, key, reactor } = await called(t, engine);
    const sent = { key, body: { args: { url } } };
    const { body } = await tenant.send('POST', `/reactors/${reactor}/react-async`, sent);
    const id = body.asyncReactorRequestId;
    await engine.run(tenant.vault.place, `delete from reactor_runs where run_id = '${id}'`);
    assert.deepEqual(await findings(tenant), [`missing reactor_run ${id}`]);
  });
});
