/** Servers of neighbouring releases on one database: a migration expands, and contracts later. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { ColumnTypes } from '../../src/store/migrations/column-types.ts';
import { type Migration, released, schemaVersion } from '../../src/store/migrations/migrate.ts';
import { openPostgres } from '../../src/store/postgres/engine.ts';
import { shapes, type Table } from '../../src/store/tables.ts';
import { engineOf, type Place } from '../support/engines.ts';
import { createHistory } from '../support/history.ts';
import { checkHistory } from '../support/history-check.ts';
import { environmentOf, runCommand, spawnVault, untilReady } from '../support/process.ts';
import { seeded } from '../support/random.ts';
import { createApplication } from '../support/vault.ts';

const engine = engineOf('postgres');
const workers = 4;
const responsesMax = 100;

/** What the next release might add: a column everywhere, a table, an index. */
const expanding: Migration = {
  statements: () => [
    ...(Object.keys(shapes) as Table[]).map((name) => `alter table ${name} add column later text`),
    'create table later_things (tenant_id text not null primary key)',
    'create index tokens_later on tokens (later)',
  ],
  oldestServer: schemaVersion,
};
/** What the release after that may do, when no server of this one is left. */
const contracting: Migration = {
  statements: () => ['alter table tokens drop column later'],
  oldestServer: schemaVersion + 1,
};

/** A server of a later release, as far as its migrations go. */
function openLater({ databaseUrl = '', dataDir }: Place, migrations: readonly Migration[]) {
  return openPostgres(databaseUrl, { databaseUrl, dataDir, newStreamId: randomUUID }, [
    ...released,
    ...migrations,
  ]);
}

test('servers of neighbouring releases serve one database through a migration, until it contracts', async (t) => {
  const below = seeded(t);
  const place = await engine.place(t);
  const environment = environmentOf(place);
  const vault = await spawnVault(t, environment);
  const key = await createApplication(vault.url);
  let url = vault.url;
  const history = createHistory({ url: () => url, key, below });
  let left = responsesMax;
  let later: ReturnType<typeof openLater> | undefined;
  await history.work(workers, (answered) => {
    left -= 1;
    if (left === responsesMax / 2) later = openLater(place, [expanding]);
    assert.ok(answered);
    assert.ok(answered.status < 400, answered.text);
    return left > 0;
  });
  const newer = await later;
  assert.ok(newer);
  t.after(() => newer.close());
  const [state] = await engine.run(place, 'select version, oldest_server from schema_version');
  assert.deepEqual(
    [Number(state?.['version']), Number(state?.['oldest_server'])],
    [schemaVersion + 1, schemaVersion],
  );
  await newer.ping();

  // A server of the release before may even start now, as one does that was restarted on the way.
  const restarted = await spawnVault(t, environment);
  url = restarted.url;
  left = responsesMax;
  await history.work(workers, (answered) => {
    left -= 1;
    assert.ok(answered);
    assert.ok(answered.status < 400, answered.text);
    return left > 0;
  });
  await untilReady(vault.url);
  await checkHistory(engine, place, history);
  const verified = await runCommand(['logs', 'verify', '--state'], environment);
  assert.equal(verified.code, 0, verified.stdout + verified.stderr);

  const newest = await openLater(place, [expanding, contracting]);
  t.after(() => newest.close());
  await newest.ping();
  await newer.ping();
  await untilReady(vault.url, 503);
  const refused = await runCommand(['serve'], environment);
  assert.equal(refused.code, 1);
  const needs = `needs a server of schema version ${schemaVersion + 1}`;
  const says = `schema version ${schemaVersion + 2}, which ${needs}`;
  assert.ok(refused.stderr.includes(says), refused.stderr);
  assert.match(refused.stderr, new RegExp(`this release knows ${schemaVersion}\\.`));
});

/** What a server that does not know of it would notice. A new column may be left out by who inserts a row. */
const noticeable = [
  /\b(?:drop|rename|truncate|delete|update)\b/i,
  /\b(?:alter column|add constraint)\b/i,
  /\badd column (?!.*\bdefault\b).*\bnot null\b/is,
  /^create unique index/i,
];
/** A trigger or a function takes nothing away: what it writes is in a table that older servers do not know. */
const isCode = /^(?:create (?:or replace )?(?:trigger|function))\b|^do \$/;
const isNoticed = (statement: string) =>
  !isCode.test(statement) && noticeable.some((form) => form.test(statement));

test('a released migration expands, or names the servers that it leaves behind', () => {
  const types = new Proxy(
    {},
    {
      get: (_, name) => (name === 'keyCovers' ? () => '' : 'text'),
    },
  ) as ColumnTypes;
  let oldest = 1;
  for (const [index, { statements, oldestServer }] of released.entries()) {
    const version = index + 1;
    assert.ok(oldestServer >= oldest && oldestServer <= version, `migration ${version}`);
    if (index > 0) assert.ok(oldestServer < version, `migration ${version} stops its neighbour`);
    const isSeen = index > 0 && statements(types).some(isNoticed);
    if (isSeen) assert.ok(oldestServer > oldest, `migration ${version} does more than expand`);
    oldest = oldestServer;
  }
  assert.ok(!expanding.statements(types).some(isNoticed));
  assert.ok(contracting.statements(types).every(isNoticed));
  assert.ok(isNoticed('alter table tokens add column a text not null'));
  assert.ok(!isNoticed("alter table tokens add column a text not null default ''"));
});
