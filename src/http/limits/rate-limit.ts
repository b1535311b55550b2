/** Rate limits: each request is counted before it costs anything, first by address, then by key. */

import { type Clock, second } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import { networkOf } from '../../base/network.ts';
import type { WindowState } from '../../base/window-counter.ts';
import { hashApiKey } from '../../keys/api-key.ts';
import { sha256 } from '../../keys/digest.ts';
import type { Caller } from '../../rules/caller.ts';
import type { Limiter } from '../../store/limiter.ts';
import type { Store } from '../../store/store.ts';
import type { RequestContext } from '../protocol/request-context.ts';
import type { CountParts, WholeRoute } from '../protocol/route.ts';
import type { RateLimitRule } from './rate-limit-rules.ts';

/** The sender of a request; for a key that is not known yet, only its string. */
export interface Sender {
  readonly address: string;
  readonly key?: string | undefined;
  readonly holder?: Holder | undefined;
  /** The proxy that is called without a key. */
  readonly proxy?: string | undefined;
}

/** The holder of the key. */
export type Holder = Pick<Caller, 'kind' | 'application'>;

/** Says what is left. */
type ResponseHead = Pick<RequestContext, 'headerToSend' | 'setHeaders'>;

/**
 * `undefined` where no rule applies.
 * @throws VaultError `too_many_requests`; the headers of the response say what is left, as always.
 */
type Check = (sender: Sender, context: ResponseHead) => Promise<void> | undefined;

export interface RouteLimits {
  /** Before authentication, which costs a look-up, even for strings that are not keys. */
  readonly byAddress: Check;
  /** After authentication, or once the proxy is known to require no key; before any decision and the body. */
  readonly byKey: Check;
  /** For one request: it was counted already, and the first part of its body with it. */
  readonly ofBody: (sender: Sender) => CountParts;
}

export interface RateLimitOptions {
  readonly rules: readonly RateLimitRule[];
  readonly store: Store;
  readonly clock: Clock;
}

/** Of a route, or of the calls of proxies. */
export interface RouteName {
  readonly method: string;
  readonly path: string;
}

interface RuleWithLimiter {
  readonly rule: RateLimitRule;
  readonly limiter: Limiter;
}

export interface RateLimiting {
  /** The limits of a route, which follow every change of the rules. */
  of(route: RouteName): RouteLimits;
  /** A rule that stays goes on counting. */
  setRules(rules: readonly RateLimitRule[]): void;
}

export function createRateLimits({ rules, store, clock }: RateLimitOptions): RateLimiting {
  const limiters = new Map<string, Limiter>();
  const routes: { readonly name: string; own: RulesOfRoute }[] = [];
  let counted = countedUnder(rules);

  function countedUnder(next: readonly RateLimitRule[]): readonly RuleWithLimiter[] {
    const named = next.map((rule) => ({ rule, name: nameOf(rule) }));
    const names = new Set(named.map(({ name }) => name));
    for (const name of limiters.keys()) if (!names.has(name)) limiters.delete(name);
    return named.map(({ rule, name }) => {
      const { requests, windowMs, blockMs } = rule;
      const limiter = limiters.get(name) ?? store.limiter({ name, requests, windowMs, blockMs });
      limiters.set(name, limiter);
      return { rule, limiter };
    });
  }

  return {
    of: ({ method, path }) => {
      const name = `${method} ${path}`;
      const route = { name, own: rulesOf(name, counted) };
      routes.push(route);
      return {
        byAddress: (sender, context) => check(route.own.early, sender, { context, clock }),
        byKey: (sender, context) =>
          check(meantFor(sender, route.own.late), sender, { context, clock }),
        ofBody: (sender) =>
          sender.holder?.kind === 'public'
            ? partsCounter(meantFor(sender, route.own.all), sender, clock)
            : allowAll,
      };
    },
    setRules: (next) => {
      counted = countedUnder(next);
      for (const route of routes) route.own = rulesOf(route.name, counted);
    },
  };
}

interface RulesOfRoute {
  readonly all: readonly RuleWithLimiter[];
  /** Counted before the key is known. */
  readonly early: readonly RuleWithLimiter[];
  readonly late: readonly RuleWithLimiter[];
}

function rulesOf(name: string, counted: readonly RuleWithLimiter[]): RulesOfRoute {
  const all = counted.filter(({ rule }) => rule.routes?.includes(name) ?? true);
  const early = all.filter(({ rule }) => !needsKey(rule));
  return { all, early, late: all.filter(({ rule }) => needsKey(rule)) };
}

function meantFor(sender: Sender, among: readonly RuleWithLimiter[]): readonly RuleWithLimiter[] {
  return among.filter(({ rule }) => isMeant(rule, sender));
}

const allowAll: CountParts = async (parts) => ({ granted: parts, refusal: undefined });

function partsCounter(
  counted: readonly RuleWithLimiter[],
  sender: Sender,
  clock: Clock,
): CountParts {
  let paid = 1;
  return async (parts) => {
    const covered = Math.min(paid, parts);
    paid -= covered;
    if (parts === covered) return { granted: parts, refusal: undefined };
    const tightest = await countAll(counted, sender, parts - covered);
    if (tightest === undefined || tightest.standing.allowed) return allowAll(parts);
    return { granted: covered + tightest.standing.granted, refusal: tooMany(tightest, clock) };
  };
}

/**
 * Counts the parts of a body that is processed as a whole; `undefined` where they are not counted.
 * @throws VaultError `too_many_requests`
 */
export function countParts(
  { parts }: WholeRoute,
  { body, caller }: RequestContext,
  count: CountParts,
): Promise<void> | undefined {
  if (parts === undefined || caller?.kind !== 'public') return undefined;
  return countRequests(parts(body as never), count);
}

async function countRequests(requests: number, count: CountParts): Promise<void> {
  const { refusal } = await count(requests);
  if (!refusal) return;
  const { code, headers = {} } = refusal;
  throw new VaultError(code, {
    public: `The body counts as ${requests} requests. ${refusal.public}`,
    headers,
  });
}

/** Routes that rules name and that do not exist: a misspelled one would silently limit nothing. */
export function unknownRoutes(
  rules: readonly RateLimitRule[],
  routes: readonly RouteName[],
): string[] {
  const known = new Set(routes.map(({ method, path }) => `${method} ${path}`));
  return rules.flatMap((rule) => rule.routes ?? []).filter((name) => !known.has(name));
}

function needsKey({ per, kinds }: RateLimitRule): boolean {
  return kinds !== undefined || per.some((subject) => subject !== 'address');
}

function isMeant({ kinds, per }: RateLimitRule, { holder, proxy }: Sender): boolean {
  if (per.includes('proxy') !== (proxy !== undefined)) return false;
  return kinds === undefined || (holder !== undefined && kinds.includes(holder.kind));
}

/** Equal on all servers that have the rule, another when the rule changes. */
function nameOf(rule: RateLimitRule): string {
  return sha256(JSON.stringify(rule)).toString('base64url').slice(0, 16);
}

function check(
  counted: readonly RuleWithLimiter[],
  sender: Sender,
  request: { context: ResponseHead; clock: Clock },
): Promise<void> | undefined {
  return counted.length === 0 ? undefined : checkAll(counted, sender, request);
}

async function checkAll(
  counted: readonly RuleWithLimiter[],
  sender: Sender,
  { context, clock }: { context: ResponseHead; clock: Clock },
): Promise<void> {
  const tightest = await countAll(counted, sender, 1);
  if (tightest === undefined) return;
  const { rule, standing } = tightest;
  if (!standing.allowed) throw tooMany(tightest, clock);
  const announced = Number(context.headerToSend('ratelimit-remaining') ?? Number.POSITIVE_INFINITY);
  if (roomOf(standing) < announced) context.setHeaders(headersOf(rule, standing, clock));
}

interface Result {
  readonly rule: RateLimitRule;
  readonly standing: WindowState;
}

/** Counts against every rule, and gives the one that leaves least. */
async function countAll(
  counted: readonly RuleWithLimiter[],
  sender: Sender,
  times: number,
): Promise<Result | undefined> {
  const results = await Promise.all(
    counted.map(async ({ rule, limiter }) => ({
      rule,
      standing: await limiter.count(subjectOf(rule, sender), times),
    })),
  );
  const [tightest] = results.toSorted((a, b) => roomOf(a.standing) - roomOf(b.standing));
  return tightest;
}

function tooMany({ rule, standing }: Result, clock: Clock): VaultError {
  const seconds = secondsOf(standing);
  return new VaultError('too_many_requests', {
    public: `Too many requests; try again in ${seconds} s.`,
    headers: { ...headersOf(rule, standing, clock), 'retry-after': String(seconds) },
  });
}

/** Below 0 where something is refused, and the lower the more of it is. */
function roomOf({ allowed, granted, remaining }: WindowState): number {
  return allowed ? remaining : -1 / (1 + granted);
}

function secondsOf({ resetMs }: WindowState): number {
  return Math.max(1, Math.ceil(resetMs / second));
}

/** The draft standard's names, in seconds from now, and the older ones, whose reset is a Unix time. */
function headersOf(
  rule: RateLimitRule,
  standing: WindowState,
  clock: Clock,
): Record<string, string> {
  const limit = rule.requests;
  const { remaining } = standing;
  const reset = secondsOf(standing);
  const headers = {
    'ratelimit-limit': limit,
    'ratelimit-remaining': remaining,
    'ratelimit-reset': reset,
    'x-ratelimit-limit': limit,
    'x-ratelimit-remaining': remaining,
    'x-ratelimit-reset': Math.ceil(clock.now() / second) + reset,
  };
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, `${value}`]));
}

/** Keys are counted by their hash: counters are in the database, where no key may be. */
function subjectOf(
  { per }: RateLimitRule,
  { address, key = '', holder, proxy = '' }: Sender,
): string {
  const parts = {
    address: () => networkOf(address),
    key: () => hashApiKey(key),
    application: () => holder?.application ?? '',
    proxy: () => proxy,
  };
  return per.map((subject) => parts[subject]()).join(' ');
}
