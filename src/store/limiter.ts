/** Counts requests against a limit: in memory, or in the database that several servers share. */
import assert from 'node:assert/strict';
import { hour } from '../base/clock.ts';
import {
  type GivenBack,
  stateOf,
  type Taken,
  type Wanted,
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
  /** Counts these requests, or none of them if the window would then have more than `max`. In one step. */
  take(key: string, wanted: Wanted): Promise<Taken>;
  /** Undoes what was taken, unless its window has ended since. */
  giveBack(key: string, given: GivenBack): Promise<void>;
}

type RunCount = (sql: string, values: unknown[], name?: string) => Promise<unknown[]>;

/** Of refused keys a server remembers this many, so that a flood does not reach the database. */
const refusedMax = 10_000;

/** Counters are removed at most this long after the end of their windows. */
const countersKeptMs = hour;

export function memoryLimiter(limit: Limit): Limiter {
  const counter = new WindowCounter({ keysMax: keysMaxDefault, ...limit });
  return {
    count: async (key, times) => counter.count(key, times),
    take: async (key, wanted) => counter.take(key, wanted),
    giveBack: async (key, given) => counter.giveBack(key, given),
  };
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
    take: (key, wanted) => takeShared(limit, { key, ...wanted }, query),
    giveBack: async (key, { times, endsAt }) => {
      await query(giveBackSql, [`${limit.name}:${key}`, times, endsAt], 'rate limit give back');
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

const takeSql = `with taken as (
    insert into rate_limits as c (key, points, expire) values ($1, $2, ${databaseNow} + $3::bigint)
    on conflict (key) do update set
      points = case when ${isOver} then excluded.points else c.points + excluded.points end,
      expire = case when ${isOver} then excluded.expire else c.expire end
    where ${isOver} or c.points + excluded.points <= $4
    returning points, expire)
  select points, expire, expire - ${databaseNow} as left_ms from taken`;

const windowSql = `select points, expire, expire - ${databaseNow} as left_ms
  from rate_limits where key = $1`;

const giveBackSql = `update rate_limits set points = points - $2
  where key = $1 and expire = $3 and points >= $2`;

interface TakenCounter extends Counter {
  readonly expire: number;
}

async function takeShared(
  { name, windowMs }: Limit,
  { key, times, max }: Wanted & { readonly key: string },
  query: RunCount,
): Promise<Taken> {
  const named = `${name}:${key}`;
  const values = [named, times, windowMs, max];
  const [row] = times > max ? [] : ((await query(takeSql, values, 'take')) as TakenCounter[]);
  if (row) return { isTaken: true, used: row.points, endsAt: row.expire, resetMs: row.left_ms };
  const [known] = (await query(windowSql, [named], 'window')) as TakenCounter[];
  const { points: used = 0, expire: endsAt = 0, left_ms: resetMs = windowMs } = known ?? {};
  return { isTaken: false, used, endsAt, resetMs };
}

interface Counter {
  readonly points: number;
  readonly left_ms: number;
}
