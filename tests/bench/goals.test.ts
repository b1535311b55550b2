/** The benchmark's verdicts: a broken measurement meets no goal. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EngineResult } from '../../bench/engine.ts';
import { goalTable } from '../../bench/goals.ts';
import { priceTable } from '../../bench/report.ts';
import type { Measurement } from '../../bench/rounds.ts';
import { scenarios } from '../../bench/scenarios.ts';

/** Reads with the log, and how many there were without it. */
function measured(perSecond: number, perSecondWithout: number): EngineResult {
  const scenario = scenarios.find(({ name }) => name === 'get revealed');
  assert(scenario !== undefined);
  const round = (perSecond: number) => [{ perSecond } as Measurement];
  const measurements = {
    vault: round(perSecond),
    'without the audit log': round(perSecondWithout),
  };
  const pass = {
    tokens: 1,
    seededPerSecond: 1,
    readyMs: 1,
    bytesPerToken: 1,
    bytesPerEntry: 1,
    results: [{ scenario, measurements }],
  };
  return { engine: 'embedded', version: '1', readyMsEmpty: 1, passes: [pass] };
}

const verdictOn = (result: EngineResult) =>
  goalTable(result)
    .split('\n')
    .find((line) => line.includes('price of the audit log'))
    ?.split('|')
    .at(-2)
    ?.trim();

test('a negative price is not measurable, and neither meets nor misses its goal', () => {
  const faster = measured(9_815, 6_561);
  assert.equal(verdictOn(faster), 'not measurable');
  const [pass] = faster.passes;
  assert(pass !== undefined);
  assert.match(priceTable(pass), /\| not measurable \|$/);
});

test('a price from 0 on is judged', () => {
  assert.equal(verdictOn(measured(100, 100)), 'yes');
  assert.equal(verdictOn(measured(90, 100)), 'yes');
  assert.equal(verdictOn(measured(70, 100)), 'no, 100 % over');
});
