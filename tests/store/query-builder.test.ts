import assert from 'node:assert/strict';
import { test } from 'node:test';
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
