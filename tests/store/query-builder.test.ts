/** Queries whose text is made once: each engine gets its limits in the form in which it prepares a statement once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Instant, parseInstant } from '../../src/base/clock.ts';
import { prepared } from '../../src/store/prepared.ts';
import { postgresBuilder, sqliteBuilder } from '../../src/store/query-builder.ts';

const firstTenants = (builder: typeof sqliteBuilder, limit: number) =>
  builder.selectFrom('tenants').select('tenant_id').limit(limit).compile();

test('on the embedded engine no statement binds its limit, for which SQLite would prepare it each time', () => {
  const { sql, parameters } = firstTenants(sqliteBuilder, 7);
  assert.match(sql, / limit 7$/);
  assert.deepEqual(parameters, []);
});

test('on PostgreSQL one statement serves every limit', () => {
  assert.equal(firstTenants(postgresBuilder, 7).sql, firstTenants(postgresBuilder, 8).sql);
});

test('a limit that is no integer makes no statement', () => {
  assert.throws(() => firstTenants(sqliteBuilder, 0.5), TypeError);
  assert.throws(() => firstTenants(sqliteBuilder, Number.NaN), TypeError);
});

test('a prepared query is built once for each engine, and has the values of its call alone', () => {
  let built = 0;
  const named = prepared<{ readonly type: string; readonly since: Instant }, unknown>(
    (placeOf) => (db) => {
      built += 1;
      return db
        .selectFrom('tokens')
        .select('token_id')
        .where('type', '=', placeOf('type'))
        .where('created_at', '>', placeOf('since'))
        .where('type', '<>', 'card');
    },
    'tokens of a type',
  );
  const first = named({ type: 'a', since: parseInstant(1) });
  const second = named({ type: 'b', since: parseInstant(2) });
  assert.equal(first.statement, 'tokens of a type');
  for (const builder of [sqliteBuilder, postgresBuilder, sqliteBuilder]) {
    assert.deepEqual(second(builder).compile().parameters, ['b', 2, 'card']);
    assert.deepEqual(first(builder).compile().parameters, ['a', 1, 'card']);
    assert.equal(first(builder).compile().sql, second(builder).compile().sql);
  }
  assert.equal(built, 2);
});
