/** Counting use: in memory, and a few at a time in the counters that all threads and servers share. */
import type { Clock } from '../../base/clock.ts';
import { ExpiringMap } from '../../base/expiring-map.ts';

export interface Counted<U> {
  readonly times: number;
  /** So many are counted in memory before they are reported: a server notices what others count late by that much. */
  readonly stepMax: number;
  /** The latest use that was counted. */
  readonly use: U;
}

/** @returns a promise where it reports, and `undefined` where nothing has to be awaited. */
export type UseTally<U> = (name: string, counted: Counted<U>) => Promise<void> | undefined;

export interface UseTallyTools<U> {
  readonly clock: Clock;
  readonly windowMs: number;
  /** Adds to the shared counter, and decides. */
  readonly report: (name: string, times: number, use: U) => Promise<Reported>;
}

export interface Reported {
  /** How many more may come before something has to be decided again. */
  readonly left: number;
  /** For so long nothing has to be decided, however many come, so they are not counted. */
  readonly quietMs?: number;
}

interface TalliedName<U> {
  latest: Counted<U>;
  unreported: number;
  left: number;
  quietUntil: number;
  isReporting: boolean;
}

const namesMax = 50_000;

export function createTally<U>({ clock, windowMs, report }: UseTallyTools<U>): UseTally<U> {
  const known = new ExpiringMap<string, TalliedName<U>>({
    clock,
    ageMsMax: windowMs,
    entriesMax: namesMax,
  });

  function knownAs(name: string, latest: Counted<U>): TalliedName<U> {
    const found = known.get(name);
    if (found) return Object.assign(found, { latest });
    const left = Number.POSITIVE_INFINITY;
    const made = { latest, unreported: 0, left, quietUntil: 0, isReporting: false };
    known.set(name, made);
    return made;
  }

  const isDue = ({ unreported, latest, left, quietUntil }: TalliedName<U>) =>
    unreported >= Math.min(latest.stepMax, left) && clock.now() >= quietUntil;

  async function send(name: string, one: TalliedName<U>): Promise<void> {
    const times = one.unreported;
    one.unreported = 0;
    try {
      const { left, quietMs = 0 } = await report(name, times, one.latest.use);
      one.left = left;
      one.quietUntil = clock.now() + quietMs;
    } catch (error) {
      one.unreported += times;
      throw error;
    }
  }

  /** What is counted while a report is under way can reach the threshold that only its result names. */
  async function sendAll(name: string, one: TalliedName<U>): Promise<void> {
    one.isReporting = true;
    try {
      do await send(name, one);
      while (isDue(one));
    } finally {
      one.isReporting = false;
    }
  }

  return (name, counted) => {
    const one = knownAs(name, counted);
    if (clock.now() < one.quietUntil) return undefined;
    one.unreported += counted.times;
    return !one.isReporting && isDue(one) ? sendAll(name, one) : undefined;
  };
}
