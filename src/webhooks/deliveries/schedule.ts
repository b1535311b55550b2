/** Decides when a failed delivery is retried, and when it is abandoned. */
import { day, hour, type Instant, instantAfter, minute, second } from '../../base/clock.ts';

/**
 * The delays after the first failed attempt, after the second, and so on; after the last, the delivery has failed.
 */
const retryDelays: readonly number[] = [
  5 * second,
  5 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
  20 * hour,
  24 * hour,
];

/** Random jitter, so that deliveries that failed together are not retried together. */
export const jitterShareMax = 0.1;

/** Limits the delay that a receiver can request. */
export const retryAfterMsMax = day;

export interface Failed {
  /** The number of attempts, including this one. */
  readonly attempts: number;
  readonly now: Instant;
  /** The delay that the receiver requested. */
  readonly retryAfterMs: number | undefined;
  /** From 0 up to, but not including, 1. */
  readonly random: number;
}

/** Never earlier than the receiver requested; `undefined` if no attempt is left. */
export function nextAttemptAt({
  attempts,
  now,
  retryAfterMs = 0,
  random,
}: Failed): Instant | undefined {
  const delay = retryDelays[attempts - 1];
  if (delay === undefined) return undefined;
  const jittered = delay * (1 + jitterShareMax * random);
  return instantAfter(now, Math.ceil(Math.max(jittered, Math.min(retryAfterMs, retryAfterMsMax))));
}

const secondsForm = /^[0-9]{1,9}$/;
const dateForm = /^[A-Z][a-z]{2}, .{20} GMT$/;

/** The header `Retry-After` (RFC 9110, section 10.2.3) in milliseconds; `undefined` if it has neither valid form. */
export function retryAfterMsOf(header: string | undefined, now: Instant): number | undefined {
  if (header === undefined) return undefined;
  if (secondsForm.test(header)) return Number(header) * second;
  const at = dateForm.test(header) ? Date.parse(header) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}
