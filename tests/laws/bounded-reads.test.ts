/** What is read on the thread that handles requests is bounded; what is not waits for its turn as a scan. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { committedPaths, readSource } from '../support/source.ts';

/** `store.select` runs between two requests, of whichever tenant, so each of its queries says what bounds it. */
const boundsOf: Readonly<Record<string, readonly string[]>> = {
  'keys of rows, or the newest row': [
    ...['activityIn', 'blockBefore', 'blockEnd', 'checkpointQuery', 'consoleSessionOfId'],
    ...['firstWaiting', 'keyWithId', 'keysWithHashes', 'newestCheckpoint', 'searchTermKeys'],
    ...['searchTermsOf', 'sessionWithNonce', 'tenantNamed', 'tokenStates', 'vaultKeyNamed'],
    ...['claimsOfToken', 'indexedSlots', 'rowsWithIds', 'workOfTenant'],
  ],
  'its limit, in the order of an index': [
    ...['addressesOfKey', 'alteredBlocks', 'anyProductionTenant', 'anyTenant', 'anyWebhook'],
    'approvedForHost',
    ...['blocksAfter', 'blocksBeyond', 'blocksToPush', 'checkpointsAfter', 'claimsOf'],
    ...['deliveriesOf', 'endedConsoleLinks', 'endedConsoleSessions', 'equalTokenPlaces'],
    ...['equalTokens', 'impossibleCounters', 'indexRows', 'logStreams', 'newestPairNames'],
    ...['nextTenantWaiting', 'nextTenantWithLogs', 'occurrencesOf', 'page', 'pageOfTenant'],
    ...['query', 'removalsAfter', 'rowsDue', 'rowsOfTenant', 'sizes', 'streamBeginning'],
    ...['tenantsAfter', 'tenantsOfProvider', 'tokenGroupsOf', 'undispatchedEvents'],
    ...['waitingUpTo', 'wholeTokensOf'],
  ],
  'a quota, or a number that every tenant has at most': [
    ...[
      'approvalsUnderOthers',
      'allPeople',
      'allWebhooks',
      'applicationCount',
      'applicationKeys',
      'consoleLinks',
    ],
    ...['consoleSessions', 'enabledWebhooks', 'hostsOfTenant', 'liveClientKeys', 'peopleCount'],
    ...['proxyCount', 'proxyPage', 'reactorCount', 'removableKeys', 'rotationsOf'],
    ...['signInMethods', 'waitingRunCount', 'webhookCount'],
  ],
  'time: a row for each minute, later for each hour': ['activitySince'],
  'servers and threads: each has a row': ['pushedPlaces', 'storedBytesOf'],
  'the operator, who makes each row and asks for them': [
    ...['allTenants', 'allVaultKeys', 'applicationsOf', 'honeyTokens', 'rootVaultKeys'],
  ],
  'the thread, which delivers and handles no request': ['tenantsWithEvents'],
};

/** What each call of `select` is given first: a query by its name, or what a file calls its own. */
const asked = /\bstore\s*\.select\(\s*(?:await\s+)?(\w+)/g;

test('each query of the thread that handles requests is bounded', () => {
  const files = committedPaths().filter((path) => /^src\/(?!store\/|cli\/).*\.ts$/.test(path));
  const found = files.flatMap((path) =>
    [...readSource(path).code.matchAll(asked)].map(([, name = '']) => ({ path, name })),
  );
  const bounded = new Set(Object.values(boundsOf).flat());
  const unbounded = found.filter(({ name }) => !bounded.has(name));
  assert.deepEqual(unbounded, [], 'say what bounds it, or use `store.scan`');
  const names = new Set(found.map(({ name }) => name));
  assert.deepEqual(
    [...bounded].filter((name) => !names.has(name)),
    [],
    'is not asked any more',
  );
});
