/** How many processes with code of tenants there may be at one time, in all pools of all threads together. */
import { sha256 } from '../../keys/digest.ts';

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

/** Where a process is counted, from before its start until it has ended. */
export interface ProcessPlace {
  giveBack(): void;
}

/** The processes of one kind that a thread has begun, among those of all threads. */
export interface ProcessShare {
  /** How many there may be on all threads. */
  readonly max: number;
  /**
   * `undefined` where all are in use; then some that only wait for another call are ended soon. The last quarter, and
   * at least the last one of several, is for tenants that have none on any thread.
   */
  take(tenant: string): ProcessPlace | undefined;
  /** How often one was refused: whoever has processes that do nothing ends one when the number changes. */
  refusals(): number;
  /** How often of those to a tenant that had none: whoever ends a call then does not keep its process. */
  refusalsOfFirst(): number;
}

export type ProcessBudget = Readonly<Record<ProcessKind, ProcessShare>>;

/** Of a kind, before its places: each is two numbers, the thread that has it, and the tenant. */
const facts = ['max', 'refusals', 'refusalsOfFirst', 'next', 'nextAt'] as const;
type PlaceState = (typeof facts)[number];

const lengthOfKind = facts.length + 2 * processesMax;
const beginOf = (kind: ProcessKind) => kinds.indexOf(kind) * lengthOfKind;
const factOf = (kind: ProcessKind, fact: PlaceState) => beginOf(kind) + facts.indexOf(fact);

/** Where the threads of the places of a kind are; the tenant of each is behind it. */
function placesOf(counters: Int32Array, kind: ProcessKind): readonly number[] {
  const max = Atomics.load(counters, factOf(kind, 'max'));
  return Array.from({ length: max }, (_, at) => beginOf(kind) + facts.length + 2 * at);
}

/** The memory that all threads count in. */
export function createBudgetMemory(memoryBytes: number): SharedArrayBuffer {
  const memory = new SharedArrayBuffer(kinds.length * lengthOfKind * Int32Array.BYTES_PER_ELEMENT);
  const counters = new Int32Array(memory);
  const most = processesByMemory(memoryBytes);
  for (const kind of kinds) counters[factOf(kind, 'max')] = most[kind];
  return memory;
}

/** @param thread a number that no other thread has at the same time, from 0. The process itself has 0. */
export function processBudget(memory: SharedArrayBuffer, thread: number): ProcessBudget {
  const counters = new Int32Array(memory);
  return { calls: shareOf(counters, 'calls', thread), checks: shareOf(counters, 'checks', thread) };
}

const free = 0;

/** For so long the next free place is for the tenant that asked for it. Pools ask more often than that. */
const nextMsMax = 500;

function shareOf(counters: Int32Array, kind: ProcessKind, thread: number): ProcessShare {
  const places = placesOf(counters, kind);
  const max = places.length;
  const kept = max < 2 ? 0 : Math.max(1, Math.floor(max / 4));
  const own = thread + 1;

  function giveBack(place: number): void {
    Atomics.store(counters, place + 1, free);
    Atomics.store(counters, place, free);
  }

  /** Without it whoever asks most often would get each place that becomes free. */
  function isForAnother(name: number): boolean {
    const next = Atomics.load(counters, factOf(kind, 'next'));
    const ageMs = (Date.now() | 0) - Atomics.load(counters, factOf(kind, 'nextAt'));
    return next !== free && next !== name && (ageMs | 0) >= 0 && (ageMs | 0) < nextMsMax;
  }

  function refuse(name: number, hasOthers: boolean): undefined {
    Atomics.add(counters, factOf(kind, 'refusals'), 1);
    if (hasOthers) return;
    Atomics.add(counters, factOf(kind, 'refusalsOfFirst'), 1);
    if (isForAnother(name)) return;
    Atomics.store(counters, factOf(kind, 'nextAt'), Date.now() | 0);
    Atomics.store(counters, factOf(kind, 'next'), name);
  }

  /** First it takes a place, and then looks: of two threads that do so at once, one sees the other. */
  function take(tenant: string): ProcessPlace | undefined {
    const name = nameOf(tenant);
    const place = places.find((one) => Atomics.compareExchange(counters, one, free, own) === free);
    if (place !== undefined) Atomics.store(counters, place + 1, name);
    const others = places.filter((one) => one !== place);
    const hasOthers = others.some((one) => Atomics.load(counters, one + 1) === name);
    if (place === undefined) return refuse(name, hasOthers);
    const left = others.filter((one) => Atomics.load(counters, one) === free).length;
    if ((hasOthers && left < kept) || (left === 0 && isForAnother(name))) {
      giveBack(place);
      return refuse(name, hasOthers);
    }
    Atomics.compareExchange(counters, factOf(kind, 'next'), name, free);
    return { giveBack: () => giveBack(place) };
  }

  return {
    max,
    take,
    refusals: () => Atomics.load(counters, factOf(kind, 'refusals')),
    refusalsOfFirst: () => Atomics.load(counters, factOf(kind, 'refusalsOfFirst')),
  };
}

/** Not 0. Two tenants with the same one would count as one. */
function nameOf(tenant: string): number {
  return sha256(tenant).readInt32LE() || 1;
}

/** Gives back all processes of a thread that has ended, with which they end. */
export function endBudgetOf(memory: SharedArrayBuffer, thread: number): void {
  const counters = new Int32Array(memory);
  for (const place of kinds.flatMap((kind) => placesOf(counters, kind))) {
    if (Atomics.load(counters, place) !== thread + 1) continue;
    Atomics.store(counters, place + 1, free);
    Atomics.store(counters, place, free);
  }
}
