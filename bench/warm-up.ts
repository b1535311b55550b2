/** Load before a measurement, until V8 compiles no more: it goes on for some fifteen seconds of full load. */
import type { LoadResult } from './job.ts';
import { cpuSeconds } from './resources.ts';

export interface Warmed {
  readonly pid: number;
  shoot(seconds: number): Promise<LoadResult>;
}

/** A load lasts so long, and there are at most so many of them. */
const loadSeconds = 1;
const loadsMax = 20;

/** A subject is warm when the costs of so many loads in a row differ by less than that. */
const loadsAlike = 3;
const differenceMax = 0.05;

/** Loads of a second until the processor time per request is steady, or twenty of them are over. */
export async function warmUp({ pid, shoot }: Warmed): Promise<void> {
  const costs: number[] = [];
  while (costs.length < loadsMax && !isSteady(costs)) {
    const before = cpuSeconds(pid);
    const { succeeded } = await shoot(loadSeconds);
    costs.push((cpuSeconds(pid) - before) / succeeded);
  }
}

/** Whether the last of these costs are alike. */
export function isSteady(costs: readonly number[]): boolean {
  const last = costs.slice(-loadsAlike);
  const least = Math.min(...last);
  return last.length === loadsAlike && Math.max(...last) < least * (1 + differenceMax);
}
