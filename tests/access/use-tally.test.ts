/** Uses are reported a few at a time, and the one that reaches a threshold always is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTally, type Reported } from '../../src/access/watch/tally.ts';
import { minute } from '../../src/base/clock.ts';
import { createTestClock } from '../support/vault.ts';

test('the use that reaches the threshold is reported, also if it comes during a report', async () => {
  const reports: { times: number; end: (reported: Reported) => void }[] = [];
  const tally = createTally<string>({
    clock: createTestClock(),
    windowMs: minute,
    report: (_, times) => new Promise((end) => reports.push({ times, end })),
  });
  const use = () => tally('key', { times: 1, stepMax: 3, use: 'read' });
  const counted = [use(), use(), use()];
  // The threshold is five, of which a tally knows only by a report.
  counted.push(use(), use());
  reports[0]?.end({ left: 2 });
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(
    reports.map(({ times }) => times),
    [3, 2],
  );
  reports[1]?.end({ left: 1, quietMs: minute });
  await Promise.all(counted);
  // Nothing is reported before the quiet time ends.
  for (let count = 0; count < 3; count++) assert.equal(use(), undefined);
  assert.equal(reports.length, 2);
});
