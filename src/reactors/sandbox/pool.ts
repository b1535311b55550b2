/**
 * The process pool. It starts empty, each process serves one tenant until it ends, and calls queue for a process.
 *
 * A call that waits for a host keeps its process, but lets another call compute meanwhile. Therefore the pool counts
 * processors and processes separately: the first are few, and memory limits the second.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { createGrowingPause } from '../../base/pauses.ts';
import { type CodeProcess, startCodeProcess } from './code-process.ts';
import type { Isolation } from './isolation.ts';
import * as limits from './limits.ts';
import { ProcessorShare } from './priority.ts';
import type { ProcessPlace, ProcessShare } from './process-budget.ts';
import type { SandboxState } from './sandbox.ts';

export interface PoolLimits {
  /** Calls that compute concurrently, in total and per tenant. */
  readonly runningMax: number;
  readonly runningPerTenantMax: number;
  /** Calls that have begun, including those that wait for a host. Each has a process. */
  readonly processesMax: number;
  readonly processesPerTenantMax: number;
  /** Calls that have not begun. */
  readonly waitingMax: number;
  readonly waitingPerTenantMax: number;
  /** How long calls wait, and how long a process start that fails is retried. */
  readonly waitMsMax: number;
  readonly idleMsMax: number;
}

/** The defaults of a pool. */
export const poolLimits: PoolLimits = limits;

/** For code that is only evaluated to find its problems: calls and checks never take each other's processes. */
export const checkPoolLimits: PoolLimits = {
  ...poolLimits,
  runningMax: 2,
  runningPerTenantMax: 1,
  processesMax: 2,
  processesPerTenantMax: 1,
  idleMsMax: 5_000,
};

/** A process that is ready, and reserved for the caller until it is released. */
export interface Lease {
  readonly process: CodeProcess;
  /** The call now waits for a host, so others may compute. */
  pause(): void;
  /** Resolves when the call may compute again, or is released. */
  resume(): Promise<void>;
  release(): void;
}

/**
 * The owner of a call: a tenant, then nested parties within it, such as callers with server keys, then one of these
 * keys. Parties of one level take turns.
 */
export type CallOwner = readonly [tenant: string, ...parties: string[]];

export type NoLease = 'tenant busy' | 'pool full' | 'stopped' | 'no process';

export interface ProcessPool {
  lease(owner: CallOwner): Promise<Lease | NoLease>;
  close(): Promise<void>;
  state(): SandboxState;
}

export interface ProcessPoolOptions {
  /** The isolation of every process. */
  readonly isolation: Isolation;
  readonly bounds: PoolLimits;
  /** The limit for all pools together; if absent, only the limits of this pool apply. */
  readonly processes?: ProcessShare | undefined;
  /** Called when the system refuses to lower the priority of a process. */
  readonly onPriorityRefused?: (() => void) | undefined;
  /** A monotonic clock in milliseconds, by which the use of processors is forgiven. */
  readonly now?: (() => number) | undefined;
}

/** The delay between a call and its garbage collection, which the next call should not wait for. */
const restMs = 500;

/**
 * The delay between the first two failed starts. It doubles each time, up to a limit so that other calls do not
 * overtake.
 */
const retryMsMin = 20;
const retryMsMax = 200;

/** The interval for checking whether other pools lack a process while some here are idle. */
const lookMs = 200;

/** The minimum number of attempts, even if the first start takes all the time on an overloaded machine. */
const startsMin = 2;

interface PooledProcess {
  readonly tenant: string;
  readonly process: CodeProcess;
  /** Released when the process has ended. */
  readonly place: ProcessPlace | undefined;
  /** The number of refusals to tenants without a process, as it was when the call began. */
  refusalsBefore: number;
  isBusy: boolean;
  isRemoved: boolean;
  idle: NodeJS.Timeout | undefined;
}

/** A call that has begun. */
interface BegunCall {
  readonly tenant: string;
  /** Whether the call waits for a host. */
  isPaused: boolean;
  /** Set while the call can continue and waits for its turn. */
  onResumed: (() => void) | undefined;
}

interface QueuedCall {
  readonly tenant: string;
  readonly owner: CallOwner;
  readonly end: (lease: NoLease) => void;
  readonly begin: () => void;
}

export function createPool(options: ProcessPoolOptions): ProcessPool {
  return new StartedPool(options);
}

class StartedPool implements ProcessPool {
  readonly #options: ProcessPoolOptions;
  readonly #bounds: PoolLimits;
  /** Least recently used first. */
  readonly #members = new Set<PooledProcess>();
  readonly #begun = new Set<BegunCall>();
  /** In order of arrival. */
  readonly #waiting = new Set<QueuedCall>();
  /** By tenant, for tenants that have used part of their share. */
  readonly #shares = new Map<string, ProcessorShare>();
  /** By tenant with calls: the number of the last call that began for each party. */
  readonly #servedAt = new Map<string, Map<string, number>>();
  #begins = 0;
  readonly #ending = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #looking: NodeJS.Timeout | undefined;

  constructor(options: ProcessPoolOptions) {
    this.#options = options;
    this.#bounds = options.bounds;
  }

  async lease(owner: CallOwner): Promise<Lease | NoLease> {
    if (this.#isClosed) return 'stopped';
    const [tenant] = owner;
    if (this.#mayBegin(tenant)) return this.#begin(owner);
    const { waitingMax, waitingPerTenantMax } = this.#bounds;
    const ofTenant = this.#waitingOf(tenant);
    if (ofTenant.length >= waitingPerTenantMax && !makeWay(owner, ofTenant, 1)) {
      return 'tenant busy';
    }
    if (this.#waiting.size >= waitingMax && !makeWay(owner, [...this.#waiting])) return 'pool full';
    return this.#wait(owner);
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  #waitingOf(tenant: string): readonly QueuedCall[] {
    return [...this.#waiting].filter((one) => one.tenant === tenant);
  }

  #wait(owner: CallOwner): Promise<Lease | NoLease> {
    const [tenant] = owner;
    const { promise, resolve } = Promise.withResolvers<Lease | NoLease>();
    const reason = this.#hasShare(tenant) ? 'pool full' : 'tenant busy';
    const leave = () => {
      clearTimeout(timer);
      this.#waiting.delete(waiting);
    };
    const end = (lease: NoLease) => {
      leave();
      resolve(lease);
    };
    const begin = () => {
      leave();
      resolve(this.#begin(owner));
    };
    const timer = setTimeout(() => end(reason), this.#bounds.waitMsMax);
    const waiting: QueuedCall = { tenant, owner, end, begin };
    this.#waiting.add(waiting);
    return promise;
  }

  #begunOf(tenant: string): readonly BegunCall[] {
    return [...this.#begun].filter((one) => one.tenant === tenant);
  }

  #running(tenant?: string): number {
    return this.#runningCalls().filter((one) => tenant === undefined || one.tenant === tenant)
      .length;
  }

  #runningCalls(): readonly BegunCall[] {
    return [...this.#begun].filter(({ isPaused }) => !isPaused);
  }

  /** Whether the tenant may have another call, ignoring all other tenants. */
  #hasShare(tenant: string): boolean {
    const { runningPerTenantMax, processesPerTenantMax } = this.#bounds;
    return (
      this.#running(tenant) < runningPerTenantMax &&
      this.#begunOf(tenant).length < processesPerTenantMax
    );
  }

  /**
   * Tenants that have used up their share compute after all others and at a lower priority, so they do not prevent
   * other tenants from computing at the same time.
   */
  #mayCompute(tenant: string): boolean {
    const { runningMax, runningPerTenantMax } = this.#bounds;
    const isSpent = this.#isSpent(tenant);
    const others = this.#runningCalls().filter((one) => isSpent || !this.#isSpent(one.tenant));
    return others.length < runningMax && this.#running(tenant) < runningPerTenantMax;
  }

  #isSpent(tenant: string): boolean {
    return this.#shares.get(tenant)?.isSpent ?? false;
  }

  /**
   * The last quarter of the processes is for tenants without one, so that calls waiting for hosts cannot occupy all.
   */
  #mayBegin(tenant: string): boolean {
    const { processesMax } = this.#bounds;
    const reserved = this.#begunOf(tenant).length === 0 ? 0 : Math.floor(processesMax / 4);
    return (
      this.#mayCompute(tenant) &&
      this.#hasShare(tenant) &&
      this.#begun.size < processesMax - reserved
    );
  }

  /** Uses an idle process of the tenant, or a new one. A start that fails is retried. */
  async #begin(owner: CallOwner): Promise<Lease | NoLease> {
    const [tenant] = owner;
    this.#noteServed(owner);
    const call: BegunCall = { tenant, isPaused: false, onResumed: undefined };
    this.#begun.add(call);
    const ends = performance.now() + this.#bounds.waitMsMax;
    const startPause = createGrowingPause({ firstMs: retryMsMin, maxMs: retryMsMax });
    for (let starts = 1; ; starts += 1) {
      const member = this.#idleOf(tenant) ?? this.#start(tenant);
      if (member !== undefined && (await this.#isReady(member))) return this.#leaseOf(call, member);
      const retryMs = startPause.next();
      const isLate = performance.now() + retryMs > ends && starts >= startsMin;
      if (this.#isClosed || isLate) break;
      await pause(retryMs, undefined, { signal: this.#closing.signal }).catch(() => undefined);
    }
    this.#end(call);
    return this.#isClosed ? 'stopped' : 'no process';
  }

  #idleOf(tenant: string): PooledProcess | undefined {
    const member = this.#idle().find((one) => one.tenant === tenant);
    if (member !== undefined) {
      member.isBusy = true;
      clearTimeout(member.idle);
    }
    return member;
  }

  #idle(): readonly PooledProcess[] {
    return [...this.#members].filter(({ isBusy }) => !isBusy);
  }

  async #isReady(member: PooledProcess): Promise<boolean> {
    try {
      await member.process.ready();
      return true;
    } catch {
      this.#remove(member);
      return false;
    }
  }

  /** `undefined` if the system refuses at once. An idle process may have to end to make room. */
  #start(tenant: string): PooledProcess | undefined {
    if (this.#isClosed) return undefined;
    const [oldest] = this.#idle();
    if (oldest !== undefined && this.#members.size >= this.#bounds.processesMax) {
      this.#remove(oldest);
    }
    const { isolation, onPriorityRefused, processes } = this.#options;
    const place = processes?.take(tenant);
    if (processes !== undefined && place === undefined) {
      // Idle processes of other pools end soon, and one of this pool ends at once.
      if (oldest !== undefined) this.#remove(oldest);
      return undefined;
    }
    const share = this.#shareOf(tenant);
    const onEnd = () => this.#remove(member);
    let process: CodeProcess;
    try {
      process = startCodeProcess(isolation, { share, onEnd, onPriorityRefused });
    } catch {
      place?.giveBack();
      return undefined;
    }
    const member: PooledProcess = {
      tenant,
      process,
      place,
      refusalsBefore: 0,
      isBusy: true,
      isRemoved: false,
      idle: undefined,
    };
    this.#members.add(member);
    return member;
  }

  #leaseOf(call: BegunCall, member: PooledProcess): Lease {
    member.refusalsBefore = this.#refusalsOfFirst();
    return {
      process: member.process,
      pause: () => {
        if (call.isPaused || !this.#begun.has(call)) return;
        call.isPaused = true;
        this.#serveWaiting();
      },
      resume: () => this.#resume(call),
      release: () => {
        if (this.#begun.has(call)) this.#release(call, member);
      },
    };
  }

  #refusalsOfFirst(): number {
    return this.#options.processes?.refusalsOfFirst() ?? 0;
  }

  #resume(call: BegunCall): Promise<void> {
    if (!call.isPaused || !this.#begun.has(call)) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const others = call.onResumed;
    call.onResumed = () => {
      others?.();
      resolve();
    };
    this.#serveWaiting();
    return promise;
  }

  #release(call: BegunCall, member: PooledProcess): void {
    member.isBusy = false;
    const isWorn = member.process.calls >= limits.callsPerProcessMax;
    // Otherwise a tenant that calls without a pause would keep its process forever, and others would never get one.
    const isWanted = this.#refusalsOfFirst() !== member.refusalsBefore;
    if (!member.process.isAlive || isWorn || isWanted) {
      this.#remove(member);
    } else if (this.#members.delete(member)) {
      this.#members.add(member);
      this.#watchIdle(member);
      const [oldest, ...others] = this.#idle();
      if (oldest !== undefined && others.length >= this.#bounds.runningMax) this.#remove(oldest);
    }
    this.#end(call);
  }

  #end(call: BegunCall): void {
    this.#begun.delete(call);
    call.onResumed?.();
    this.#serveWaiting();
    if (this.#begunOf(call.tenant).length === 0) this.#servedAt.delete(call.tenant);
  }

  #noteServed([tenant, ...parties]: CallOwner): void {
    const served = this.#servedAt.get(tenant) ?? new Map<string, number>();
    this.#servedAt.set(tenant, served);
    this.#begins += 1;
    for (const level of parties.keys()) served.set(partyName(parties, level), this.#begins);
  }

  /** Orders two calls of one tenant: the party that was served least recently comes first. */
  #inTurn([tenant, ...a]: CallOwner, [, ...b]: CallOwner): number {
    const served = this.#servedAt.get(tenant);
    const level = a.findIndex((name, at) => name !== b[at]);
    if (level < 0) return 0;
    const servedAt = (parties: readonly string[]) => served?.get(partyName(parties, level)) ?? 0;
    return servedAt(a) - servedAt(b);
  }

  /** A share outlives the processes, so that ending them does not restore it. */
  #shareOf(tenant: string): ProcessorShare {
    const held = new Set([...this.#members].map((member) => member.tenant));
    for (const [one, { isUnused }] of this.#shares) {
      if (isUnused && !held.has(one)) this.#shares.delete(one);
    }
    const share =
      this.#shares.get(tenant) ?? new ProcessorShare(() => this.#serveWaiting(), this.#options.now);
    this.#shares.set(tenant, share);
    return share;
  }

  /** While some processes are idle: ends one each time a pool lacks one. */
  #watchShortage(): void {
    const { processes } = this.#options;
    if (processes === undefined || this.#looking !== undefined) return;
    let seen = processes.refusals();
    this.#looking = setInterval(() => {
      const [oldest] = this.#idle();
      const refusals = processes.refusals();
      if (oldest !== undefined && refusals !== seen) this.#remove(oldest);
      seen = refusals;
      if (oldest !== undefined) return;
      clearInterval(this.#looking);
      this.#looking = undefined;
    }, lookMs).unref();
  }

  #watchIdle(member: PooledProcess): void {
    this.#watchShortage();
    member.idle = setTimeout(() => {
      member.process.rest();
      member.idle = setTimeout(() => this.#remove(member), this.#bounds.idleMsMax).unref();
    }, restMs).unref();
  }

  #remove(member: PooledProcess): void {
    clearTimeout(member.idle);
    this.#members.delete(member);
    const ended = member.process.kill();
    this.#ending.add(ended);
    const isFirst = !member.isRemoved;
    member.isRemoved = true;
    ended.then(() => {
      this.#ending.delete(ended);
      if (isFirst) member.place?.giveBack();
    });
  }

  /**
   * First comes the tenant that computes least, and among equals the tenant with fewer calls, so that tenants that
   * always have calls waiting do not starve the others. Within a tenant, calls that have begun come first, then its
   * parties in turn.
   */
  #next(): BegunCall | QueuedCall | undefined {
    const resuming = [...this.#begun].filter(
      ({ tenant, onResumed }) => onResumed !== undefined && this.#mayCompute(tenant),
    );
    const waiting = [...this.#waiting].filter(({ tenant }) => this.#mayBegin(tenant));
    const load = ({ tenant }: { readonly tenant: string }) =>
      this.#running(tenant) * this.#bounds.processesMax + this.#begunOf(tenant).length;
    const [first] = [...resuming, ...waiting].toSorted((a, b) => load(a) - load(b));
    if (first === undefined || !('begin' in first)) return first;
    return waiting
      .filter(({ tenant }) => tenant === first.tenant)
      .toSorted((a, b) => this.#inTurn(a.owner, b.owner))[0];
  }

  #serveWaiting(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      if ('begin' in next) next.begin();
      else {
        const resumed = next.onResumed;
        next.isPaused = false;
        next.onResumed = undefined;
        resumed?.();
      }
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    clearInterval(this.#looking);
    for (const { end } of this.#waiting) end('stopped');
    for (const { onResumed } of this.#begun) onResumed?.();
    for (const member of this.#members) this.#remove(member);
    await Promise.all(this.#ending);
  }

  state(): SandboxState {
    return {
      isolation: this.#options.isolation.name,
      processes: this.#members.size,
      running: this.#running(),
      waiting: this.#waiting.size,
    };
  }
}

function partyName(parties: readonly string[], level: number): string {
  return parties.slice(0, level + 1).join(' ');
}

/**
 * The tenant or party with the most waiting calls gives up its last one, if it has more than the other would.
 * @returns whether a call was removed.
 */
function makeWay(owner: CallOwner, waiting: readonly QueuedCall[], level = 0): boolean {
  const name = owner[level];
  if (name === undefined) return false;
  const most = mostOf(waiting, level);
  const own = waiting.filter((one) => one.owner[level] === name);
  if (most.length > own.length + 1) {
    lastOf(most, level + 1)?.end('tenant busy');
    return true;
  }
  return most.length === own.length && makeWay(owner, own, level + 1);
}

function lastOf(waiting: readonly QueuedCall[], level: number): QueuedCall | undefined {
  const isDivided = waiting.some(({ owner }) => owner[level] !== undefined);
  return isDivided ? lastOf(mostOf(waiting, level), level + 1) : waiting.at(-1);
}

function mostOf(waiting: readonly QueuedCall[], level: number): readonly QueuedCall[] {
  const parties = [...Map.groupBy(waiting, ({ owner }) => owner[level]).values()];
  return parties.reduce((one, other) => (other.length > one.length ? other : one), []);
}
