/** Pauses between failures in a row: each is twice as long as the one before, up to a limit. */

export interface GrowingPause {
  /** Milliseconds. */
  next(): number;
  /** The next one is the first again. */
  reset(): void;
}

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
