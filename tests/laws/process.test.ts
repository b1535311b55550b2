/** What the process gives away to others on its machine: no debugger, and with `npm start` no core dump. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { engineOf } from '../support/engines.ts';
import { environmentOf, spawnVault, untilReady } from '../support/process.ts';

const root = join(import.meta.dirname, '..', '..');
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** As npm runs it: in a shell that finds the Node of the installation first. */
const npmStart = ['sh', '-c', scripts.start];
const path = { PATH: `${join(root, 'node_modules', '.bin')}:${process.env['PATH']}` };

async function start(t: TestContext, command?: readonly string[]) {
  const place = await engineOf('sqlite').place(t);
  return spawnVault(t, environmentOf(place, path), command);
}

for (const [title, command] of [
  ['npm start', npmStart],
  ['strongroom serve', undefined],
] as const) {
  test(`${title}: SIGUSR1 opens no debugger`, async (t) => {
    const vault = await start(t, command);
    process.kill(vault.pid, 'SIGUSR1');
    for (let round = 0; round < 20; round += 1) await untilReady(vault.url);
    vault.terminate();
    assert.equal((await vault.finished).code, 0);
    assert.doesNotMatch(vault.output(), /[Dd]ebugger/);
  });
}

test('npm start: the process leaves no core dump and has no debugger to open', {
  skip: process.platform !== 'linux',
}, async (t) => {
  const { pid } = await start(t, npmStart);
  const limits = readFileSync(`/proc/${pid}/limits`, 'utf8');
  assert.match(limits, /^Max core file size +0 +0 /m);
  const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  assert.ok(words.includes('--disable-sigusr1'));
});
