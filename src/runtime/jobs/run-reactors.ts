/**
 * Asynchronous reactor calls: begins them soon after they are accepted, including those that a server left behind.
 */
import { second } from '../../base/clock.ts';
import type { Epochs } from '../../base/epochs.ts';
import type { WaitingRuns } from '../../reactors/calls/waiting-runs.ts';
import type { Job } from './runner.ts';

/** Looks at counters in memory, and at the database where one has changed. */
const lookEveryMs = second / 4;

/** The interval at which calls are looked for that other servers accepted or left behind. */
const sweepEveryMs = 10 * second;

export function runReactors(runs: WaitingRuns, epochs: Pick<Epochs, 'now'>): Job {
  let seen: number | undefined;
  let sweptAt = Number.NEGATIVE_INFINITY;
  return {
    name: 'run reactors',
    everyMs: lookEveryMs,
    run: async () => {
      const state = epochs.now('reactor_runs');
      const now = performance.now();
      if (state === seen && now - sweptAt < sweepEveryMs) return 0;
      await runs.look();
      seen = state;
      sweptAt = now;
      return 0;
    },
  };
}
