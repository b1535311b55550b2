/**
 * The durable queue: work that must happen later, at least once, also after kill -9. What is due is in the database,
 * as rows with a due time, and stays due until its outcome is recorded there. A process finds the tenants that have
 * something due, and gives each of their entities a lane. A lane claims what is due of its entity and attempts it, a
 * few at a time, each attempt in a slot of the tenant. After a crash nothing has to be restored: a claim ends by its
 * time, and then the work is due for every server.
 */
import { type Clock, type Instant, instantAfter, second } from '../base/clock.ts';
import type { TenantId } from '../base/ids.ts';
import { createGrowingPause } from '../base/pauses.ts';
import type { AttemptSlots } from './slots.ts';

/** How long a lane rests after a failure of the vault itself; the failures of the attempted work are outcomes. */
export const failurePauses = { firstMs: second, maxMs: 10 * second };

/** How an attempt ended. */
export interface AttemptEnd {
  /** Called once the slot is free again: the next attempt need not wait until the outcome is recorded. */
  readonly conclude?: () => Promise<void>;
  /** The work could not be attempted and is still due. The lane rests as after a failure. */
  readonly isPostponed?: boolean;
}

/** What a queue says about the work of one entity. */
export interface LaneWork {
  readonly tenant: TenantId;
  /** How many attempts may be under way now. With one at a time, the order of `claim` is the order of attempts. */
  readonly atOnceMax: () => number;
  /** Whether a slot is needed. Without it, a lane that was woken needs one. */
  readonly isReady?: () => boolean;
  /** Called with a slot. `undefined`: nothing is due, or another server has claimed it. */
  readonly claim: () => Promise<LaneAttempt | undefined> | LaneAttempt | undefined;
}

export type LaneAttempt = () => Promise<AttemptEnd | undefined>;

export interface LaneTools {
  readonly clock: Clock;
  readonly slots: AttemptSlots;
  /** Called with each failure of the vault itself. What failed stays due and is retried after a growing pause. */
  readonly onFailure: (error: unknown) => void;
}

export interface RunningLane {
  readonly tenant: TenantId;
  /** Something may be due. Ignored while the lane rests after a failure: the next look wakes it again. */
  wake(): void;
  /** Begins no more attempts. Resolves once those under way are concluded. */
  stop(): Promise<void>;
  /** Resolves when nothing is under way and no slot is waited for. */
  idle(): Promise<void>;
  readonly isIdle: boolean;
  readonly isResting: boolean;
}

export function createLane(
  { clock, slots, onFailure }: LaneTools,
  { tenant, atOnceMax, isReady = () => true, claim }: LaneWork,
  onIdle: () => void = () => undefined,
): RunningLane {
  const pause = createGrowingPause(failurePauses);
  let rest: { readonly from: Instant; readonly until: Instant } | undefined;
  /** With slots, and all that are not concluded. */
  let underWay = 0;
  let unconcluded = 0;
  let wakes = 0;
  let mayHaveMore = false;
  let isStopped = false;
  let withdraw: (() => void) | undefined;
  let waiting: (() => void)[] = [];

  function isResting(): boolean {
    const now = clock.now();
    // The clock may be set back.
    if (rest && (now >= rest.until || now < rest.from)) rest = undefined;
    return rest !== undefined;
  }

  function fall(error?: unknown): void {
    const now = clock.now();
    rest = { from: now, until: instantAfter(now, pause.next()) };
    if (error !== undefined) onFailure(error);
  }

  function isWanting(): boolean {
    if (isStopped || isResting()) mayHaveMore = false;
    return mayHaveMore && isReady() && underWay < atOnceMax();
  }

  function leave(): void {
    withdraw?.();
    withdraw = undefined;
  }

  /** Waits for one slot at a time. */
  function want(): void {
    if (!isWanting()) leave();
    while (withdraw === undefined && isWanting()) {
      let hasBegun = false;
      const withdrawThis = slots.enter(tenant, (free) => {
        hasBegun = true;
        withdraw = undefined;
        void use(free);
      });
      if (!hasBegun) withdraw = withdrawThis;
    }
    if (!isIdle()) return;
    const idle = waiting;
    waiting = [];
    for (const resolve of idle) resolve();
    onIdle();
  }

  async function use(free: () => void): Promise<void> {
    underWay += 1;
    unconcluded += 1;
    let end: AttemptEnd | undefined;
    try {
      end = await attemptNext();
    } catch (error) {
      fall(error);
    }
    underWay -= 1;
    free();
    // The tenant may be entitled to another kind of slot now.
    leave();
    if (end?.conclude) want();
    try {
      await end?.conclude?.();
    } catch (error) {
      fall(error);
    }
    unconcluded -= 1;
    want();
  }

  async function attemptNext(): Promise<AttemptEnd | undefined> {
    const seen = wakes;
    const attempt = isStopped ? undefined : await claim();
    if (attempt === undefined) {
      if (wakes === seen) mayHaveMore = false;
      return undefined;
    }
    const end = await attempt();
    if (end?.isPostponed) fall();
    else {
      rest = undefined;
      pause.reset();
    }
    return end;
  }

  const isIdle = () => unconcluded === 0 && withdraw === undefined;
  const idle = () =>
    isIdle() ? Promise.resolve() : new Promise<void>((resolve) => waiting.push(resolve));

  return {
    tenant,
    wake: () => {
      wakes += 1;
      mayHaveMore = true;
      want();
    },
    stop: () => {
      isStopped = true;
      want();
      return idle();
    },
    idle,
    get isIdle() {
      return isIdle();
    },
    get isResting() {
      return isResting();
    },
  };
}

export interface Lanes<K> {
  /**
   * Something may be due of that entity.
   * @param make called if the entity has no lane.
   */
  wake(key: K, make: (onIdle: () => void) => RunningLane): void;
  /** The tenants of lanes that have something to do, or rest. */
  tenants(): ReadonlySet<TenantId>;
  /** Resolves when nothing is under way. */
  settled(): Promise<void>;
  /** Begins no more attempts. Resolves once those under way are concluded. */
  stop(): Promise<void>;
}

/** The lanes of a process. Each is made when it is woken, and forgotten when it is idle and need not rest. */
export function createLanes<K extends string>(): Lanes<K> {
  const lanes = new Map<K, RunningLane>();
  const resting = new Set<K>();
  let isStopped = false;

  function forget(key: K): void {
    if (lanes.get(key)?.isResting) resting.add(key);
    else {
      resting.delete(key);
      lanes.delete(key);
    }
  }

  return {
    wake: (key, make) => {
      if (isStopped) return;
      resting.delete(key);
      for (const other of resting) forget(other);
      const lane =
        lanes.get(key) ??
        make(() => {
          // A lane can report that it is idle after another one has replaced it.
          if (lanes.get(key) === lane) forget(key);
        });
      lanes.set(key, lane);
      lane.wake();
    },
    tenants: () => new Set([...lanes.values()].map(({ tenant }) => tenant)),
    settled: async () => {
      for (let busy = lanes; busy.size > 0; ) {
        await Promise.all([...busy.values()].map((lane) => lane.idle()));
        busy = new Map([...lanes].filter(([, { isIdle }]) => !isIdle));
      }
    },
    stop: async () => {
      isStopped = true;
      await Promise.all([...lanes.values()].map((lane) => lane.stop()));
    },
  };
}
