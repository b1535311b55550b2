/** A warning about what may happen often: one line a minute, with how often it did. */
import { type Clock, minute } from '../clock.ts';
import type { Log } from './log.ts';

/** Records that it happened again, so many times. */
export type RareWarning = (count: number) => void;

export function createRareWarning(
  message: string,
  { log, clock }: { readonly log: Log; readonly clock: Clock },
): RareWarning {
  let warnedAt = 0;
  let unreported = 0;
  return (count) => {
    unreported += count;
    if (clock.now() - warnedAt < minute) return;
    log.warn(message, { count: unreported });
    warnedAt = clock.now();
    unreported = 0;
  };
}
