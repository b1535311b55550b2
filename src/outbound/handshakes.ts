/**
 * How much processor time TLS handshakes with other hosts may take. A host decides what a handshake costs by the number
 * and the keys of its certificates, and OpenSSL verifies all of them before anything else runs on the thread.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { FairAdmission, type Party } from '../base/admission.ts';
import { type Clock, second, systemClock } from '../base/clock.ts';
import { LruCache } from '../base/lru-cache.ts';
import { threadMs } from '../base/processor-time.ts';
import { type Breaker, createBreaker } from './breaker.ts';
import { OutboundError } from './error.ts';

/**
 * The rest after a step is the square of its cost, divided by this number: as long as the step after a usual one, and
 * thirty times as long after one of 75 ms. All in milliseconds.
 */
const usualMs = 2.5;
const restMsMax = 30 * second;
/** Shorter rests are not worth a timer. */
const restMsMin = 1;

/** A host with several handshakes in a row that cost more than this is not called for a while. */
const expensiveMs = 25;

/** Work of all parties together that begins in one turn of the event loop. */
const turnMsMax = 2;

/** Characters of the names of destinations whose handshakes were expensive. */
const destinationsSizeMax = 500_000;

/** The connection of a request, until it is secured. */
export interface HandshakeOf {
  /** A tenant, or the callers of a tenant that have no key. */
  readonly party: string;
  /** As for {@link Connections}. */
  readonly destination: string;
}

export interface HandshakesOptions {
  readonly clock?: Clock;
  /** The processor time of this thread, in milliseconds. */
  readonly processorMs?: () => number;
  /**
   * Called in the context of the request after each step of its handshake, so that its caller is charged.
   */
  readonly onStep?: (() => void) | undefined;
}

/**
 * Steps of handshakes, one for each packet of a host. A party takes one at a time, and rests after it in proportion to
 * its cost, so that no party blocks the thread for more than a small part of the time, however many hosts it calls.
 */
export class Handshakes {
  readonly #clock: Clock;
  readonly #processorMs: () => number;
  readonly #onStep: () => void;
  readonly #admission = new FairAdmission({
    now: () => performance.now(),
    turnCostMax: turnMsMax,
    // The request has a time limit of its own, and withdraws.
    waitMsMax: Number.POSITIVE_INFINITY,
    limits: {},
  });
  readonly #all = this.#admission.part(this.#admission.root, 'all', {});
  readonly #breakers = new LruCache<Breaker>(destinationsSizeMax);

  constructor({
    clock = systemClock,
    processorMs = threadMs,
    onStep = () => undefined,
  }: HandshakesOptions = {}) {
    this.#clock = clock;
    this.#processorMs = processorMs;
    this.#onStep = onStep;
  }

  /** @throws OutboundError `expensive_tls` while the destination is not called because its handshakes cost too much. */
  requireAffordable(destination: string): void {
    const pauseMs = this.#breakers.get(destination)?.admit() ?? 0;
    if (pauseMs > 0) throw new OutboundError('expensive_tls');
  }

  /** Returns a function that takes the steps of one handshake, in the context in which this was called. */
  begin({ party, destination }: HandshakeOf): HandshakeSteps {
    const inContext = AsyncLocalStorage.snapshot();
    let most = 0;
    return {
      take: (work) => {
        const step = () => {
          const cost = this.#costOf(work);
          most = Math.max(most, cost);
          if (cost > expensiveMs) this.#breakerOf(destination).failed();
          this.#onStep();
          return cost;
        };
        return this.#enter(this.#partOf(party), () => inContext(step));
      },
      succeeded: () => {
        if (most <= expensiveMs) this.#breakers.get(destination)?.succeeded();
      },
    };
  }

  #partOf(party: string): Party {
    return this.#admission.part(this.#all, party, { underWayMax: 1 });
  }

  #enter(party: Party, step: () => number): () => void {
    return this.#admission.enter(party, {
      begin: (admitted) => {
        const cost = step();
        admitted.charge(cost);
        const restMs = Math.min(restMsMax, cost ** 2 / usualMs);
        // The party's next step begins when this one has ended.
        if (restMs < restMsMin) admitted.end();
        else setTimeout(() => admitted.end(), restMs).unref();
      },
      refuse: () => undefined,
    });
  }

  #costOf(work: () => void): number {
    const before = this.#processorMs();
    work();
    return this.#processorMs() - before;
  }

  #breakerOf(destination: string): Breaker {
    const known = this.#breakers.get(destination);
    if (known) return known;
    const breaker = createBreaker(this.#clock);
    this.#breakers.set(destination, breaker);
    return breaker;
  }
}

export interface HandshakeSteps {
  /** Runs the work, now or later. The result withdraws it while it waits. */
  take(work: () => void): () => void;
  /** The connection is secured. */
  succeeded(): void;
}
