/** Several servers have a PostgreSQL database from which the vault moves: all of them leave it at one moment. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newRootKey } from '../support/backups.ts';
import { emptyPlace, plainPlace } from '../support/copy-places.ts';
import { engineOf, type Place } from '../support/engines.ts';
import { beginHeld } from '../support/held-command.ts';
import { createHistory } from '../support/history.ts';
import { checkHistory } from '../support/history-check.ts';
import { environmentOf, runCommand, runProcess, spawnVault } from '../support/process.ts';
import { seeded } from '../support/random.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { createApplication, request } from '../support/vault.ts';

const workers = 6;
/** In each stage of the move, so that every server has some of them. */
const writesOfStage = 60;

test('each server of a vault serves until it moves, none afterwards, and no acknowledged write is lost', async (t) => {
  const below = seeded(t);
  const postgres = engineOf('postgres');
  const rootKey = newRootKey();
  const source = await plainPlace(t, postgres);
  const target = await emptyPlace(t, postgres);
  /** Of one more server there: each has a directory of its own. */
  const serverAt = ({ databaseUrl = '' }: Place) =>
    environmentOf({ databaseUrl, dataDir: temporaryDirectory(t) }, rootKey);
  const copying = (...flags: readonly string[]) => [
    ...['database', 'copy', '--json', '--from', source.databaseUrl ?? ''],
    ...['--to', target.databaseUrl ?? '', ...flags],
  ];
  const servers = [await spawnVault(t, serverAt(source)), await spawnVault(t, serverAt(source))];
  let served = servers;
  const key = await createApplication(servers[0]?.url ?? '');
  let turn = 0;
  const url = () => served[turn++ % served.length]?.url ?? '';
  const history = createHistory({ url, key, below });
  const writeThrough = async () => {
    let left = writesOfStage;
    await history.work(workers, (response) => {
      assert.ok(response, 'every server responds');
      assert.ok(response.status < 500, response.text);
      return left-- > 0;
    });
  };
  await writeThrough();

  const still = await runCommand(copying(), rootKey);
  assert.equal(still.code, 1);
  assert.match(still.stderr, /Stop all servers first, or copy with --live/);
  const move = beginHeld(t, 'once changes are noted', copying('--live'), rootKey);
  await move.held;
  await writeThrough();
  servers.push(await spawnVault(t, serverAt(source)));
  await writeThrough();
  const early = await runProcess(['serve'], serverAt(target));
  assert.equal(early.code, 1);
  assert.match(
    early.stdout + early.stderr,
    /copy into this place did not finish, so it is not served/,
  );
  const second = await runCommand(copying('--live'), rootKey);
  assert.equal(second.code, 1);
  assert.match(second.stderr, /Another copy of this vault is being made/);

  let hasMoved = false;
  const moved = move.finished.finally(() => {
    hasMoved = true;
  });
  move.goOn();
  await history.work(workers, (response) => {
    assert.ok(response, 'every server responds');
    assert.ok(response.status < 500 || response.status === 503, response.text);
    if (response.status === 503) assert.ok(response.headers.get('retry-after'), response.text);
    return !hasMoved;
  });
  const { code, stdout, stderr } = await moved;
  assert.equal(code, 0, stderr);
  assert.ok(JSON.parse(stdout).moved_at, stdout);

  for (const server of servers) {
    assert.equal((await request(`${server.url}/readyz`, 'GET')).status, 503);
    const late = await request(`${server.url}/v2/tokens`, 'GET', { key });
    assert.equal(late.status, 503);
    assert.match(late.text, /moved to another place/);
    assert.ok(late.headers.get('retry-after'));
  }
  const late = await runProcess(['serve'], serverAt(source));
  assert.equal(late.code, 1);
  assert.match(late.stdout + late.stderr, /moved to another place/);
  served = [await spawnVault(t, serverAt(target)), await spawnVault(t, serverAt(target))];
  await checkHistory(postgres, target, history);
  const intact = await runCommand(['logs', 'verify', '--state'], serverAt(target));
  assert.equal(intact.code, 0, intact.stdout + intact.stderr);
});
