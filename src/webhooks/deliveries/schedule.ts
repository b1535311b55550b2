/** When a delivery that failed is tried again, and when it no longer is. */
import { day, hour, type Instant, instantAfter, minute, second } from '../../base/clock.ts';

/** After the first failed attempt, after the second, and so on; after the last of these the delivery has failed. */
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

/** Added at random, so that what failed together does not come back together. */
export const jitterShareMax = 0.1;

/** A receiver that asks for more patience gets no more than that. */
export const retryAfterMsMax = day;

export interface Failed {
  /** So many attempts were made, this one included. */
  readonly attempts: number;
  readonly now: Instant;
  /** What the receiver asked for. */
  readonly retryAfterMs: number | undefined;
  /** From 0 up to, not including, 1. */
  readonly random: number;
}

/** Never sooner than the receiver asked; `undefined` when no attempt is left. */
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

/** The header `Retry-After` (RFC 9110, section 10.2.3) in milliseconds; `undefined` for neither of its forms. */
export function retryAfterMsOf(header: string | undefined, now: Instant): number | undefined {
  if (header === undefined) return undefined;
  if (secondsForm.test(header)) return Number(header) * second;
  const at = dateForm.test(header) ? Date.parse(header) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}
