/** Erases the engine's remains of removed rows, once no reader uses them. */
import { second } from '../../base/clock.ts';
import type { Store } from '../../store/store.ts';
import { systemTimer, type Timer } from './pace.ts';

export const scrubAttemptsMax = 3;
const waitMs = 2 * second;

export interface Scrubbing {
  readonly store: Store;
  readonly timer?: Timer | undefined;
}

/**
 * On the embedded engine a long read, such as that of another job at the start, is in the way for a while. That
 * is no failure: an operator would look for its cause.
 */
export async function scrubStore(
  { store, timer = systemTimer }: Scrubbing,
  stopping: AbortSignal,
): Promise<number> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await store.scrub();
      return 0;
    } catch (error) {
      if (stopping.aborted) return 0;
      if (attempt === scrubAttemptsMax) throw error;
    }
    await timer.pause(waitMs, stopping);
  }
}
