/** An auditor who has kept the last checkpoint alone sees what is missing of all that the log has signed. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { day } from '../../src/base/clock.ts';
import { type Engine, onBothEngines } from '../support/engines.ts';
import { environmentOf, runCommand } from '../support/process.ts';
import { newTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

/** A log whose last checkpoint does not name a stream that has been idle for days. */
async function sampleOf(t: TestContext, engine: Engine) {
  const vault = await startVault(t, engine);
  const { place, clock } = vault;
  const tenant = await newTenant(vault);
  await tenant.token({ id: 'first', type: 'token', data: 1 });
  const beside = await startVault(t, engine, { place, clock });
  for (let read = 0; read < 5; read += 1) {
    await beside.send('GET', '/tokens/first', { key: tenant.key });
  }
  await beside.stop();
  const idle = (await tenant.rows('logs')).find(({ operation }) => operation === 'read')?.stream_id;
  for (let more = 1; more <= 3; more += 1) {
    await tenant.token({ type: 'token', data: more });
    await tenant.send('GET', '/logs/checkpoint', { key: tenant.managementKey });
    clock.advance(2 * day);
  }
  const checkpoints = (await tenant.rows('checkpoints')).sort((one, two) => one.seq - two.seq);
  /** Of each checkpoint, whether it names the stream. */
  const names = checkpoints.map(({ statement }) =>
    JSON.parse(statement).heads.some(([stream]: readonly string[]) => stream === idle),
  );
  assert.ok(idle && names.includes(true) && names.at(-1) === false);
  await vault.stop();
  const environment = environmentOf(place);
  const kept = join(place.dataDir, 'last.json');
  writeFileSync(kept, JSON.stringify(checkpoints.at(-1)));
  const every = join(place.dataDir, 'all.ndjson');
  writeFileSync(every, checkpoints.map((one) => `${JSON.stringify(one)}\n`).join(''));
  const verify = async (...flags: readonly string[]) => {
    const command = ['logs', 'verify', '--json', '--tenant', tenant.id, ...flags];
    const { code, stdout, stderr } = await runCommand(command, environment);
    assert.ok(code === 0 || code === 3, stderr);
    const { findings } = JSON.parse(stdout);
    assert.equal(code, findings.length === 0 ? 0 : 3);
    const named: readonly { kind: string; stream_id?: string; message: string }[] = findings;
    return named.map(({ kind, stream_id, message }) =>
      stream_id === undefined ? `${kind}: ${message}` : kind,
    );
  };
  const exported = async () => {
    // Of a database that is named the export is no entry.
    const named = ['--database', place.databaseUrl ?? place.dataDir, '--tenant', tenant.id];
    const { stdout } = await runCommand(['logs', 'export', ...named], environment);
    return stdout.trimEnd().split('\n');
  };
  const verifyStored = (...flags: readonly string[]) => verify('--checkpoint', kept, ...flags);
  const verifyLines = (lines: readonly string[], checkpoints = kept) => {
    const file = join(place.dataDir, 'lines.ndjson');
    writeFileSync(file, `${lines.join('\n')}\n`);
    return verify('--file', file, '--checkpoint', checkpoints);
  };
  const drop = (table: string, condition: string) =>
    engine.run(place, `delete from ${table} where tenant_id = '${tenant.id}' and ${condition}`);
  return { idle, names, every, verifyStored, exported, verifyLines, drop };
}

/** Without the streams of other threads of which no checkpoint is left that names them. */
const beside = (found: readonly string[]) => found.filter((kind) => kind !== 'inserted');

const missing = (first: number, last: number) => {
  const range = first === last ? `checkpoint ${first}` : `checkpoints ${first} to ${last}`;
  return `truncated: ${range} missing; the newest was kept`;
};

onBothEngines('the last checkpoint alone', (engine) => {
  test('shows that checkpoints are gone, and a stream with them, from the database and its export', async (t) => {
    const { idle, names, verifyStored, exported, verifyLines, drop } = await sampleOf(t, engine);
    assert.deepEqual(await verifyStored(), []);
    assert.deepEqual(await verifyStored('--state'), []);
    assert.deepEqual(await verifyLines(await exported()), []);

    await drop('logs', `stream_id = '${idle}'`);
    assert.deepEqual(await verifyStored(), ['truncated'], 'an older checkpoint names the stream');
    for (let left = names.length - 1; left >= 0; left -= 1) {
      await drop('checkpoints', `seq > ${left}`);
      const named = names.slice(0, left).includes(true);
      const expected = [missing(left + 1, names.length), ...(named ? ['truncated'] : [])];
      assert.deepEqual(beside(await verifyStored()), expected);
      assert.deepEqual(beside(await verifyLines(await exported())), expected);
      const [state] = await verifyStored('--state');
      assert.equal(state, expected[0]);
    }
    await drop('logs', 'true');
    assert.ok(
      (await verifyStored()).includes('truncated'),
      'streams that the kept one names are gone',
    );
  });

  test('is missed in an export, and not in lines that were collected, which have none', async (t) => {
    const { names, every, exported, verifyLines } = await sampleOf(t, engine);
    const lines = await exported();
    const entries = lines.filter((line) => line.startsWith('{"kind":"entry"'));
    assert.ok(entries.length < lines.length - 2);
    assert.deepEqual(await verifyLines(entries, every), []);
    const [begin = '', end = ''] = [lines[0], lines.at(-1)];
    assert.deepEqual(await verifyLines([begin, ...entries, end], every), [
      missing(1, names.length),
    ]);
  });
});
