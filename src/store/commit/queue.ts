/** Changes that wait to be committed: bounded in number, in bytes and in time, and handed out in groups. */

import assert from 'node:assert/strict';
import { Heap } from '../../base/heap.ts';
import { LinkedList, type ListLink } from '../../base/linked-list.ts';
import type { Backlog } from '../../base/telemetry/store-work.ts';
import type { CommitOutcome, FlatChange } from '../change.ts';
import type { SqlValue } from '../tables.ts';
import { overloaded, unavailable } from '../unavailable.ts';

/** A group is closed before it passes one of these; a single change is never too large for one. */
export const groupMax = {
  /** Bounds the time a group holds its locks. */
  changes: 256,
  rows: 2_000,
  /** While several callers commit: a change that comes next waits for the group that has begun. */
  rowsBesideOthers: 256,
  /** A statement that holds it is some three times as large. */
  bytes: 8 * 2 ** 20,
} as const;

/** The maximum of what waits. Further changes are refused immediately. */
export const waitingMax = { changes: 10_000, bytes: 64 * 2 ** 20 } as const;

/** A change whose commit has not begun by then fails, because its caller has probably given up. */
export const waitMsMax = 5_000;

/** Callers that committed within this time count as active at the same time. */
const sharedMs = 500;

export interface PendingChange {
  /** Who pays for it: each caller has the same share of the groups. */
  readonly caller: string;
  readonly change: FlatChange;
  readonly weight: Weight;
  /** By {@link monotonicMs}. */
  readonly giveUpAt: number;
  /** Called with what became of it; only the first call has an effect. */
  end(outcome: CommitOutcome | Error): void;
}

interface Weight {
  readonly rows: number;
  readonly bytes: number;
}

/** How long it has waited by now. */
export function waitedMs({ giveUpAt }: Pick<PendingChange, 'giveUpAt'>): number {
  return monotonicMs() - (giveUpAt - waitMsMax);
}

/** Milliseconds of a monotonic clock that is the same on every thread. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

/** The changes of one caller that wait, in their order. */
interface WaitingCaller {
  readonly name: string;
  readonly changes: LinkedList<PendingChange>;
  /** How much of it was taken, counted from what the others had when it came. The least is next. */
  taken: number;
}

interface Links {
  readonly all: ListLink<PendingChange>;
  readonly own: ListLink<PendingChange>;
}

/** Of the bytes of a change, so many cost as much as a row. */
const bytesOfRow = 1_024;

/** Each caller has its turn: the changes of one that has many, or large ones, do not hold up those of another. */
export class Queue {
  readonly #max: { readonly changes: number; readonly bytes: number };
  /** The longest wait first. */
  readonly #waiting = new LinkedList<PendingChange>();
  readonly #links = new Map<PendingChange, Links>();
  readonly #callers = new Map<string, WaitingCaller>();
  readonly #next = new Heap<WaitingCaller>((a, b) => a.taken < b.taken);
  /** What the caller had whose change was taken last. */
  #taken = 0;
  #latest: string | undefined;
  #sharedUntil = Number.NEGATIVE_INFINITY;
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param threads that have a queue each; together they hold no more than one does. */
  constructor(threads = 1) {
    this.#max = {
      changes: Math.ceil(waitingMax.changes / threads),
      bytes: Math.ceil(waitingMax.bytes / threads),
    };
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  get backlog(): Backlog {
    const { first: oldest, size: changes } = this.#waiting;
    return { changes, oldestMs: oldest ? Math.max(0, waitedMs(oldest)) : 0 };
  }

  /** Rejects the change at once where too much waits already. */
  push(pending: PendingChange): void {
    const bytes = this.#bytes + pending.weight.bytes;
    const tooMany = this.#waiting.size >= this.#max.changes;
    if (tooMany || (!this.isEmpty && bytes > this.#max.bytes)) {
      pending.end(overloaded('too many changes wait to be committed'));
      return;
    }
    const caller = this.#callerOf(pending);
    this.#links.set(pending, {
      all: this.#waiting.add(pending),
      own: caller.changes.add(pending),
    });
    this.#bytes = bytes;
  }

  /** As many changes as make a group, those of the caller first of whom least was taken. */
  takeGroup(): PendingChange[] {
    const group: PendingChange[] = [];
    let rows = 0;
    let bytes = 0;
    const isShared = this.#callers.size > 1 || monotonicMs() < this.#sharedUntil;
    const rowsMax = isShared ? groupMax.rowsBesideOthers : groupMax.rows;
    for (let caller = this.#next.first; caller; caller = this.#next.first) {
      const { first: pending } = caller.changes;
      assert(pending, 'a caller without changes is forgotten');
      const { weight } = pending;
      rows += weight.rows;
      bytes += weight.bytes;
      const isFull = group.length >= groupMax.changes || rows > rowsMax || bytes > groupMax.bytes;
      if (isFull && group.length > 0) break;
      this.#taken = caller.taken;
      caller.taken += 1 + weight.rows + weight.bytes / bytesOfRow;
      this.#next.put(caller);
      this.#take(pending);
      group.push(pending);
    }
    // In the order in which they came, which is that of the log.
    return group.sort((a, b) => a.giveUpAt - b.giveUpAt);
  }

  /** Until the queue is empty, a change that has waited too long is rejected. */
  watch(): void {
    const { first: oldest } = this.#waiting;
    if (this.#timer || !oldest) return;
    const patienceMs = Math.max(1, oldest.giveUpAt - monotonicMs());
    this.#timer = setTimeout(() => this.#expire(), patienceMs).unref();
  }

  #expire(): void {
    this.#timer = undefined;
    const now = monotonicMs();
    let oldest = this.#waiting.first;
    for (; oldest && oldest.giveUpAt <= now; oldest = this.#waiting.first) {
      this.#take(oldest);
      oldest.end(expired());
    }
    this.watch();
  }

  #callerOf({ caller: name, giveUpAt }: PendingChange): WaitingCaller {
    if (name !== this.#latest) {
      const isFirst = this.#latest === undefined;
      this.#latest = name;
      if (!isFirst) this.#sharedUntil = giveUpAt - waitMsMax + sharedMs;
    }
    const known = this.#callers.get(name);
    if (known) return known;
    const caller = { name, changes: new LinkedList<PendingChange>(), taken: this.#taken };
    this.#callers.set(name, caller);
    this.#next.put(caller);
    return caller;
  }

  #take(pending: PendingChange): void {
    const links = this.#links.get(pending);
    const caller = this.#callers.get(pending.caller);
    assert(links && caller, 'only a change that waits is taken');
    this.#links.delete(pending);
    this.#waiting.remove(links.all);
    caller.changes.remove(links.own);
    this.#bytes -= pending.weight.bytes;
    if (caller.changes.size > 0) return;
    this.#callers.delete(caller.name);
    this.#next.delete(caller);
  }
}

export function expired(): Error {
  return unavailable('the change waited too long for its commit to begin');
}

/** Roughly what the change is in memory and on its way to the engine. */
export function weightOf({
  operations,
  entries,
}: Pick<FlatChange, 'operations' | 'entries'>): Weight {
  let bytes = 0;
  for (const { text } of entries) bytes += text.length;
  for (const { values } of operations) for (const value of values) bytes += sizeOf(value);
  return { rows: operations.length + entries.length, bytes };
}

function sizeOf(value: SqlValue): number {
  if (typeof value === 'string') return value.length;
  return value instanceof Uint8Array ? value.byteLength : 8;
}
