/** A rate-limited warning about a frequent event: one line a minute, with the number of occurrences. */
import { type Clock, minute } from '../clock.ts';
import type { Log } from './log.ts';

/** Records this many further occurrences. */
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
