/**
 * Limits requests in progress to one destination, for one partition, and in total, and how many requests may wait.
 * Streams last as long as their hosts and clients like, so where slots are used up, those of the partition that holds
 * most of them end.
 */
import { type AdmittedEntrant, FairAdmission, type Party } from '../base/admission.ts';
import { type SlowClient, SlowClients } from '../base/slow-clients.ts';
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

/** Of a request in progress. */
export interface Slot {
  /** From now on the request may be cut for others while it only waits for its host or its client. */
  watch(stream: SlowClient): void;
  /** The request has ended. May be called more than once. */
  free(): void;
}

/**
 * Node's agents have limits too. But a request that waits there for one host does not use an idle connection to
 * another, and it stays in the queue after it was abandoned.
 */
export class Slots {
  readonly #limits: SlotLimits;
  readonly #slowClients: SlowClients;
  readonly #admission: FairAdmission;
  readonly #all: Party;

  /** @param now a monotonic clock in milliseconds. */
  constructor(limits: SlotLimits, now = () => performance.now()) {
    const { totalMax, partitionMax, waitingMax } = limits;
    this.#limits = limits;
    this.#slowClients = new SlowClients(now);
    this.#admission = new FairAdmission({
      now,
      // The request has a time limit of its own, and withdraws.
      waitMsMax: Number.POSITIVE_INFINITY,
      limits: {},
      order: 'under way',
      reclaim: this.#slowClients.reclaim,
    });
    const several = totalMax > partitionMax;
    this.#all = this.#admission.part(this.#admission.root, 'all', {
      underWayMax: totalMax,
      waitingMax,
      // A lone partition gets all of its limit, but several together never take all slots.
      ...(several && { partOfFreeMax: partitionMax / (totalMax - partitionMax) }),
    });
  }

  /**
   * Returns a slot, immediately if there is room. The partition with the fewest slots goes first, and within it the
   * request that has waited longest.
   *
   * @throws OutboundError `busy` if too many requests wait already, or the reason that ends the wait.
   */
  take(request: SlotRequest): Slot | Promise<Slot> {
    const { limit } = request;
    limit.throwIfOver();
    let slot: Slot | undefined;
    const { promise, resolve, reject } = Promise.withResolvers<Slot>();
    const withdraw = this.#admission.enter(this.#partyOf(request), {
      begin: (admitted) => {
        slot = this.#slotOf(admitted);
        resolve(slot);
      },
      refuse: () => reject(new OutboundError('busy')),
    });
    return slot ?? waitingFor(promise, limit, withdraw);
  }

  #partyOf({ partition, destination }: SlotRequest): Party {
    const { partitionMax, destinationMax, waitingOfPartitionMax } = this.#limits;
    const ofPartition = this.#admission.part(this.#all, partition, {
      underWayMax: partitionMax,
      waitingMax: waitingOfPartitionMax,
    });
    return this.#admission.part(ofPartition, destination, { underWayMax: destinationMax });
  }

  #slotOf(admitted: AdmittedEntrant): Slot {
    let unwatch: (() => void) | undefined;
    return {
      watch: (stream) => {
        const watched = this.#slowClients.watch(admitted, stream);
        unwatch = () => this.#slowClients.unwatch(watched);
      },
      free: () => {
        unwatch?.();
        unwatch = undefined;
        admitted.end();
      },
    };
  }
}

async function waitingFor(
  taken: Promise<Slot>,
  { signal }: SlotLimit,
  withdraw: () => void,
): Promise<Slot> {
  const ended = Promise.withResolvers<never>();
  const giveUp = () => {
    withdraw();
    ended.reject(signal.reason);
  };
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    return await Promise.race([taken, ended.promise]);
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}
