/** Counts requests against a limit: in memory, or in the database that several servers share. */
import assert from 'node:assert/strict';
import { hour } from '../base/clock.ts';
import {
  stateOf,
  WindowCounter,
  type WindowLimit,
  type WindowState,
} from '../base/window-counter.ts';

export interface Limit extends Pick<WindowLimit, 'requests' | 'windowMs' | 'blockMs'> {
  /** Separates the counters of the limit from those of others. */
  readonly name: string;
  /** How many keys are counted in memory at once; {@link keysMaxDefault} unless given. */
  readonly keysMax?: number;
}

/** More than one server meets in a window, and about 20 MB. */
const keysMaxDefault = 100_000;

export interface Limiter {
  /** @param times requests that are counted together; one unless given. */
  count(key: string, times?: number): Promise<WindowState>;
}

type RunCount = (sql: string, values: unknown[], name?: string) => Promise<unknown[]>;

/** Of refused keys a server remembers this many, so that a flood does not reach the database. */
const refusedMax = 10_000;

/** Counters are removed at most this long after the end of their windows. */
const countersKeptMs = hour;

export function memoryLimiter(limit: Limit): Limiter {
  const counter = new WindowCounter({ keysMax: keysMaxDefault, ...limit });
  return { count: async (key, times) => counter.count(key, times) };
}

export function sharedLimiter(limit: Limit, query: RunCount): Limiter {
  const refusedUntil = new Map<string, number>();
  return {
    count: async (key, times = 1) => {
      const refusedMs = (refusedUntil.get(key) ?? 0) - Date.now();
      if (refusedMs > 0) {
        const before = limit.requests + 1;
        return stateOf(limit, { before, times, resetMs: refusedMs });
      }
      refusedUntil.delete(key);
      const state = await countShared(limit, { key, times }, query);
      if (state.allowed) return state;
      if (refusedUntil.size >= refusedMax) refusedUntil.clear();
      refusedUntil.set(key, Date.now() + state.resetMs);
      return state;
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
 * $3 is how long a window lasts that begins now, $4 the limit, and $5 how long a block lasts, or null. The clock is
 * read where the row is made and where the result is, and not in between: on a distributed database neither an update
 * nor what it returns may ask for it.
 */
const isOver = 'c.expire <= excluded.expire - $3::bigint';
const isFirstRefusal = 'c.points <= $4 and c.points + excluded.points > $4';
const countSql = `with counted as (
    insert into rate_limits as c (key, points, expire) values ($1, $2, ${databaseNow} + $3::bigint)
    on conflict (key) do update set
      points = case when ${isOver} then excluded.points else c.points + excluded.points end,
      expire = case when ${isOver} then excluded.expire
        when ${isFirstRefusal} then coalesce(excluded.expire - $3::bigint + $5::bigint, c.expire)
        else c.expire end
    returning points, expire)
  select points, expire - ${databaseNow} as left_ms from counted`;

/** Counts in the database, by its clock. */
async function countShared(
  { name, requests, windowMs, blockMs }: Limit,
  { key, times }: { readonly key: string; readonly times: number },
  query: RunCount,
): Promise<WindowState> {
  const block = blockMs > 0 ? blockMs : null;
  const lasts = times > requests ? (block ?? windowMs) : windowMs;
  const values = [`${name}:${key}`, times, lasts, requests, block];
  const [row] = (await query(countSql, values, 'rate limit')) as Counter[];
  assert(row, 'the statement returns the row that it counts');
  const { points, left_ms: resetMs } = row;
  return stateOf({ requests, blockMs }, { before: points - times, times, resetMs });
}

interface Counter {
  readonly points: number;
  readonly left_ms: number;
}
