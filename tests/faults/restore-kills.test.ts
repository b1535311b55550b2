/** kill -9 at any moment of a restore: nothing half is served, and the next restore brings everything. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backedUp, filledVault, restore, rowsIn } from '../support/backups.ts';
import { notOnCitus } from '../support/citus-cluster.ts';
import { onBothEngines } from '../support/engines.ts';
import { nextLook } from '../support/poll.ts';
import { beginCommand, environmentOf, runCommand } from '../support/process.ts';
import { casesOf, seeded } from '../support/random.ts';

/** About as long as a restore takes. */
const killedWithinMs = 1_500;

onBothEngines('a restore that is killed', (engine) => {
  test('leaves a place that is empty, refused or complete', {
    skip: notOnCitus('the vault makes no backups of distributed tables'),
  }, async (t) => {
    const below = seeded(t);
    const vault = await filledVault(t, engine.name);
    const directory = await backedUp(t, vault);
    const before = await rowsIn(vault.engine, vault.place);
    for (let index = 0; index < casesOf({ all: 8, drawn: 3 }); index++) {
      const place = await engine.place(t);
      const environment = environmentOf(place, vault.rootKey);
      const command = beginCommand(t, ['restore', directory], environment);
      const until = performance.now() + below(killedWithinMs);
      while (performance.now() < until) await nextLook();
      await command.kill();
      let again = await restore(directory, place, vault.rootKey);
      // PostgreSQL notices a little later that the client of a session has gone.
      while (/Another restore .* is running/.test(again.stderr)) {
        await nextLook();
        again = await restore(directory, place, vault.rootKey);
      }
      if (again.code !== 0) assert.match(again.stderr, /not empty/, 'the killed one had finished');
      const rows = new Set(await rowsIn(engine, place));
      assert.deepEqual(
        before.filter((row) => !rows.has(row)),
        [],
      );
      const intact = await runCommand(['logs', 'verify', '--state'], environment);
      assert.equal(intact.code, 0, intact.stdout + intact.stderr);
    }
  });
});
