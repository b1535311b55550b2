/** How many processes with code of tenants there may be at one time, in all pools of all threads together. */

const mebibyte = 1024 * 1024;

/** What a process takes at most: the engine's memory, and what it hands to its host and back. */
const bytesPerProcess = 240 * mebibyte;
/** What the vault itself takes under load. */
const bytesOfVault = 384 * mebibyte;
const processesMax = 64;

/** Calls, and code that is only loaded to see what is wrong with it: neither takes the other's processes. */
const kinds = ['calls', 'checks'] as const;
export type ProcessKind = (typeof kinds)[number];

/**
 * At least one process of each kind, also where the memory does not suffice for two.
 * @param memoryBytes what the system lets the vault and its processes have together.
 */
export function processesByMemory(memoryBytes: number): Readonly<Record<ProcessKind, number>> {
  const fitting = Math.floor((memoryBytes - bytesOfVault) / bytesPerProcess);
  const all = Math.min(processesMax, Math.max(2, fitting));
  const checks = all < 8 ? 1 : 2;
  return { calls: all - checks, checks };
}

/** The processes of one kind that a thread has begun, among those of all threads. */
export interface ProcessShare {
  /** How many there may be on all threads. */
  readonly max: number;
  /** False where all are in use; then some that only wait for another call are ended soon. */
  take(): boolean;
  giveBack(): void;
  /** How often one was refused: whoever has processes that do nothing ends one when the number changes. */
  refusals(): number;
}

export type ProcessBudget = Readonly<Record<ProcessKind, ProcessShare>>;

/** Of one thread: how many it has. The process itself has the first. */
const threadsMax = 256;
const places = ['max', 'used', 'refusals'] as const;
type Place = (typeof places)[number];

const placeOf = (kind: ProcessKind, place: Place) =>
  kinds.indexOf(kind) * places.length + places.indexOf(place);
const firstThread = kinds.length * places.length;
const threadPlaceOf = (kind: ProcessKind, thread: number) =>
  firstThread + thread * kinds.length + kinds.indexOf(kind);

/** The memory that all threads count in. */
export function createBudgetMemory(memoryBytes: number): SharedArrayBuffer {
  const length = firstThread + threadsMax * kinds.length;
  const memory = new SharedArrayBuffer(length * Int32Array.BYTES_PER_ELEMENT);
  const counters = new Int32Array(memory);
  const most = processesByMemory(memoryBytes);
  for (const kind of kinds) counters[placeOf(kind, 'max')] = most[kind];
  return memory;
}

/** @param thread a number that no other thread has at the same time, from 0 to 255. */
export function processBudget(memory: SharedArrayBuffer, thread: number): ProcessBudget {
  const counters = new Int32Array(memory);
  return { calls: shareOf(counters, 'calls', thread), checks: shareOf(counters, 'checks', thread) };
}

function shareOf(counters: Int32Array, kind: ProcessKind, thread: number): ProcessShare {
  const used = placeOf(kind, 'used');
  const refusals = placeOf(kind, 'refusals');
  const own = threadPlaceOf(kind, thread);
  const max = Atomics.load(counters, placeOf(kind, 'max'));
  return {
    max,
    take: () => {
      if (Atomics.add(counters, used, 1) < max) {
        Atomics.add(counters, own, 1);
        return true;
      }
      Atomics.sub(counters, used, 1);
      Atomics.add(counters, refusals, 1);
      return false;
    },
    giveBack: () => {
      Atomics.sub(counters, own, 1);
      Atomics.sub(counters, used, 1);
    },
    refusals: () => Atomics.load(counters, refusals),
  };
}

/** Gives back all processes of a thread that has ended, with which they end. */
export function endBudgetOf(memory: SharedArrayBuffer, thread: number): void {
  const counters = new Int32Array(memory);
  for (const kind of kinds) {
    const held = Atomics.exchange(counters, threadPlaceOf(kind, thread), 0);
    Atomics.sub(counters, placeOf(kind, 'used'), held);
  }
}
