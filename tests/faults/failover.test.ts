/** A database server that dies, and a standby that is promoted: the vault goes over to it by itself. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { engineOf } from '../support/engines.ts';
import { createHistory } from '../support/history.ts';
import { checkHistory } from '../support/history-check.ts';
import { type HostState, untilHostsAre } from '../support/host-metrics.ts';
import { environmentOf, runCommand, spawnVault, untilReady } from '../support/process.ts';
import { seeded } from '../support/random.ts';
import { startPair } from '../support/standby.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { createApplication } from '../support/vault.ts';

const workers = 8;
const answersMax = 120;

test('kill -9 of the primary: after the promotion the vault serves again and has lost nothing', async (t) => {
  const below = seeded(t);
  const pair = await startPair(t);
  const database = await pair.createDatabase();
  const dataDir = temporaryDirectory(t);
  const databaseUrl = pair.urlOf(database, [pair.primary, pair.standby]);
  const environment = environmentOf({ databaseUrl, dataDir });
  const vault = await spawnVault(t, environment);
  const key = await createApplication(vault.url);
  const history = createHistory({ url: () => vault.url, key, below });

  let left = answersMax + below(answersMax);
  let refusals = 0;
  let served = 0;
  let isPromoted = false;
  let failover: Promise<void> | undefined;
  const [primary, standby] = [pair.primary, pair.standby].map(({ url }) => new URL(url).host);
  const untilHosts = (first: HostState, second: HostState) =>
    untilHostsAre(vault.url, { [primary ?? '']: first, [standby ?? '']: second });
  await untilHosts('writable', 'up');
  const fail = async () => {
    await pair.primary.kill();
    await untilReady(vault.url, 503);
    await untilHosts('down', 'up');
    await pair.promote();
    await untilReady(vault.url);
    isPromoted = true;
  };
  await history.work(workers, (answered) => {
    left -= 1;
    if (left === 0) failover = fail();
    assert.ok(answered, 'the vault answers whatever becomes of its database');
    if (answered.status < 400) {
      if (isPromoted) served += 1;
      return served < answersMax;
    }
    assert.equal(answered.status, 503, answered.text);
    refusals += 1;
    return true;
  });
  await failover;
  await untilHosts('down', 'writable');
  assert.ok(refusals > 0, 'the database was away');
  const engine = engineOf('postgres');
  await checkHistory(
    engine,
    { databaseUrl: pair.urlOf(database, [pair.standby]), dataDir },
    history,
  );
  const verified = await runCommand(['logs', 'verify', '--state'], environment);
  assert.equal(verified.code, 0, verified.stdout + verified.stderr);
  t.diagnostic(`${history.tokens.length} tokens, ${refusals} refusals`);
});
