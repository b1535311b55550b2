/** The processes: none before the first call, each for one tenant until its end, and who waits for one. */
import { type CodeProcess, startCodeProcess } from './code-process.ts';
import { type Isolation, isolations } from './isolation.ts';
import * as limits from './limits.ts';
import { ProcessorShare } from './priority.ts';
import type { SandboxState } from './sandbox.ts';

export interface PoolLimits {
  /** In all, and so the calls at one time. */
  readonly processesMax: number;
  readonly callsPerTenantMax: number;
  readonly waitingMax: number;
  readonly waitingPerTenantMax: number;
  readonly waitMsMax: number;
  readonly idleMsMax: number;
}

export const poolLimits: PoolLimits = limits;

/** A process that is ready, and the caller's alone until it is released. */
export interface Lease {
  readonly process: CodeProcess;
  release(): void;
}

export type NoLease = 'tenant busy' | 'pool full' | 'stopped' | 'crashed';

export type OnIsolation = (name: Isolation['name']) => void;

export interface ProcessPool {
  lease(tenant: string): Promise<Lease | NoLease>;
  close(): Promise<void>;
  state(): SandboxState;
}

/** Between a call and the collection of its garbage, which the next call should not wait for. */
const restMs = 500;

/** More than there are ways: on a machine that permits only the last, the first call finds it. */
const startsMax = 7;

interface PooledProcess {
  readonly tenant: string;
  readonly process: CodeProcess;
  isBusy: boolean;
  idle: NodeJS.Timeout | undefined;
}

interface WaitingRun {
  readonly tenant: string;
  readonly resolve: (lease: Lease | NoLease) => void;
  readonly timer: NodeJS.Timeout;
}

/** @param onIsolation is called once, with the way that this machine permits. */
export function createPool(
  bounds: PoolLimits,
  onIsolation: OnIsolation = () => undefined,
): ProcessPool {
  return new StartedPool(bounds, onIsolation);
}

class StartedPool implements ProcessPool {
  readonly #bounds: PoolLimits;
  readonly #onIsolation: OnIsolation;
  #hasStarted = false;
  readonly #members = new Set<PooledProcess>();
  /** In the order in which they came. */
  readonly #waiting = new Set<WaitingRun>();
  /** By tenant, of those that have used some of theirs. */
  readonly #shares = new Map<string, ProcessorShare>();
  #ways: readonly Isolation[] = [];
  readonly #ending = new Set<Promise<void>>();
  #isClosed = false;

  constructor(bounds: PoolLimits, onIsolation: OnIsolation) {
    this.#bounds = bounds;
    this.#onIsolation = onIsolation;
  }

  async lease(tenant: string): Promise<Lease | NoLease> {
    if (this.#isClosed) return 'stopped';
    if (this.#mayRun(tenant)) return this.#take(tenant);
    const ofTenant = [...this.#waiting].filter((one) => one.tenant === tenant).length;
    if (ofTenant >= this.#bounds.waitingPerTenantMax) return 'tenant busy';
    if (this.#waiting.size >= this.#bounds.waitingMax) return 'pool full';
    return this.#wait(tenant);
  }

  #wait(tenant: string): Promise<Lease | NoLease> {
    const { promise, resolve } = Promise.withResolvers<Lease | NoLease>();
    const reason =
      this.#running(tenant) >= this.#bounds.callsPerTenantMax ? 'tenant busy' : 'pool full';
    const timer = setTimeout(() => {
      this.#waiting.delete(waiting);
      resolve(reason);
    }, this.#bounds.waitMsMax);
    const waiting = { tenant, resolve, timer };
    this.#waiting.add(waiting);
    return promise;
  }

  #running(tenant?: string): number {
    const busy = [...this.#members].filter(({ isBusy }) => isBusy);
    return busy.filter((one) => tenant === undefined || one.tenant === tenant).length;
  }

  #mayRun(tenant: string): boolean {
    const { processesMax, callsPerTenantMax } = this.#bounds;
    return this.#running() < processesMax && this.#running(tenant) < callsPerTenantMax;
  }

  /** Whatever the tenant has, else a new process, for which one that is idle may have to end. */
  async #take(tenant: string): Promise<Lease | NoLease> {
    for (let tries = 0; tries < startsMax; tries += 1) {
      const idle = [...this.#members].filter(({ isBusy }) => !isBusy);
      const known = idle.find((one) => one.tenant === tenant);
      if (known === undefined && this.#members.size >= this.#bounds.processesMax) {
        // The set is in the order of last use.
        const [oldest] = idle;
        if (oldest !== undefined) this.#remove(oldest);
      }
      const member = known ?? this.#start(tenant);
      member.isBusy = true;
      clearTimeout(member.idle);
      if (await this.#isReady(member)) return this.#leaseOf(member);
      if (this.#isClosed) return 'stopped';
    }
    this.#serveWaiting();
    return 'crashed';
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

  /** The ways that failed are not tried again. */
  #start(tenant: string): PooledProcess {
    if (this.#ways.length === 0) this.#ways = isolations();
    const [way, ...weaker] = this.#ways;
    if (way === undefined) throw new Error('no way to start a process');
    const onEnd = () => this.#remove(member);
    const process = startCodeProcess(way, { share: this.#shareOf(tenant), onEnd });
    if (!this.#hasStarted) {
      process.ready().then(
        () => this.#settleOn(way),
        () => {
          if (weaker.length > 0 && this.#ways[0] === way && process.isRefused) this.#ways = weaker;
        },
      );
    }
    const member: PooledProcess = { tenant, process, isBusy: true, idle: undefined };
    this.#members.add(member);
    return member;
  }

  #settleOn(way: Isolation): void {
    if (this.#hasStarted || this.#ways[0] !== way) return;
    this.#hasStarted = true;
    this.#ways = [way];
    this.#onIsolation(way.name);
  }

  #leaseOf(member: PooledProcess): Lease {
    let isReleased = false;
    return {
      process: member.process,
      release: () => {
        if (isReleased) return;
        isReleased = true;
        this.#release(member);
      },
    };
  }

  #release(member: PooledProcess): void {
    member.isBusy = false;
    if (!member.process.isAlive || member.process.calls >= limits.callsPerProcessMax) {
      this.#remove(member);
    } else if (this.#members.delete(member)) {
      this.#members.add(member);
      this.#watchIdle(member);
    }
    this.#serveWaiting();
  }

  /** It outlives the processes, so that ending them gives nothing back. */
  #shareOf(tenant: string): ProcessorShare {
    const held = new Set([...this.#members].map((member) => member.tenant));
    for (const [one, { isUnused }] of this.#shares) {
      if (isUnused && !held.has(one)) this.#shares.delete(one);
    }
    const share = this.#shares.get(tenant) ?? new ProcessorShare();
    this.#shares.set(tenant, share);
    return share;
  }

  #watchIdle(member: PooledProcess): void {
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
    ended.then(() => this.#ending.delete(ended));
  }

  /** First whoever runs least: tenants that always have calls waiting do not keep out the others. */
  #nextWaiting(): WaitingRun | undefined {
    const able = [...this.#waiting].filter(({ tenant }) => this.#mayRun(tenant));
    return able.toSorted((a, b) => this.#running(a.tenant) - this.#running(b.tenant))[0];
  }

  #serveWaiting(): void {
    for (;;) {
      const waiting = this.#nextWaiting();
      if (waiting === undefined) return;
      this.#waiting.delete(waiting);
      clearTimeout(waiting.timer);
      this.#take(waiting.tenant).then(waiting.resolve);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { resolve, timer } of this.#waiting) {
      clearTimeout(timer);
      resolve('stopped');
    }
    this.#waiting.clear();
    for (const member of this.#members) this.#remove(member);
    await Promise.all(this.#ending);
  }

  state(): SandboxState {
    return {
      isolation: this.#ways.length === 1 ? this.#ways[0]?.name : undefined,
      processes: this.#members.size,
      running: this.#running(),
      waiting: this.#waiting.size,
    };
  }
}
