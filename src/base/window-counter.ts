/**
 * How often each key was counted in a window of time, in bounded memory, because callers choose most keys: where
 * there is no room, the key that was counted least gives way. To make the vault forget a key that was counted n times,
 * an attacker has to count every other key as often, or half as often from {@link exactMax} on.
 */

export interface WindowLimit {
  readonly requests: number;
  /** Begins with the first request and is not moved by later ones. */
  readonly windowMs: number;
  /** How long a key that went over the limit is refused; 0 means until its window ends. */
  readonly blockMs: number;
  /** How many keys are counted at once; at least one. */
  readonly keysMax: number;
  /** Whether keys for which there is no room are counted together as one, and no key gives way. */
  readonly sharesOverflow?: true;
}

/** The state of a key after the requests just counted. */
export interface WindowState {
  /** Whether all of these requests are within the limit. */
  readonly allowed: boolean;
  /** How many of these requests are within the limit. They are the first ones. */
  readonly granted: number;
  readonly remaining: number;
  /** Until the window, or the block, ends. */
  readonly resetMs: number;
  /** The limit was exceeded by these requests, and not by earlier ones of the window. */
  readonly isFirstRefusal: boolean;
}

interface KeyWindow {
  readonly count: number;
  readonly endsAt: number;
}

/** Keys that were counted about equally often, the one first that was counted longest ago. */
type Level = Map<string, KeyWindow>;

/** Up to here each count has a level of its own; above it, a level holds all counts up to twice its first. */
export const exactMax = 32;

/** No caller's key is empty. */
const overflow = '';

/** Windows that have ended are looked for at most so often in a window, when there is no room. */
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

  /** How many keys are known. */
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

  /** What `count` would return, and nothing is counted. */
  peek(key: string, times = 1): WindowState {
    const now = this.#now();
    const { count: before, endsAt } = this.#windowOf(this.countedAs(key), now);
    return stateOf(this.#limit, { before, times, resetMs: endsAt - now });
  }

  /** The key itself, or the one that stands for all keys for which there is no room. */
  countedAs(key: string): string {
    const { sharesOverflow, keysMax } = this.#limit;
    if (!sharesOverflow || this.#levelOf.has(key) || this.size < keysMax) return key;
    this.#sweep(this.#now());
    return this.size < keysMax ? key : overflow;
  }

  /** The window that is under way, or one that begins now. */
  #windowOf(key: string, now: number): KeyWindow {
    const known = this.#levels[this.#levelOf.get(key) ?? -1]?.get(key);
    if (known && this.#isUnderWay(known, now)) return known;
    return { count: 0, endsAt: now + this.#limit.windowMs };
  }

  /** A clock that was set back must not give a window a second life. */
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

  /** Forgets windows that have ended. */
  #sweep(now: number): void {
    const elapsedMs = now - this.#sweptAt;
    if (elapsedMs >= 0 && elapsedMs < this.#limit.windowMs / sweepsInWindow) return;
    this.#sweptAt = now;
    for (const level of this.#levels) {
      for (const [key, known] of level) if (!this.#isUnderWay(known, now)) this.#forget(key);
    }
  }
}

/** What is said of requests, wherever the counter is that holds how many came before them. */
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
