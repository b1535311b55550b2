/** A Citus coordinator whose connections to its workers break: reads go on, and no commit is lost or doubled. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VaultError } from '../../src/base/errors.ts';
import { creation, token } from '../support/changes.ts';
import { execute, isCitus } from '../support/citus-cluster.ts';
import { engineOf } from '../support/engines.ts';
import { sharedPostgres } from '../support/postgres.ts';
import { rowsOf, verifyLog } from '../support/rows.ts';

const engine = engineOf('postgres');
const rounds = 30;

test('connections to workers that break fail no read, and leave no commit in doubt that is repeated', {
  skip: !isCitus() && 'this PostgreSQL has no workers',
}, async (t) => {
  const place = await engine.migrated(t);
  const store = await engine.open(place);
  t.after(() => store.close());
  const { pathname } = new URL(place.databaseUrl ?? '');
  const { workers } = await sharedPostgres();
  const cut = async () => {
    for (const worker of workers) {
      await execute(
        Object.assign(new URL(worker), { pathname }).href,
        `select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and pid <> pg_backend_pid()`,
      );
    }
  };
  const first = token('first');
  assert.deepEqual(await store.commit(creation(first)), {});
  const done = new Set(['first']);
  const inDoubt = new Set<string>();
  const commit = async (id: string): Promise<boolean> => {
    try {
      assert.deepEqual(await store.commit(creation(token(id))), {});
      done.add(id);
      return true;
    } catch (error) {
      assert.equal((error as VaultError).code, 'unavailable');
      inDoubt.add(id);
      return false;
    }
  };
  for (let round = 0; round < rounds; round++) {
    await cut();
    const { tenant_id, token_id } = first;
    assert.equal((await store.get('tokens', { tenant_id, token_id }))?.token_id, 'first');
    const commits = Array.from({ length: 8 }, (_, n) => commit(`t-${round}-${n}`));
    await cut();
    await Promise.all(commits);
  }
  let last = 0;
  while (!(await commit(`last-${last}`))) last++;
  const ids = (await rowsOf(engine, place, 'tokens')).map(({ token_id }) => String(token_id));
  assert.deepEqual(
    [...done].filter((id) => !ids.includes(id)),
    [],
  );
  assert.deepEqual(
    ids.filter((id) => !done.has(id) && !inDoubt.has(id)),
    [],
  );
  const entries = await verifyLog(engine, place);
  assert.equal(entries.length, ids.length, 'as many entries of creation as tokens');
});
