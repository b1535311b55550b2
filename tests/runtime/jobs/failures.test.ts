/** Jobs that fail are counted for the operator, who may look at nothing but the metrics. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../../support/engines.ts';
import { startVault, type TestVault } from '../../support/vault.ts';

async function failuresOf(vault: TestVault): Promise<number> {
  const { text } = await vault.send('GET', '/metrics');
  const [, count] = /^strongroom_job_failures_total (\d+)$/m.exec(text) ?? [];
  return Number(count);
}

onBothEngines('strongroom_job_failures_total', (engine) => {
  test('counts the runs that fail, and none where all goes well', async (t) => {
    const first = await startVault(t, engine);
    assert.equal(await failuresOf(first), 0);
    await first.stop();
    await engine.run(first.place, 'alter table checkpoints rename to elsewhere');
    const second = await startVault(t, engine, { place: first.place });
    assert.equal(await failuresOf(second), 1);
    const failed = second.logged.filter(({ message }) => /^a job failed/.test(message));
    assert.deepEqual(
      failed.map(({ fields }) => fields?.job),
      ['sign log checkpoints'],
    );
  });
});
