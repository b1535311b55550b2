/** How many attempts all webhooks have under way together; whoever waits longest goes first. */

export interface AttemptSlots {
  /** False when all are taken; then `onFree` is called once, when one is free. */
  take(onFree: () => void): boolean;
  free(): void;
}

export function createAttemptSlots(max: number): AttemptSlots {
  const waiting = new Set<() => void>();
  let taken = 0;
  return {
    take: (onFree) => {
      if (taken >= max) {
        waiting.add(onFree);
        return false;
      }
      taken++;
      return true;
    },
    free: () => {
      taken--;
      for (const onFree of waiting) {
        if (taken >= max) return;
        waiting.delete(onFree);
        onFree();
      }
    },
  };
}
