/** A read that is in the way of the scrub delays it, and is a failure only when it lasts. */
import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { scrubAttemptsMax } from '../../../src/runtime/jobs/scrub.ts';
import { databaseFile } from '../../../src/store/sqlite/database.ts';
import { engineOf } from '../../support/engines.ts';
import { runJob } from '../../support/jobs.ts';
import { newTenant } from '../../support/tenant.ts';
import { startVault } from '../../support/vault.ts';

for (const [says, pausesMax] of [
  ['until the last attempt', scrubAttemptsMax - 1],
  ['for longer', Number.POSITIVE_INFINITY],
] as const) {
  test(`the embedded engine is scrubbed where its log is read ${says}`, async (t) => {
    const vault = await startVault(t, engineOf('sqlite'));
    const reader = new DatabaseSync(databaseFile(vault.place.dataDir), { readOnly: true });
    t.after(() => reader.close());
    reader.exec('begin');
    reader.prepare('select count(*) from tokens').get();
    await (await newTenant(vault)).token({ type: 'token', data: 'written after the read began' });
    let pauses = 0;
    const pause = async () => {
      pauses += 1;
      if (pauses === pausesMax) reader.exec('rollback');
    };
    const run = runJob(vault, 'scrub the store', { timer: { now: () => 0, pause } });
    if (pausesMax === Number.POSITIVE_INFINITY) await assert.rejects(run, { code: 'unavailable' });
    else assert.equal(await run, 0);
    assert.equal(pauses, scrubAttemptsMax - 1);
  });
}
