/** Exporting entries as they commit: every line whole and in order, and the vault never waits. */
import assert from 'node:assert/strict';
import { readFileSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLogExport, queuedCharactersMax } from '../../src/audit/export.ts';
import { formatEntry, parseLine } from '../../src/audit/records.ts';
import { systemClock } from '../../src/base/clock.ts';
import type { ChainedEntry } from '../../src/store/log-chain/entries.ts';
import { engineOf, onBothEngines } from '../support/engines.ts';
import { mixedTraffic, readParts, verifyParts } from '../support/logs.ts';
import { environmentOf, spawnVault } from '../support/process.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { createApplication, startVault } from '../support/vault.ts';

const entryOf = (seq: number): ChainedEntry =>
  ({ stream_id: 's', seq, message: 'Token retrieved' }) as ChainedEntry;

const forever = () => new Promise<never>(() => undefined);

function entriesIn(lines: string): ChainedEntry[] {
  return lines
    .split('\n')
    .filter((line) => line !== '')
    .flatMap((line, index) => {
      const record = parseLine(line, index + 1);
      assert.equal(record.kind, 'entries', line);
      return record.kind === 'entries' ? record.entries : [];
    });
}

onBothEngines('the export of log entries', (engine) => {
  test('a file has every entry once it is durable, in the order of its stream, and verifies', async (t) => {
    const file = join(temporaryDirectory(t), 'log.ndjson');
    const vault = await startVault(t, engine, { environment: { STRONGROOM_LOG_EXPORT: file } });
    await mixedTraffic(vault, 2);
    renameSync(file, `${file}.1`);
    await mixedTraffic(vault, 1);
    await vault.stop();
    const exported = entriesIn(readFileSync(`${file}.1`, 'utf8') + readFileSync(file, 'utf8'));
    const { entries } = await readParts(vault.place);
    assert.deepEqual(new Set(exported.map(formatEntry)), new Set(entries.map(formatEntry)));
    assert.deepEqual(verifyParts({ statements: [], entries: exported }).findings, []);
    assert.equal(statSync(file).mode & 0o777, 0o600);
  });

  test('standard output has them between the lines of the operator’s log', async (t) => {
    const place = await engine.place(t);
    const vault = await spawnVault(
      t,
      environmentOf(place, { STRONGROOM_LOG_EXPORT: 'stdout', STRONGROOM_LOG_LEVEL: 'debug' }),
    );
    await Promise.all(Array.from({ length: 20 }, () => createApplication(vault.url)));
    vault.terminate();
    const { stdout } = await vault.finished;
    const lines = stdout.split('\n').filter((line) => line.startsWith('{"kind":'));
    const { entries } = await readParts(place);
    assert.deepEqual(
      new Set(entriesIn(lines.join('\n')).map(({ hash }) => hash)),
      new Set(entries.map(({ hash }) => hash)),
    );
  });
});

test('a file that cannot be written is tried again, and nothing is lost meanwhile', async () => {
  let failures = 3;
  const { promise: written, resolve } = Promise.withResolvers<string>();
  const { take, close } = createLogExport({
    write: async (lines) => {
      if (failures-- > 0) throw new Error('disk full');
      resolve(lines);
    },
    onLost: () => assert.fail('nothing is lost'),
    pause: async () => undefined,
    clock: systemClock,
  });
  take([entryOf(1)]);
  take([entryOf(2), entryOf(3)]);
  assert.equal(await written, [1, 2, 3].map((seq) => formatEntry(entryOf(seq))).join(''));
  await close();
});

test('what a collector does not take in time is counted as lost, and bounded in memory', async () => {
  let lost = 0;
  const { take, close } = createLogExport({
    write: forever,
    onLost: (count) => {
      lost += count;
    },
    pause: async () => undefined,
    clock: systemClock,
  });
  const long = { ...entryOf(1), message: 'x'.repeat(1024 * 1024) };
  const fitting = Math.ceil(queuedCharactersMax / formatEntry(long).length);
  // The first is on its way to the collector, and so not in the queue.
  take([long]);
  take(Array.from({ length: fitting + 5 }, () => long));
  assert.equal(lost, 5);
  await close();
  assert.equal(lost, 5 + fitting);
});

test('a vault answers while its export cannot be written, and says that it loses lines', async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'gone', 'log.ndjson');
  const vault = await startVault(t, engineOf('sqlite'), {
    environment: { STRONGROOM_LOG_EXPORT: file },
  });
  await mixedTraffic(vault, 1);
  await vault.stop();
  assert.ok(
    vault.logged.some(({ message }) => message.startsWith('log entries were not exported')),
  );
});
