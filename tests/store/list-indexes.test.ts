/** A page of a list is read in the order of an index, so it takes the time of its own rows. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseInstant } from '../../src/base/clock.ts';
import type { ApplicationId, ReactorId, ReactorRunId, TenantId } from '../../src/base/ids.ts';
import { applicationPage } from '../../src/store/queries/applications.ts';
import { runPage } from '../../src/store/queries/reactors.ts';
import { equalTokenPlaces, equalTokens } from '../../src/store/queries/tokens.ts';
import { sqliteBuilder } from '../../src/store/query-builder.ts';
import type { Query } from '../../src/store/store.ts';
import { engineOf } from '../support/engines.ts';

const tenant = '' as TenantId;
const at = parseInstant(1);
const limit = 20;
const ofReactor = { tenant, reactor: '' as ReactorId, now: at, limit } as const;
const ofTenant = { tenant, ids: undefined, kinds: undefined, limit, skip: 0 } as const;

const pages: readonly (readonly [index: string, page: Query<object>])[] = [
  ['applications_by_creation', applicationPage({ ...ofTenant, after: undefined })],
  ['applications_by_creation', applicationPage({ ...ofTenant, after: [at, '' as ApplicationId] })],
  ['reactor_versions', runPage({ ...ofReactor, after: undefined, kept: 'versions' })],
  [
    'reactor_versions',
    runPage({ ...ofReactor, after: [at, '' as ReactorRunId], kept: 'versions' }),
  ],
  ['reactor_runs_by_owner', runPage({ ...ofReactor, after: undefined, kept: 'calls' })],
];

test('pages of applications, versions of reactors, and calls sort nothing', async (t) => {
  const sqlite = engineOf('sqlite');
  const place = await sqlite.migrated(t);
  for (const [index, page] of pages) {
    const { sql } = page(sqliteBuilder).compile();
    const plan = await sqlite.run(place, `explain query plan ${sql}`);
    const steps = plan.map(({ detail }) => String(detail)).join('\n');
    assert.match(steps, new RegExp(`USING INDEX ${index} \\(`), steps);
    assert.doesNotMatch(steps, /TEMP B-TREE/, steps);
  }
});

test('of the tokens that are equal, however many, some are looked at and none is sorted for it', async (t) => {
  const sqlite = engineOf('sqlite');
  const place = await sqlite.migrated(t);
  const wanted = [{ fingerprint: 'f', expression: '{{ data }}', ofType: true }];
  for (const query of [equalTokens(tenant, wanted), equalTokenPlaces(tenant, ['f', 'g'])]) {
    const { sql } = query(sqliteBuilder).compile();
    const plan = await sqlite.run(place, `explain query plan ${sql}`);
    const steps = plan.map(({ detail }) => String(detail)).join('\n');
    // Parts with a limit are co-routines, each of which ends where its rows are read.
    const limited = [...steps.matchAll(/CO-ROUTINE equal\n(.*?)SCAN equal/gs)].map(
      ([, one]) => one,
    );
    assert.ok(limited.length > 0, steps);
    for (const one of limited) {
      assert.match(
        one ?? '',
        /^SEARCH tokens USING (?:COVERING )?INDEX tokens_(?:by_)?fingerprint \(/,
      );
      assert.doesNotMatch(one ?? '', /TEMP B-TREE/, steps);
    }
    assert.match(steps, /SEARCH tokens USING INDEX tokens_fingerprint \(/, steps);
  }
});
