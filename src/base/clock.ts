/** Time as a parameter. */
import type { Brand } from './brand.ts';

/** Milliseconds since 1970-01-01T00:00:00Z. */
export type Instant = Brand<number, 'Instant'>;

export interface Clock {
  now(): Instant;
}

export const second = 1000;
export const minute = 60 * second;
export const hour = 60 * minute;
export const day = 24 * hour;

/** The latest instant that ISO 8601 writes with a four-digit year. */
export const latestInstant = Date.UTC(9999, 11, 31, 23, 59, 59, 999) as Instant;

/** @throws RangeError when the number is not a whole millisecond between 1970 and the year 9999. */
export function parseInstant(milliseconds: number): Instant {
  if (!Number.isInteger(milliseconds) || milliseconds < 0 || milliseconds > latestInstant) {
    throw new RangeError('not an instant between 1970 and 9999');
  }
  return milliseconds as Instant;
}

/** The instant that many milliseconds later. */
export function instantAfter(instant: Instant, milliseconds: number): Instant {
  return parseInstant(instant + milliseconds);
}

export const systemClock: Clock = { now: () => Date.now() as Instant };
