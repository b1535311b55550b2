/** What PostgreSQL alone has: one statement for a group, lanes beside each other, sessions that end. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'kysely';
import pg from 'pg';
import { type Change, flatten } from '../../src/store/change.ts';
import { groupMax } from '../../src/store/commit/queue.ts';
import { LogChain } from '../../src/store/log-chain/chain.ts';
import { openStore } from '../../src/store/open/open.ts';
import { createStatements, namedMax } from '../../src/store/postgres/statement.ts';
import { newestCheckpoint } from '../../src/store/queries/log-statements.ts';
import { blocksBeyond, logStreams } from '../../src/store/queries/log-streams.ts';
import type { Query } from '../../src/store/store.ts';
import { type Table, tables } from '../../src/store/tables.ts';
import { creation, entry, tenant, token } from '../support/changes.ts';
import { isCitus } from '../support/citus-cluster.ts';
import { engineOf } from '../support/engines.ts';
import { lockTable } from '../support/locks.ts';
import { rowsOf, verifyLog } from '../support/rows.ts';
import { until } from '../support/standby.ts';

const engine = engineOf('postgres');

test('one conflict in a group costs a few statements, not one for each neighbour', async (t) => {
  const place = await engine.place(t);
  let commits = 0;
  const onCommitted = () => void commits++;
  const store = await openStore({ ...place, newStreamId: randomUUID, onCommitted });
  t.after(() => store.close());
  await store.commit(creation(token('taken')));
  commits = 0;
  const outcomes = await Promise.all(
    Array.from({ length: groupMax.changes }, (_, n) =>
      store.commit(creation(token(n === 99 ? 'taken' : `own-${n}`))),
    ),
  );
  assert.deepEqual(
    outcomes.flatMap((outcome, n) => (outcome.conflict ? [[n, outcome.conflict]] : [])),
    [[99, 'tokens.key']],
  );
  assert.ok(commits <= Math.log2(groupMax.changes), `${commits} commits`);
});

/** Each conflict divides a group into two statements, which take too long for more on Citus and a busy machine. */
const claimsOfRound = isCitus() ? 20 : 200;

/** A deadlock would outlast the time a statement has, and so fail its changes. */
test('servers that write the same rows in opposite order do not wait for each other', async (t) => {
  const place = await engine.place(t);
  const name = new URL(place.databaseUrl ?? '').pathname.slice(1);
  await engine.run(place, `alter database ${name} set deadlock_timeout = '60s'`);
  const [one, two] = await Promise.all([engine.open(place), engine.open(place)]);
  t.after(() => Promise.all([one.close(), two.close()]));
  const rows = Array.from({ length: 200 }, (_, n) => token(`t-${n}`));
  await one.commit({ insert: { tokens: rows }, entries: [entry('t')] });
  for (let version = 2; version < 12; version++) {
    const replaced = rows.map((row) => ({ ...row, version }));
    const replacement = (tokens: typeof rows): Change => ({
      replace: { tokens },
      entries: [entry('t', 'update')],
    });
    const outcomes = await Promise.all([
      one.commit(replacement(replaced)),
      two.commit(replacement(replaced.toReversed())),
    ]);
    assert.equal(outcomes.filter((outcome) => outcome.conflict === undefined).length, 1);
  }
  for (let round = 0; round < 10; round++) {
    const claims = Array.from({ length: claimsOfRound }, (_, n) => `${round} ${n}`);
    const create = (store: typeof one) => (fingerprint: string) =>
      store.commit(creation(token(randomUUID(), { fingerprint, deduplicated: 1 })));
    const outcomes = await Promise.all([
      ...claims.map(create(one)),
      ...claims.toReversed().map(create(two)),
    ]);
    assert.equal(
      outcomes.filter((outcome) => outcome.conflict === undefined).length,
      claims.length,
    );
  }
});

test('a session that the server ends leaves its commit uncertain, whatever the code says', async (t) => {
  const place = await engine.place(t);
  const name = new URL(place.databaseUrl ?? '').pathname.slice(1);
  // The schema is made before, without that limit; what a busy machine commits within it is one row.
  await (await engine.open(place)).close();
  const [server] = await engine.run(
    place,
    `select current_setting('server_version_num')::int as n`,
  );
  const hasTimeout = Number(server?.['n']) >= 170_000;
  const limit = (text: string) =>
    hasTimeout && engine.run(place, `alter database ${name} set transaction_timeout = ${text}`);
  await limit("'2s'");
  const store = await engine.open(place);
  t.after(() => store.close());
  await store.commit(creation(token('a')));
  await limit('0');
  const release = await lockTable(t, place, 'tokens in exclusive mode');
  const commit = assert.rejects(store.commit(creation(token('b'))), (error: Error) => {
    assert.ok(error.cause instanceof pg.DatabaseError);
    const code = hasTimeout ? '25P04' : '57P01';
    assert.deepEqual([error.cause.code, error.cause.severity], [code, 'FATAL']);
    return 'public' in error && /does not know whether/.test(String(error.public));
  });
  if (!hasTimeout) {
    const waiting = `select pid from pg_stat_activity where datname = '${name}' and wait_event_type = 'Lock'`;
    await until(place.databaseUrl ?? '', waiting);
    await engine.run(place, `select pg_terminate_backend(pid) from (${waiting}) waiting`);
  }
  await commit;
  await release();
  assert.deepEqual(await store.commit(creation(token('c'))), {});
  const streams = (await verifyLog(engine, place)).map((row) => row.stream_id);
  assert.equal(new Set(streams).size, 2, 'nobody knows how far the stream of that session came');
});

/** Planning the streams of a log takes four times as long as finding them, for every tenant in every run. */
test('queries that jobs repeat for every tenant are planned once in a session', async (t) => {
  const store = await engine.store(t);
  await store.commit(creation(token('a')));
  const statement = sql<{ name: string }>`select name from pg_prepared_statements order by name`;
  for (let round = 0; round < 2; round++) {
    for (const query of [
      newestCheckpoint(tenant),
      logStreams({ tenant, after: '', streamsMax: 1 }),
      blocksBeyond({ tenant, stream_id: 'none', after: 0 }),
    ] as Query<unknown>[]) {
      await store.select(query);
    }
  }
  const names = await store.select((db) => ({ compile: () => statement.compile(db) }));
  assert.deepEqual(
    names.map(({ name }) => name),
    ['log blocks beyond', 'log streams', 'newest checkpoint'],
  );
});

test('what cannot be written is not sent, and the caller knows that nothing was done', async (t) => {
  const place = await engine.place(t);
  const store = await engine.open(place);
  t.after(() => store.close());
  await store.commit(creation(token('a')));
  const notText = Object.create(null) as string;
  await assert.rejects(store.commit(creation(token('b', { mask: notText }))), {
    code: 'unavailable',
    public: /Nothing was done/,
  });
  assert.deepEqual(await store.commit(creation(token('c'))), {});
  const rows = await rowsOf(engine, place, 'logs');
  assert.deepEqual(
    rows.map((row) => row.seq),
    [1, 2],
    'the connection and its stream go on',
  );
});

test('a value that PostgreSQL does not accept never reaches the log', async (t) => {
  const store = await engine.store(t);
  const secret = 'marker-5f1c';
  const wrong = { created_at: secret as never };
  await assert.rejects(store.commit(creation(token('a', wrong))), (error: Error) => {
    assert.match(error.message, /^PostgreSQL 22P02 /);
    return !error.message.includes(secret);
  });
});

test('the order of rows, changes and tables makes no difference to the statement', () => {
  const statementOf = createStatements();
  const write = (changes: readonly Change[]) => {
    const flat = changes.map(flatten);
    const { text, values } = statementOf(flat, new LogChain('stream').continue(flat));
    // Entries are written in their own order.
    const logged = Number(/insert into logs [^$]*\$(\d+)/.exec(text)?.[1]) - 1;
    return { text, values: values.toSpliced(logged, Object.keys(tables.logs.columns).length) };
  };
  const claims = ['z', 'a', 'm'].map((fingerprint, n) =>
    creation(token(`t-${n}`, { fingerprint, deduplicated: 1 })),
  );
  assert.deepEqual(write(claims), write(claims.toReversed()));
  const tokens = [token('b', { version: 2 }), token('a', { version: 2 })];
  const replacement = (rows: typeof tokens): Change => ({
    replace: { tokens: rows },
    entries: [entry('a')],
  });
  assert.deepEqual(write([replacement(tokens)]), write([replacement(tokens.toReversed())]));
});

test('a change is done in the order of the schema, however it was written', () => {
  const reversed = Object.fromEntries(
    Object.keys(tables)
      .reverse()
      .map((table) => [table, [{}]]),
  );
  const change = { insert: reversed, entries: [entry('a')] } as unknown as Change;
  const order = flatten(change).operations.map((operation) => operation.table);
  assert.deepEqual(order, Object.keys(tables));
});

test('the server keeps plans of statements that come again, and of a bounded number', () => {
  const statementOf = createStatements();
  const insertable = (Object.keys(tables) as Table[]).filter((table) => table !== 'logs');
  const shape = (n: number): Change => {
    const chosen = insertable.filter((_, bit) => (n >> bit) % 2 === 1);
    const insert = Object.fromEntries(chosen.map((table) => [table, [{}]]));
    return { insert, entries: [entry('a')] } as unknown as Change;
  };
  const nameOf = (n: number) => {
    const flat = [flatten(shape(n))];
    return statementOf(flat, new LogChain('stream').continue(flat)).name;
  };
  assert.equal(nameOf(0), undefined, 'the first time it has no name');
  const names = new Set<string>();
  const shapes = 4 * namedMax;
  assert.ok(shapes < 2 ** insertable.length, 'each of them is another one');
  for (let n = 0; n < shapes; n++) {
    for (let use = 0; use < 6; use++) {
      const name = nameOf(n);
      if (name !== undefined) names.add(name);
    }
  }
  assert.equal(names.size, namedMax);
  assert.ok(names.has(nameOf(0) ?? ''), 'what came early is still known');
});
