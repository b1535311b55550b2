/** Counting requests against a limit: in memory, or in the database that several servers share. */
import { RateLimiterMemory, RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible';
import { hour } from '../lib/clock.ts';
import { BoundedCounters } from './bounded-counters.ts';

export interface Limit {
  /** Separates the counters of the limit from those of others. */
  readonly name: string;
  readonly requests: number;
  /** Begins with the first request and is not moved by later ones. */
  readonly windowMs: number;
  /** How long a key that went over the limit is refused; 0 means until its window ends. */
  readonly blockMs: number;
  /** In memory at most so many keys are remembered, those that were counted most; unbounded unless given. */
  readonly keysMax?: number;
}

/** The state of a key after the requests just counted. */
export interface LimitState {
  /** All of them are. */
  readonly allowed: boolean;
  /** So many of them, the first ones, are. */
  readonly granted: number;
  readonly remaining: number;
  /** Until the window, or the block, ends. */
  readonly resetMs: number;
  /** The limit was reached by these requests, and not by earlier ones of the window. */
  readonly isFirstRefusal: boolean;
}

export interface Limiter {
  /** @param times requests that are counted together; one unless given. */
  count(key: string, times?: number): Promise<LimitState>;
}

type RunCount = (sql: string, values: unknown[], name?: string) => Promise<unknown[]>;

/** Of refused keys a server remembers this many, so that a flood does not reach the database. */
const refusedMax = 10_000;

/** Windows are at most so long over when their counters are removed. */
const countersKeptMs = hour;

export function memoryLimiter(limit: Limit): Limiter {
  const { keysMax } = limit;
  if (keysMax !== undefined) return new BoundedCounters({ ...limit, keysMax });
  return limiterOf(new RateLimiterMemory(optionsOf(limit)), limit);
}

export function sharedLimiter(limit: Limit, query: RunCount): Limiter {
  const counter = limiterOf(new SharedCounter(limit, query), limit);
  const refusedUntil = new Map<string, number>();
  return {
    count: async (key, times) => {
      const refusedMs = (refusedUntil.get(key) ?? 0) - Date.now();
      if (refusedMs > 0) {
        const refused = { allowed: false, granted: 0, remaining: 0, isFirstRefusal: false };
        return { ...refused, resetMs: refusedMs };
      }
      refusedUntil.delete(key);
      const standing = await counter.count(key, times);
      if (standing.allowed) return standing;
      if (refusedUntil.size >= refusedMax) refusedUntil.clear();
      refusedUntil.set(key, Date.now() + standing.resetMs);
      return standing;
    },
  };
}

export async function purgeCounters(query: RunCount): Promise<void> {
  await query(`delete from rate_limits where expire < ${databaseNow} - $1::bigint`, [
    countersKeptMs,
  ]);
}

/** Servers may disagree about the time; the database they share does not. */
const databaseNow = '(extract(epoch from statement_timestamp()) * 1000)::bigint';

/**
 * The clock is read where the row is made and where the result is, and not in between: on a distributed database
 * neither an update nor what it returns may ask for it.
 */
const isOver = 'c.expire <= excluded.expire - $3::bigint or $4';
const countSql = `with counted as (
    insert into rate_limits as c (key, points, expire) values ($1, $2, ${databaseNow} + $3::bigint)
    on conflict (key) do update set
      points = case when ${isOver} then excluded.points else c.points + excluded.points end,
      expire = case when ${isOver} then excluded.expire else c.expire end
    returning points, expire)
  select points, expire - ${databaseNow} as left_ms from counted`;

/** The library's counter, with the database's clock in place of this machine's. */
class SharedCounter extends RateLimiterPostgres {
  readonly #query: RunCount;

  constructor(limit: Limit, query: RunCount) {
    super({
      ...optionsOf(limit),
      storeClient: {},
      storeType: 'client',
      tableName: 'rate_limits',
      tableCreated: true,
      clearExpiredByTimeout: false,
    });
    this.#query = query;
  }

  /** What the library asks of every store: add to a counter, or set it, and give it back. */
  async _upsert(key: string, points: number, durationMs: number, force = false) {
    const values = [key, points, durationMs, force];
    const rows = (await this.#query(countSql, values, 'rate limit')) as Counter[];
    return { rows: rows.map((row) => ({ ...row, expire: Date.now() + row.left_ms })) };
  }
}

interface Counter {
  readonly points: number;
  readonly left_ms: number;
}

function optionsOf({ name, requests, windowMs, blockMs }: Limit) {
  const [duration, blockDuration] = [windowMs / 1000, blockMs / 1000];
  return { keyPrefix: name, points: requests, duration, blockDuration };
}

function limiterOf(
  counter: RateLimiterMemory | RateLimiterPostgres,
  { requests }: Pick<Limit, 'requests'>,
): Limiter {
  const standing = (granted: number, { remainingPoints, msBeforeNext }: RateLimiterRes) => ({
    granted,
    remaining: remainingPoints,
    resetMs: msBeforeNext,
  });
  return {
    count: (key, times = 1) =>
      counter.consume(key, times).then(
        (result) => ({ allowed: true, isFirstRefusal: false, ...standing(times, result) }),
        (refusal: unknown) => {
          if (!(refusal instanceof RateLimiterRes)) throw refusal;
          const before = refusal.consumedPoints - times;
          const granted = Math.max(0, requests - before);
          return {
            allowed: false,
            isFirstRefusal: before <= requests,
            ...standing(granted, refusal),
          };
        },
      ),
  };
}
