/** A circuit breaker: after several consecutive failures, a host is not called for a while. */
import { type Clock, second } from '../base/clock.ts';

export const failuresMax = 5;
export const pauseMs = 30 * second;

export interface Breaker {
  /**
   * Returns 0 if the host may be called, otherwise the milliseconds until it may. After the pause one caller is let
   * through, and the others wait for its result.
   */
  admit(): number;
  succeeded(): void;
  failed(): void;
}

export function createBreaker(clock: Clock): Breaker {
  let failures = 0;
  let closedUntil = 0;
  return {
    admit: () => {
      if (failures < failuresMax) return 0;
      const now = clock.now();
      if (now < closedUntil) return closedUntil - now;
      closedUntil = now + pauseMs;
      return 0;
    },
    succeeded: () => {
      failures = 0;
    },
    failed: () => {
      failures += 1;
      closedUntil = clock.now() + pauseMs;
    },
  };
}
