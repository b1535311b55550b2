/** A thousand mixed requests and more, and three kills: effects and log entries join without a difference. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { createHistory } from '../support/history.ts';
import { checkHistory } from '../support/history-check.ts';
import { verifyPlace } from '../support/logs.ts';
import { environmentOf, spawnVault } from '../support/process.ts';
import { casesOf, seeded } from '../support/random.ts';
import { createApplication } from '../support/vault.ts';

const requests = casesOf({ all: 3_000, drawn: 1_200 });
const clients = 16;
const kills = 3;

onBothEngines(`${requests} mixed requests of ${clients} clients with ${kills} kills`, (engine) => {
  test('every effect has its entries, every entry its effect, and the log verifies', async (t) => {
    const below = seeded(t);
    const place = await engine.place(t);
    let vault = await spawnVault(t, environmentOf(place));
    const key = await createApplication(vault.url);
    const history = createHistory({ url: () => vault.url, key, below });
    let answers = 0;
    for (let run = 0; run <= kills; run += 1) {
      // The last run ends by itself; in each of the others the vault is killed under way.
      const end =
        Math.ceil((requests * (run + 1)) / (kills + 1)) - (run < kills ? below(requests / 6) : 0);
      await history.work(clients, (answered) => {
        if (answered === undefined) return false;
        answers += 1;
        if (run < kills && answers === end) void vault.kill();
        return run < kills || answers < end;
      });
      if (run === kills) break;
      assert.equal((await vault.finished).code, null, 'killed by the signal');
      vault = await spawnVault(t, environmentOf(place));
    }
    assert.ok(answers >= requests);
    await checkHistory(engine, place, history);
    const { findings, entries, streams } = await verifyPlace(place);
    assert.deepEqual(findings, []);
    assert.ok(entries >= requests && streams > kills);
    t.diagnostic(`${answers} answers, ${entries} entries in ${streams} streams`);
  });
});
