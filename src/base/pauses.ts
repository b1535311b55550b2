/** Pauses between the steps of long work, in which the process serves others, and between repeated failures. */
import { setImmediate } from 'node:timers/promises';

/** How long one step may block others. */
const turnMs = 10;

/**
 * Called between two steps. The caller awaits the result, which lets others run after they have waited long enough.
 */
export type Pause = () => Promise<void> | undefined;

export function createPause(): Pause {
  let began = performance.now();
  const letOthersIn = async () => {
    await setImmediate();
    began = performance.now();
  };
  return () => (performance.now() - began < turnMs ? undefined : letOthersIn());
}

export interface GrowingPause {
  /** The next pause in milliseconds. */
  next(): number;
  /** Starts again with the shortest pause. */
  reset(): void;
}

/** Each pause is twice as long as the previous one, up to a limit. */
export function createGrowingPause({
  firstMs,
  maxMs,
}: {
  readonly firstMs: number;
  readonly maxMs: number;
}): GrowingPause {
  let following = firstMs;
  return {
    next: () => {
      const ms = following;
      following = Math.min(maxMs, following * 2);
      return ms;
    },
    reset: () => {
      following = firstMs;
    },
  };
}
