/** What jobs remove of several tenants: no change has rows of two, as a distributed database demands. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day, instantAfter } from '../../../src/base/clock.ts';
import { checkpointJob } from '../../../src/runtime/jobs/jobs.ts';
import type { Bookkeeping } from '../../../src/store/change.ts';
import { onBothEngines } from '../../support/engines.ts';
import { runJob } from '../../support/jobs.ts';
import { newTenant } from '../../support/tenant.ts';
import { startVault } from '../../support/vault.ts';

onBothEngines('Notes of what is due', (engine) => {
  for (const [work, job] of [
    ['checkpoint', checkpointJob],
    ['deliveries', 'remove old events'],
  ] as const) {
    test(`of ${work} are removed tenant by tenant`, async (t) => {
      const vault = await startVault(t, engine);
      const tenants = [await newTenant(vault), await newTenant(vault)];
      const { store, clock } = vault.running.vault;
      const due_at = instantAfter(clock.now(), -day);
      const notes = tenants.map(({ id }) => ({ tenant_id: id, work, due_at }));
      await store.record({ insert: { due_work: notes } });
      const removed: string[][] = [];
      const record = (change: Bookkeeping) => {
        const rows = change.remove?.due_work ?? [];
        if (rows.length > 0) removed.push(rows.map(({ tenant_id }) => tenant_id));
        return store.record(change);
      };
      const observed = { ...vault.running.vault, store: { ...store, record } };
      await runJob({ ...vault, running: { ...vault.running, vault: observed } }, job);
      assert.deepEqual(removed.sort(), tenants.map(({ id }) => [id]).sort());
      for (const { rows } of tenants) {
        const left = (await rows('due_work')).filter((note) => note.due_at === due_at);
        assert.deepEqual(left, []);
      }
    });
  }
});
