/** Asynchronous calls of reactors: begun soon after they were asked for, and those that a server left behind. */
import { second } from '../lib/clock.ts';
import type { Epochs } from '../lib/epochs.ts';
import type { WaitingRuns } from '../vault/reactor-calls/waiting-runs.ts';
import type { Job } from './runner.ts';

/** Looks at a counter in memory, and at the database where that has changed. */
const lookEveryMs = second / 4;

/** What other servers accepted, or left behind, is looked for as often. */
const sweepEveryMs = 10 * second;

export function runReactors(runs: WaitingRuns, epochs: Pick<Epochs, 'now'>): Job {
  let seen = -1;
  let sweptAt = Number.NEGATIVE_INFINITY;
  return {
    name: 'run reactors',
    everyMs: lookEveryMs,
    run: async () => {
      const epoch = epochs.now('reactor_runs');
      const now = performance.now();
      const isQuiet = epoch === seen && !runs.isBusy();
      if (isQuiet && now - sweptAt < sweepEveryMs) return 0;
      seen = epoch;
      sweptAt = now;
      await runs.begin();
      return 0;
    },
  };
}
