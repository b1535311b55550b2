/** Pauses between the parts of long work, in which the process serves others, and between failures in a row. */
import { setImmediate } from 'node:timers/promises';

/** How long others wait for one part after another. */
const turnMs = 10;

/** Called between two parts. What it gives is to be awaited: it lets others in once they have waited long enough. */
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
  /** Milliseconds. */
  next(): number;
  /** The next one is the first again. */
  reset(): void;
}

/** Each pause is twice as long as the one before, up to a limit. */
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
