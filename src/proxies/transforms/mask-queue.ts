/** The queue for mask threads: bounded, round robin among tenants, with one string per tenant at a time. */

export interface WaitingLimits {
  readonly count: number;
  /** The total length of the waiting strings. */
  readonly characters: number;
}

export interface MaskQueueLimits {
  readonly ofAll: WaitingLimits;
  readonly ofPartition: WaitingLimits;
}

export interface WaitingText {
  /** The tenant. */
  readonly partition: string;
  readonly text: string;
}

interface TenantLane<T> {
  readonly waiting: T[];
  characters: number;
  isBusy: boolean;
}

export class MaskQueue<T extends WaitingText> {
  readonly #limits: MaskQueueLimits;
  /** The next tenant comes first. */
  readonly #lanes = new Map<string, TenantLane<T>>();
  #count = 0;
  #characters = 0;

  constructor(limits: MaskQueueLimits) {
    this.#limits = limits;
  }

  /** @returns whether there was room. */
  add(one: T): boolean {
    const lane = this.#lanes.get(one.partition) ?? { waiting: [], characters: 0, isBusy: false };
    const { ofAll, ofPartition } = this.#limits;
    const { length } = one.text;
    if (lane.waiting.length >= ofPartition.count || this.#count >= ofAll.count) return false;
    if (lane.characters + length > ofPartition.characters) return false;
    if (this.#characters + length > ofAll.characters) return false;
    lane.waiting.push(one);
    this.#lanes.set(one.partition, lane);
    this.#counted(lane, one, 1);
    return true;
  }

  /** Returns the next job. Its tenant is busy until `release`. */
  take(): T | undefined {
    for (const lane of this.#lanes.values()) {
      if (lane.isBusy) continue;
      const one = lane.waiting.shift();
      if (one === undefined) continue;
      this.#counted(lane, one, -1);
      lane.isBusy = true;
      return one;
    }
    return undefined;
  }

  /** All other tenants get their turn before this one gets another. */
  release(partition: string): void {
    const lane = this.#lanes.get(partition);
    if (lane === undefined) return;
    lane.isBusy = false;
    this.#lanes.delete(partition);
    if (lane.waiting.length > 0) this.#lanes.set(partition, lane);
  }

  /** Has no effect on a job that was already taken. */
  remove(one: T): void {
    const lane = this.#lanes.get(one.partition);
    const at = lane?.waiting.indexOf(one) ?? -1;
    if (lane === undefined || at < 0) return;
    lane.waiting.splice(at, 1);
    this.#counted(lane, one, -1);
    if (!lane.isBusy && lane.waiting.length === 0) this.#lanes.delete(one.partition);
  }

  #counted(lane: TenantLane<T>, { text }: T, times: 1 | -1): void {
    this.#count += times;
    lane.characters += times * text.length;
    this.#characters += times * text.length;
  }
}
