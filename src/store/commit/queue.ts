/** Changes that wait to be committed: bounded in number, in bytes and in time, and handed out in groups. */

import type { Backlog } from '../../base/telemetry/store-work.ts';
import type { CommitOutcome, FlatChange } from '../change.ts';
import type { SqlValue } from '../tables.ts';
import { overloaded, unavailable } from '../unavailable.ts';

/** A group is closed before it passes one of these; a single change is never too large for one. */
export const groupMax = {
  /** Bounds the time a group holds its locks. */
  changes: 256,
  rows: 2_000,
  /** A statement that holds it is some three times as large. */
  bytes: 8 * 2 ** 20,
} as const;

/** The maximum of what waits. Further changes are refused immediately. */
export const waitingMax = { changes: 10_000, bytes: 64 * 2 ** 20 } as const;

/** A change whose commit has not begun by then fails, because its caller has probably given up. */
export const waitMsMax = 5_000;

export interface PendingChange {
  readonly change: FlatChange;
  readonly weight: Weight;
  /** By {@link monotonicMs}. */
  readonly giveUpAt: number;
  resolve(outcome: CommitOutcome): void;
  reject(error: unknown): void;
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

export class Queue {
  readonly #max: { readonly changes: number; readonly bytes: number };
  #waiting: PendingChange[] = [];
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
    return this.#waiting.length === 0;
  }

  get backlog(): Backlog {
    const [oldest] = this.#waiting;
    const oldestMs = oldest ? Math.max(0, waitedMs(oldest)) : 0;
    return { changes: this.#waiting.length, oldestMs };
  }

  /** Rejects the change at once where too much waits already. */
  push(pending: PendingChange): void {
    const bytes = this.#bytes + pending.weight.bytes;
    const tooMany = this.#waiting.length >= this.#max.changes;
    if (tooMany || (!this.isEmpty && bytes > this.#max.bytes)) {
      pending.reject(overloaded('too many changes wait to be committed'));
      return;
    }
    this.#waiting.push(pending);
    this.#bytes = bytes;
  }

  /** The changes that came first, as many as make a group. */
  takeGroup(): PendingChange[] {
    let rows = 0;
    let bytes = 0;
    let length = 0;
    for (const { weight } of this.#waiting) {
      rows += weight.rows;
      bytes += weight.bytes;
      const full = length >= groupMax.changes || rows > groupMax.rows || bytes > groupMax.bytes;
      if (full && length > 0) break;
      length++;
    }
    return this.#take(length);
  }

  /** Until the queue is empty, a change that has waited too long is rejected. */
  watch(): void {
    const [oldest] = this.#waiting;
    if (this.#timer || !oldest) return;
    const patienceMs = Math.max(1, oldest.giveUpAt - monotonicMs());
    this.#timer = setTimeout(() => this.#expire(), patienceMs).unref();
  }

  #expire(): void {
    this.#timer = undefined;
    const now = monotonicMs();
    const alive = this.#waiting.findIndex(({ giveUpAt }) => giveUpAt > now);
    for (const { reject } of this.#take(alive < 0 ? this.#waiting.length : alive))
      reject(expired());
    this.watch();
  }

  #take(length: number): PendingChange[] {
    const taken = this.#waiting.splice(0, length);
    for (const { weight } of taken) this.#bytes -= weight.bytes;
    return taken;
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
