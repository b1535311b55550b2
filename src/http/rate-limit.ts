/** Rate limits: each request is counted before it costs anything, first by address, then by key. */
import type { FastifyReply } from 'fastify';
import { hashApiKey } from '../crypto/api-key.ts';
import { sha256 } from '../crypto/digest.ts';
import { type Clock, second } from '../lib/clock.ts';
import { VaultError } from '../lib/errors.ts';
import type { Limiter, Standing } from '../store/limiter.ts';
import type { Store } from '../store/store.ts';
import type { HolderKind } from '../vault/access/permissions.ts';
import { networkOf } from '../lib/network.ts';
import type { RateLimitRule } from './rate-limit-rules.ts';
import type { Route } from './route.ts';

/** Who sends a request; of a key that is not known yet only the address. */
export interface Sender {
  readonly address: string;
  readonly key?: string | undefined;
  readonly kind?: HolderKind;
}

/** @throws VaultError `too_many_requests`; the reply then says, as it always does, what is left. */
type Check = (sender: Sender, reply: FastifyReply) => Promise<void>;

export interface RouteLimits {
  /** Before authentication, which costs a look-up, also for keys that are none. */
  readonly byAddress: Check;
  /** After it, before the body is read. */
  readonly byKey: Check;
}

export interface RateLimitOptions {
  readonly rules: readonly RateLimitRule[];
  readonly store: Store;
  readonly clock: Clock;
}

interface Counted {
  readonly rule: RateLimitRule;
  readonly limiter: Limiter;
}

/** The limits of each route; `undefined` for one that has none. */
export function createRateLimits({ rules, store, clock }: RateLimitOptions) {
  const counted = rules.map((rule): Counted => {
    const { requests, windowMs, blockMs } = rule;
    return { rule, limiter: store.limiter({ name: nameOf(rule), requests, windowMs, blockMs }) };
  });
  return ({ method, path }: Pick<Route, 'method' | 'path'>): RouteLimits | undefined => {
    const name = `${method} ${path}`;
    const own = counted.filter(({ rule }) => rule.routes?.includes(name) ?? true);
    if (own.length === 0) return undefined;
    const [early, late] = [
      own.filter(({ rule }) => !needsKey(rule)),
      own.filter(({ rule }) => needsKey(rule)),
    ];
    return {
      byAddress: (sender, reply) => check(early, sender, { reply, clock }),
      byKey: (sender, reply) => {
        const meant = late.filter(({ rule }) => isMeant(rule, sender));
        return check(meant, sender, { reply, clock });
      },
    };
  };
}

/** Routes that rules name and that do not exist: a misspelt one would limit nothing in silence. */
export function unknownRoutes(
  rules: readonly RateLimitRule[],
  routes: readonly Pick<Route, 'method' | 'path'>[],
): string[] {
  const known = new Set(routes.map(({ method, path }) => `${method} ${path}`));
  return rules.flatMap((rule) => rule.routes ?? []).filter((name) => !known.has(name));
}

function needsKey({ per, kinds }: RateLimitRule): boolean {
  return per.includes('key') || kinds !== undefined;
}

function isMeant({ kinds }: RateLimitRule, { kind }: Sender): boolean {
  return kinds === undefined || (kind !== undefined && kinds.includes(kind));
}

/** Equal on all servers that have the rule, another when the rule changes. */
function nameOf(rule: RateLimitRule): string {
  return sha256(JSON.stringify(rule)).toString('base64url').slice(0, 16);
}

async function check(
  counted: readonly Counted[],
  sender: Sender,
  { reply, clock }: { reply: FastifyReply; clock: Clock },
): Promise<void> {
  const results = await Promise.all(
    counted.map(async ({ rule, limiter }) => ({
      rule,
      standing: await limiter.count(subjectOf(rule, sender)),
    })),
  );
  const [tightest] = results.toSorted((a, b) => roomOf(a.standing) - roomOf(b.standing));
  if (tightest === undefined) return;
  const { rule, standing } = tightest;
  const told = Number(reply.getHeader('ratelimit-remaining') ?? Number.POSITIVE_INFINITY);
  if (roomOf(standing) < told) reply.headers(headersOf(rule, standing, clock));
  if (standing.allowed) return;
  const seconds = secondsOf(standing);
  throw new VaultError('too_many_requests', {
    public: `Too many requests; try again in ${seconds} s.`,
    headers: { 'retry-after': String(seconds) },
  });
}

/** Below 0 for who is refused. */
function roomOf({ allowed, remaining }: Standing): number {
  return allowed ? remaining : -1;
}

function secondsOf({ resetMs }: Standing): number {
  return Math.max(1, Math.ceil(resetMs / second));
}

/** The draft standard's names, in seconds from now, and the older ones, whose reset is a Unix time. */
function headersOf(rule: RateLimitRule, standing: Standing, clock: Clock): Record<string, number> {
  const limit = rule.requests;
  const { remaining } = standing;
  const reset = secondsOf(standing);
  return {
    'ratelimit-limit': limit,
    'ratelimit-remaining': remaining,
    'ratelimit-reset': reset,
    'x-ratelimit-limit': limit,
    'x-ratelimit-remaining': remaining,
    'x-ratelimit-reset': Math.ceil(clock.now() / second) + reset,
  };
}

/** Keys are counted by their hash: counters lie in the database, where no key may be. */
function subjectOf({ per }: RateLimitRule, { address, key = '' }: Sender): string {
  const parts = {
    address: () => networkOf(address),
    key: () => hashApiKey(key),
  };
  return per.map((subject) => parts[subject]()).join(' ');
}
