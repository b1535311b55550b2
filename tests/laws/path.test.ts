/** ARCHITECTURE.md shows a newcomer what a request passes: the table is compared with what runs. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { second } from '../../src/lib/clock.ts';
import { engineOf } from '../support/engines.ts';
import { root } from '../support/source.ts';
import { startVault, threads } from '../support/vault.ts';

const card = {
  type: 'card',
  data: { number: '4242424242424242', expiration_month: 12, expiration_year: 2040 },
};

/** The clock that tests move, and a timer that looks after connections every second. */
const beside: readonly string[] = ['lib/shared-clock.ts', 'http/protocol/progress.ts'];

/** The files of which a function ran. */
async function filesThatRun(work: () => Promise<unknown>): Promise<string[]> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await session.post('Profiler.takePreciseCoverage');
  await work();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  session.disconnect();
  return result.flatMap(({ url, functions }) => {
    const path = url.split('/src/')[1];
    const ran = functions.some(({ ranges, functionName, isBlockCoverage }) => {
      const isModule = functionName === '' && ranges[0]?.startOffset === 0;
      return !isModule && !isBlockCoverage && (ranges[0]?.count ?? 0) > 0;
    });
    return path !== undefined && !beside.includes(path) && ran ? [path] : [];
  });
}

/** The table of the path of a create. */
function filesNamed(): string[] {
  const text = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8');
  const [, path = ''] = text.split('The path of `POST /tokens`');
  const rows = path.split('\n').filter((line) => /^\| \d+ \|/.test(line));
  return rows.flatMap((row) => [...row.matchAll(/`([a-z/-]+\.ts)`/g)].map(([, file = '']) => file));
}

test('ARCHITECTURE.md names every file that a create passes, and no other', {
  skip: threads !== '1',
}, async (t) => {
  const vault = await startVault(t, engineOf('sqlite'));
  const key = await vault.application();
  const create = () => vault.send('POST', '/tokens', { key, body: card });
  // What is compiled or read once has been.
  for (let count = 0; count < 3; count += 1) await create();
  const ran: Set<string>[] = [];
  // What runs beside one of them by chance, such as a timer, does not run beside all.
  for (let count = 0; count < 3; count += 1) {
    // So long are caller and tenant not read again.
    vault.clock.advance(2 * second);
    const files = await filesThatRun(async () => assert.equal((await create()).status, 201));
    ran.push(new Set(files));
  }
  const always = ran.reduce((all, files) => all.intersection(files));
  assert.deepEqual(filesNamed().toSorted(), [...always].toSorted());
});
