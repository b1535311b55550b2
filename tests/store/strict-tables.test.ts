/** The embedded engine stores values of a column's type alone, as PostgreSQL does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shapes } from '../../src/store/tables.ts';
import { engineOf } from '../support/engines.ts';

test('every table of the embedded database is strict', async (t) => {
  const engine = engineOf('sqlite');
  const place = await engine.place(t);
  await (await engine.open(place)).close();
  const listed = await engine.run(place, 'pragma table_list');
  const tables = listed.filter(({ name }) => !String(name).startsWith('sqlite_'));
  const names = tables.map(({ name }) => String(name));
  for (const name of [...Object.keys(shapes), 'schema_version', 'rate_limits']) {
    assert.ok(names.includes(name), name);
  }
  assert.deepEqual(
    tables.filter(({ strict }) => strict !== 1).map(({ name }) => name),
    [],
  );
  for (const value of ["'text'", '1.5', "x'00'"]) {
    const planted = `insert into schema_version (version) values (${value})`;
    await assert.rejects(engine.run(place, planted), /cannot store \w+ value in INTEGER column/);
  }
});
