/**
 * Counts each key in a window of time. Memory is bounded, because callers choose most keys: if there is no room, the
 * least counted key is removed. To remove a key with a count of n, an attacker has to raise the count of every other
 * key to n, or to half of n from {@link exactMax} on.
 */

export interface WindowLimit {
  readonly requests: number;
  /** The window begins with the first request. Later requests do not move it. */
  readonly windowMs: number;
  /** How long a key over the limit is refused; 0 means until its window ends. */
  readonly blockMs: number;
  /** The maximum number of keys in memory; at least one. */
  readonly keysMax: number;
  /** Whether keys without room share one counter, so that no key is removed. */
  readonly sharesOverflow?: true;
}

/** The state of a key after the latest requests. */
export interface WindowState {
  /** Whether all of these requests are within the limit. */
  readonly allowed: boolean;
  /** How many of these requests are within the limit, counted from the first. */
  readonly granted: number;
  readonly remaining: number;
  /** The time until the window, or the block, ends. */
  readonly resetMs: number;
  /** Whether these requests are the first of the window to exceed the limit. */
  readonly isFirstRefusal: boolean;
}

export interface Wanted {
  readonly times: number;
  readonly max: number;
}

/** What became of an attempt to take from a window. */
export interface Taken {
  readonly isTaken: boolean;
  /** How much of the window is used now. */
  readonly used: number;
  /** Names the window, for giving back. */
  readonly endsAt: number;
  readonly resetMs: number;
}

export interface GivenBack extends Pick<Taken, 'endsAt'> {
  readonly times: number;
}

interface KeyWindow {
  readonly count: number;
  readonly endsAt: number;
}

/** Keys with similar counts, in the order of their last count. */
type Level = Map<string, KeyWindow>;

/** Up to this value each count has a level of its own. Above it, a level holds all counts up to twice its first. */
export const exactMax = 32;

/** The shared key of the overflow: no caller's key is empty. */
const overflow = '';

/** Sweeps in one window, at most, while there is no room. */
const sweepsInWindow = 60;

export class WindowCounter {
  readonly #limit: WindowLimit;
  readonly #now: () => number;
  readonly #levelOf = new Map<string, number>();
  readonly #levels: Level[] = [];
  #sweptAt = 0;

  constructor(limit: WindowLimit, now: () => number = Date.now) {
    this.#limit = limit;
    this.#now = now;
  }

  /** The number of keys in memory. */
  get size(): number {
    return this.#levelOf.size;
  }

  /** @param times requests that are counted together. */
  count(key: string, times = 1): WindowState {
    const now = this.#now();
    const counted = this.countedAs(key);
    const { count: before, endsAt } = this.#windowOf(counted, now);
    this.#forget(counted);
    const state = stateOf(this.#limit, { before, times, resetMs: endsAt - now });
    if (this.size >= this.#limit.keysMax && counted !== overflow) this.#makeRoom(now);
    const count = Math.min(before + times, this.#limit.requests + 1);
    this.#put(counted, { count, endsAt: now + state.resetMs });
    return state;
  }

  /** Counts these, or none of them if the key would then have more than `max`. */
  take(key: string, { times, max }: Wanted): Taken {
    const now = this.#now();
    const { count: before, endsAt } = this.#windowOf(key, now);
    const isTaken = before + times <= max;
    const used = isTaken ? before + times : before;
    if (isTaken) {
      this.#forget(key);
      if (this.size >= this.#limit.keysMax) this.#makeRoom(now);
      this.#put(key, { count: used, endsAt });
    }
    return { isTaken, used, endsAt, resetMs: endsAt - now };
  }

  /** Undoes what was taken, unless its window has ended. */
  giveBack(key: string, { times, endsAt }: GivenBack): void {
    const known = this.#windowOf(key, this.#now());
    if (known.endsAt !== endsAt || known.count < times) return;
    this.#forget(key);
    this.#put(key, { count: known.count - times, endsAt });
  }

  /** Returns what `count` would return, without counting. */
  peek(key: string, times = 1): WindowState {
    const now = this.#now();
    const { count: before, endsAt } = this.#windowOf(this.countedAs(key), now);
    return stateOf(this.#limit, { before, times, resetMs: endsAt - now });
  }

  /** The key itself, or the shared key if there is no room for it. */
  countedAs(key: string): string {
    const { sharesOverflow, keysMax } = this.#limit;
    if (!sharesOverflow || this.#levelOf.has(key) || this.size < keysMax) return key;
    this.#sweep(this.#now());
    return this.size < keysMax ? key : overflow;
  }

  /** The current window, or one that begins now. */
  #windowOf(key: string, now: number): KeyWindow {
    const known = this.#levels[this.#levelOf.get(key) ?? -1]?.get(key);
    if (known && this.#isUnderWay(known, now)) return known;
    return { count: 0, endsAt: now + this.#limit.windowMs };
  }

  /** A window must not become valid again when the clock is set back. */
  #isUnderWay({ endsAt }: KeyWindow, now: number): boolean {
    const { windowMs, blockMs } = this.#limit;
    return endsAt > now && endsAt - now <= Math.max(windowMs, blockMs);
  }

  #put(key: string, known: KeyWindow): void {
    const at = levelFor(known.count);
    while (this.#levels.length <= at) this.#levels.push(new Map());
    this.#levels[at]?.set(key, known);
    this.#levelOf.set(key, at);
  }

  #forget(key: string): void {
    this.#levels[this.#levelOf.get(key) ?? -1]?.delete(key);
    this.#levelOf.delete(key);
  }

  #makeRoom(now: number): void {
    this.#sweep(now);
    if (this.size < this.#limit.keysMax) return;
    const [oldest] = this.#levels.find(({ size }) => size > 0)?.keys() ?? [];
    if (oldest !== undefined) this.#forget(oldest);
  }

  /** Removes windows that have ended. */
  #sweep(now: number): void {
    const elapsedMs = now - this.#sweptAt;
    if (elapsedMs >= 0 && elapsedMs < this.#limit.windowMs / sweepsInWindow) return;
    this.#sweptAt = now;
    for (const level of this.#levels) {
      for (const [key, known] of level) if (!this.#isUnderWay(known, now)) this.#forget(key);
    }
  }
}

/** The state that follows from a count, wherever the counter is stored. */
export function stateOf(
  { requests, blockMs }: Pick<WindowLimit, 'requests' | 'blockMs'>,
  counted: { readonly before: number; readonly times: number; readonly resetMs: number },
): WindowState {
  const { before, times, resetMs } = counted;
  const allowed = before + times <= requests;
  const isFirstRefusal = !allowed && before <= requests;
  return {
    allowed,
    granted: allowed ? times : Math.max(0, requests - before),
    remaining: Math.max(0, requests - before - times),
    resetMs: isFirstRefusal && blockMs > 0 ? blockMs : resetMs,
    isFirstRefusal,
  };
}

function levelFor(count: number): number {
  return count <= exactMax ? count : exactMax + Math.ceil(Math.log2(count / exactMax));
}
