/** A copy of a vault goes on where it was interrupted, and follows what changes in its source. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allTables } from '../../src/store/copying/copy-database.ts';
import { takeDatabase } from '../../src/store/copying/postgres-target.ts';
import { copyChanges, type RowCopying, walkRows } from '../../src/store/copying/rows.ts';
import {
  beginJournal,
  type CopySource,
  type DatabaseAddress,
  endJournal,
  readOutgoing,
  takeServed,
} from '../../src/store/copying/source.ts';
import { takeDirectory } from '../../src/store/copying/sqlite-target.ts';
import type { CopyTarget } from '../../src/store/copying/target.ts';
import { notOnCitus } from '../support/citus-cluster.ts';
import { type Engine, engineOf, onBothEngines, type Place } from '../support/engines.ts';
import { environmentOf, runProcess } from '../support/process.ts';
import type { Lender } from '../support/temporary.ts';

const everything = { tables: allTables, tenant: undefined };

const addressOf = ({ databaseUrl, dataDir }: Place): DatabaseAddress =>
  databaseUrl === undefined ? { dataDir } : { databaseUrl };

const find = ({ databaseUrl, dataDir }: Place, copy: string, begin = false) =>
  databaseUrl === undefined
    ? takeDirectory(dataDir, { copy, begin })
    : takeDatabase(databaseUrl, { copy, begin });

async function take(place: Place, copy: string): Promise<CopyTarget> {
  const target = await find(place, copy, true);
  assert.ok(target);
  return target;
}

async function sourceWith(t: Lender, engine: Engine, rows: number) {
  const place = await engine.migrated(t);
  await engine.run(
    place,
    `insert into due_work (tenant_id, work, due_at)
      with recursive n (i) as (select 1 union all select i + 1 from n where i < ${rows})
      select 'tenant', 'checkpoint', i from n`,
  );
  const source = await takeServed(addressOf(place));
  t.after(() => source.release());
  return { place, source };
}

async function dueTimes(target: CopyTarget): Promise<number[]> {
  const rows = await target.database.rows('select due_at from due_work order by due_at');
  return rows.map(([at]) => Number(at));
}

const upTo = (count: number) => Array.from({ length: count }, (_, at) => at + 1);

onBothEngines('a copy of a vault', (engine) => {
  const skip = engine.name === 'postgres' && notOnCitus('has no triggers on distributed tables');

  test('goes on with the row after the last one that was copied', { skip }, async (t) => {
    const { source } = await sourceWith(t, engine, 2_000);
    const to = engineOf(engine.name === 'sqlite' ? 'postgres' : 'sqlite');
    const place = await to.place(t);
    const first = await take(place, 'one');
    const stop = new Error('interrupted');
    let copied = 0;
    const interrupted = walkRows({ ...everything, source: source.database, target: first }, (n) => {
      copied = n;
      if (n > 500) throw stop;
    });
    await assert.rejects(interrupted, stop);
    await first.release();
    const refused = await runProcess(['serve'], environmentOf(place));
    assert.notEqual(refused.code, 0);
    assert.match(refused.stdout + refused.stderr, /did not finish/);

    assert.equal(await find(place, 'another'), undefined, 'to look for a copy begins none');
    const again = await take(place, 'one');
    assert.ok(again.isResumed && !first.isResumed);
    const reports: number[] = [];
    await walkRows({ ...everything, source: source.database, target: again }, (n) => {
      reports.push(n);
    });
    assert.ok(Math.min(...reports) > copied, 'no row is copied twice');
    assert.deepEqual(await dueTimes(again), upTo(2_000));
    await again.release();

    const other = await take(place, 'another');
    t.after(() => other.release());
    assert.equal(other.isResumed, false);
    assert.deepEqual(await dueTimes(other), [], 'what another copy left is removed');
  });

  test('becomes what its source is by the notes of its changes', { skip }, async (t) => {
    const { place, source } = await sourceWith(t, engine, 300);
    await beginJournal(source.database, everything, 'one');
    const target = await take(await engine.place(t), 'one');
    t.after(() => target.release());
    const copying: RowCopying = { ...everything, source: source.database, target };
    await walkRows(copying, () => undefined);
    await engine.run(place, 'delete from due_work where due_at > 200');
    await engine.run(place, 'update due_work set due_at = due_at + 1000 where due_at = 7');
    await engine.run(place, "insert into due_work values ('tenant', 'checkpoint', 201)");
    assert.equal(await copyChanges(copying), 102, 'each row counts once');
    const expected = [...upTo(201).filter((at) => at !== 7), 1_007];
    assert.deepEqual(await dueTimes(target), expected);
    assert.equal(await copyChanges(copying), 0, 'what was copied is noted no more');
    await ended(engine, place, source);
  });
});

/** An abandoned copy leaves nothing behind, and the source goes on. */
async function ended(engine: Engine, place: Place, { database }: CopySource): Promise<void> {
  assert.equal((await readOutgoing(database))?.id, 'one');
  await endJournal(database, everything);
  assert.equal(await readOutgoing(database), undefined);
  await engine.run(place, "insert into due_work values ('tenant', 'checkpoint', 202)");
  const left =
    engine.name === 'sqlite'
      ? "select name from sqlite_schema where name like '%changed_%'"
      : "select relname from pg_class where relname like '%changed_%'";
  assert.deepEqual(await engine.run(place, left), []);
}
