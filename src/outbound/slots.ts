/** How many requests are under way at once: to one place, for one partition, and in total; and how many wait. */
import { OutboundError } from './error.ts';

export interface SlotLimits {
  readonly placeMax: number;
  readonly partitionMax: number;
  readonly totalMax: number;
  /** Each may hold a body of some megabytes while it waits. */
  readonly waitingMax: number;
  readonly waitingOfPartitionMax: number;
}

export interface SlotRequest {
  readonly place: string;
  readonly partition: string;
  readonly limit: SlotLimit;
}

/** What may end the wait. Its signal is asked for where there is one. */
export interface SlotLimit {
  readonly signal: AbortSignal;
  throwIfOver(): void;
}

interface WaitingCall extends SlotRequest {
  readonly grant: () => void;
}

/**
 * Agents of Node have limits too, but a request that waits there for one host is not served by a
 * connection to another that falls idle, and stays in the line when it has been given up.
 */
export class Slots {
  readonly #limits: SlotLimits;
  readonly #taken = new Map<string, number>();
  readonly #waiting = new Set<WaitingCall>();
  /** By partition. */
  readonly #waitingOf = new Map<string, number>();
  #total = 0;

  constructor(limits: SlotLimits) {
    this.#limits = limits;
  }

  /**
   * Gives what has to be called when the request is over, once; at once where there is room.
   *
   * @throws OutboundError `busy` when too many wait already, and whatever ends the wait.
   */
  take(request: SlotRequest): (() => void) | Promise<() => void> {
    request.limit.throwIfOver();
    const free = () => {
      this.#count(request, -1);
      this.#grant();
    };
    if (!this.#hasRoom(request)) return this.#wait(request).then(() => free);
    this.#count(request, 1);
    return free;
  }

  #wait(request: SlotRequest): Promise<void> {
    const { partition } = request;
    const { waitingMax, waitingOfPartitionMax } = this.#limits;
    const ofPartition = this.#waitingOf.get(partition) ?? 0;
    if (this.#waiting.size >= waitingMax || ofPartition >= waitingOfPartitionMax) {
      return Promise.reject(new OutboundError('busy'));
    }
    const { signal } = request.limit;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: WaitingCall = {
      ...request,
      grant: () => {
        signal.removeEventListener('abort', giveUp);
        resolve();
      },
    };
    const giveUp = () => {
      this.#leave(waiting);
      reject(signal.reason);
    };
    signal.addEventListener('abort', giveUp, { once: true });
    this.#waiting.add(waiting);
    this.#waitingOf.set(partition, ofPartition + 1);
    return promise;
  }

  #leave(waiting: WaitingCall): void {
    this.#waiting.delete(waiting);
    const left = (this.#waitingOf.get(waiting.partition) ?? 0) - 1;
    if (left > 0) this.#waitingOf.set(waiting.partition, left);
    else this.#waitingOf.delete(waiting.partition);
  }

  /**
   * The partition with the fewest slots goes first, and in it whoever waits longest: a few that hold all slots
   * with slow requests do not keep out others for longer than one of these takes.
   */
  #grant(): void {
    for (let next = this.#next(); next; next = this.#next()) {
      this.#leave(next);
      this.#count(next, 1);
      next.grant();
    }
  }

  #next(): WaitingCall | undefined {
    let chosen: WaitingCall | undefined;
    let fewest = Number.POSITIVE_INFINITY;
    for (const waiting of this.#waiting) {
      const taken = this.#takenBy(waiting);
      if (taken >= fewest || !this.#hasRoom(waiting)) continue;
      chosen = waiting;
      fewest = taken;
    }
    return chosen;
  }

  #takenBy({ partition }: SlotRequest): number {
    return this.#taken.get(partitionKey(partition)) ?? 0;
  }

  #hasRoom(request: SlotRequest): boolean {
    const { placeMax, partitionMax, totalMax } = this.#limits;
    return (
      this.#total < totalMax &&
      (this.#taken.get(placeKey(request.place)) ?? 0) < placeMax &&
      this.#takenBy(request) < partitionMax
    );
  }

  #count({ place, partition }: SlotRequest, change: 1 | -1): void {
    this.#total += change;
    for (const key of [placeKey(place), partitionKey(partition)]) {
      const taken = (this.#taken.get(key) ?? 0) + change;
      if (taken === 0) this.#taken.delete(key);
      else this.#taken.set(key, taken);
    }
  }
}

const placeKey = (place: string) => `place ${place}`;
const partitionKey = (partition: string) => `partition ${partition}`;
