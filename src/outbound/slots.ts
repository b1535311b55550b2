/** Limits requests in progress to one destination, for one partition, and in total, and how many requests may wait. */
import { OutboundError } from './error.ts';

export interface SlotLimits {
  readonly destinationMax: number;
  readonly partitionMax: number;
  /** If it is more than a partition may take, several partitions together leave room for others. */
  readonly totalMax: number;
  /** Each waiting request may hold a body of some megabytes. */
  readonly waitingMax: number;
  readonly waitingOfPartitionMax: number;
}

export interface SlotRequest {
  readonly destination: string;
  readonly partition: string;
  readonly limit: SlotLimit;
}

/** Ends the wait. The signal is created only if a request has to wait. */
export interface SlotLimit {
  readonly signal: AbortSignal;
  throwIfOver(): void;
}

interface WaitingCall extends SlotRequest {
  readonly grant: () => void;
}

/**
 * Node's agents have limits too. But a request that waits there for one host does not use an idle connection to
 * another, and it stays in the queue after it was abandoned.
 */
export class Slots {
  readonly #limits: SlotLimits;
  readonly #taken = new Map<string, number>();
  readonly #waiting = new Set<WaitingCall>();
  /** The number of waiting requests by partition. */
  readonly #waitingOf = new Map<string, number>();
  #total = 0;

  constructor(limits: SlotLimits) {
    this.#limits = limits;
  }

  /**
   * Returns a function to call once when the request has ended. Returns it immediately if there is room.
   *
   * @throws OutboundError `busy` if too many requests wait already, or the reason that ends the wait.
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
   * The partition with the fewest slots goes first, and within it the request that has waited longest.
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
    const { destinationMax, partitionMax, totalMax } = this.#limits;
    const taken = this.#takenBy(request);
    return (
      this.#total < totalMax &&
      (this.#taken.get(destinationKey(request.destination)) ?? 0) < destinationMax &&
      taken < partitionMax &&
      // Responses may last forever. A lone partition gets all of its limit, but several together never take all slots:
      // each has at most a fixed multiple of those that are free.
      taken * (totalMax - partitionMax) < partitionMax * (totalMax - this.#total)
    );
  }

  #count({ destination, partition }: SlotRequest, change: 1 | -1): void {
    this.#total += change;
    for (const key of [destinationKey(destination), partitionKey(partition)]) {
      const taken = (this.#taken.get(key) ?? 0) + change;
      if (taken === 0) this.#taken.delete(key);
      else this.#taken.set(key, taken);
    }
  }
}

const destinationKey = (destination: string) => `destination ${destination}`;
const partitionKey = (partition: string) => `partition ${partition}`;
