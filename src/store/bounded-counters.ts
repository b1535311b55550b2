/**
 * Counters of a limit in bounded memory, for keys that callers choose: what is counted least gives way. To make the
 * vault forget a key that was counted n times, an attacker has to count every other key n times.
 */
export interface BoundedLimit {
  readonly requests: number;
  /** Begins with the first request and is not moved by later ones. */
  readonly windowMs: number;
  /** At least one. */
  readonly keysMax: number;
}

/** When the window of each key ends, the key first that was counted longest ago. */
type Level = Map<string, number>;

/** What has ended is looked for at most so often in a window, when there is no room. */
const sweepsInWindow = 60;

/** A `Limiter` in the memory of the process. */
export class BoundedCounters {
  readonly #limit: BoundedLimit;
  readonly #now: () => number;
  /** By how often their keys were counted; the last for all that went over the limit. */
  readonly #levels: readonly Level[];
  #sweptAt = 0;

  constructor(limit: BoundedLimit, now: () => number = Date.now) {
    this.#limit = limit;
    this.#now = now;
    this.#levels = Array.from({ length: limit.requests + 1 }, (): Level => new Map());
  }

  get size(): number {
    return this.#levels.reduce((sum, level) => sum + level.size, 0);
  }

  /** @param times requests that are counted together. */
  async count(key: string, times = 1) {
    const { requests, windowMs } = this.#limit;
    const now = this.#now();
    const { before, endsAt } = this.#take(key, now) ?? { before: 0, endsAt: now + windowMs };
    const after = Math.min(before + times, requests + 1);
    if (this.size >= this.#limit.keysMax) this.#makeRoom(now);
    this.#levels[after - 1]?.set(key, endsAt);
    return {
      allowed: after <= requests,
      granted: Math.min(times, Math.max(0, requests - before)),
      remaining: Math.max(0, requests - after),
      resetMs: endsAt - now,
      isFirstRefusal: after > requests && before <= requests,
    };
  }

  /** Takes a key out; `undefined` where its window has ended or none has begun. */
  #take(key: string, now: number) {
    const before = this.#levels.findIndex((level) => level.has(key)) + 1;
    const level = this.#levels[before - 1];
    const endsAt = level?.get(key) ?? 0;
    level?.delete(key);
    return endsAt > now ? { before, endsAt } : undefined;
  }

  #makeRoom(now: number): void {
    if (now - this.#sweptAt >= this.#limit.windowMs / sweepsInWindow) {
      this.#sweptAt = now;
      for (const level of this.#levels) {
        for (const [key, endsAt] of level) if (endsAt <= now) level.delete(key);
      }
      if (this.size < this.#limit.keysMax) return;
    }
    const lowest = this.#levels.find(({ size }) => size > 0);
    const [oldest] = lowest?.keys() ?? [];
    if (oldest !== undefined) lowest?.delete(oldest);
  }
}
