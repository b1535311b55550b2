/** The embedded engine's reads share snapshots within a turn of the event loop, and nobody notices. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import type { TokenId } from '../../src/base/ids.ts';
import { creation, tenant, token } from '../support/changes.ts';
import { engineOf } from '../support/engines.ts';

const keyOf = (id: string) => ({ tenant_id: tenant, token_id: id as TokenId });

/** Runs it once the change is on its way, before the messages of a turn are looked at. */
function amongTimers<T>(run: () => Promise<T>): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  setImmediate(() => setTimeout(() => run().then(resolve, reject)));
  return promise;
}

test('whoever is notified of a commit finds it, whatever was read in the same turn', async (t) => {
  const sqlite = engineOf('sqlite');
  const place = await sqlite.place(t);
  const store = await sqlite.open(place);
  t.after(() => store.close());
  const other = new DatabaseSync(join(place.dataDir, 'strongroom.db'));
  t.after(() => other.close());
  const count = other.prepare('select count(*) as count from tokens');

  other.exec('begin immediate');
  const committed = store.commit(creation(token('a'))).then(() => store.get('tokens', keyOf('a')));
  // In the turn in which the outcome will arrive; the writer waits for the other connection until then.
  const before = await amongTimers(() => {
    const reads = [store.get('tokens', keyOf('a')), store.get('tokens', keyOf('a'))];
    other.exec('commit');
    while (count.get()?.['count'] === 0);
    return Promise.all(reads);
  });
  assert.deepEqual(before, [undefined, undefined]);
  assert.equal((await committed)?.token_id, 'a');
});

test('a snapshot that is read in does not outlive its store', async (t) => {
  const sqlite = engineOf('sqlite');
  const store = await sqlite.open(await sqlite.place(t));
  await Promise.all([store.get('tokens', keyOf('a')), store.get('tokens', keyOf('a'))]);
  await store.close();
  await new Promise((resolve) => setImmediate(resolve));
});
