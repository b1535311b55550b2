/** Limits the number of processes with tenants' code across all pools and threads. */
import { sha256 } from '../../keys/digest.ts';

const mebibyte = 1024 * 1024;

/** The maximum memory of a process: the engine's memory, and the data exchanged with its host. */
const bytesPerProcess = 240 * mebibyte;
/** The memory of the vault itself under load. */
const bytesOfVault = 384 * mebibyte;
const processesMax = 64;

/** Calls, and checks of code that is only evaluated: neither takes the other's processes. */
const kinds = ['calls', 'checks'] as const;
export type ProcessKind = (typeof kinds)[number];

/**
 * At least one process of each kind, even if the memory does not suffice for two.
 * @param memoryBytes the memory available to the vault and its processes together.
 */
export function processesByMemory(memoryBytes: number): Readonly<Record<ProcessKind, number>> {
  const fitting = Math.floor((memoryBytes - bytesOfVault) / bytesPerProcess);
  const all = Math.min(processesMax, Math.max(2, fitting));
  const checks = all < 8 ? 1 : 2;
  return { calls: all - checks, checks };
}

/** The slot of a process, counted from before its start until it has ended. */
export interface ProcessPlace {
  giveBack(): void;
}

/** A thread's view of the processes of one kind on all threads. */
export interface ProcessShare {
  /** The maximum on all threads. */
  readonly max: number;
  /**
   * `undefined` if all are in use; then some idle processes end soon. The last quarter, and at least the last slot of
   * several, is for tenants that have none on any thread.
   */
  take(tenant: string): ProcessPlace | undefined;
  /** How many requests were refused. When the number changes, a pool with idle processes ends one. */
  refusals(): number;
  /**
   * How many refusals hit tenants without a process. When the number changes, a process is not reused after its call.
   */
  refusalsOfFirst(): number;
}

export type ProcessBudget = Readonly<Record<ProcessKind, ProcessShare>>;

/** Counters of a kind, before its slots. Each slot is two numbers: the thread and the tenant. */
const facts = ['max', 'refusals', 'refusalsOfFirst', 'next', 'nextAt'] as const;
type PlaceState = (typeof facts)[number];

const lengthOfKind = facts.length + 2 * processesMax;
const beginOf = (kind: ProcessKind) => kinds.indexOf(kind) * lengthOfKind;
const factOf = (kind: ProcessKind, fact: PlaceState) => beginOf(kind) + facts.indexOf(fact);

/** Indexes of the thread numbers in the slots of a kind; the tenant follows each. */
function placesOf(counters: Int32Array, kind: ProcessKind): readonly number[] {
  const max = Atomics.load(counters, factOf(kind, 'max'));
  return Array.from({ length: max }, (_, at) => beginOf(kind) + facts.length + 2 * at);
}

/** The shared memory in which all threads count. */
export function createBudgetMemory(memoryBytes: number): SharedArrayBuffer {
  const memory = new SharedArrayBuffer(kinds.length * lengthOfKind * Int32Array.BYTES_PER_ELEMENT);
  const counters = new Int32Array(memory);
  const most = processesByMemory(memoryBytes);
  for (const kind of kinds) counters[factOf(kind, 'max')] = most[kind];
  return memory;
}

/** @param thread a unique number among current threads, from 0. The process itself has 0. */
export function processBudget(memory: SharedArrayBuffer, thread: number): ProcessBudget {
  const counters = new Int32Array(memory);
  return { calls: shareOf(counters, 'calls', thread), checks: shareOf(counters, 'checks', thread) };
}

const free = 0;

/** How long the next free slot is reserved for the tenant that requested it. Pools retry more often than that. */
const nextMsMax = 500;

function shareOf(counters: Int32Array, kind: ProcessKind, thread: number): ProcessShare {
  const places = placesOf(counters, kind);
  const max = places.length;
  const reserved = max < 2 ? 0 : Math.max(1, Math.floor(max / 4));
  const own = thread + 1;

  function giveBack(place: number): void {
    Atomics.store(counters, place + 1, free);
    Atomics.store(counters, place, free);
  }

  /** Otherwise the tenant that retries most often would get every free slot. */
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

  /** Takes a slot before it checks the limit: if two threads do so at once, one sees the other. */
  function take(tenant: string): ProcessPlace | undefined {
    const name = nameOf(tenant);
    const place = places.find((one) => Atomics.compareExchange(counters, one, free, own) === free);
    if (place !== undefined) Atomics.store(counters, place + 1, name);
    const others = places.filter((one) => one !== place);
    const hasOthers = others.some((one) => Atomics.load(counters, one + 1) === name);
    if (place === undefined) return refuse(name, hasOthers);
    const left = others.filter((one) => Atomics.load(counters, one) === free).length;
    if ((hasOthers && left < reserved) || (left === 0 && isForAnother(name))) {
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

/** Not 0. Two tenants with the same hash count as one. */
function nameOf(tenant: string): number {
  return sha256(tenant).readInt32LE() || 1;
}

/** Releases all processes of a thread that has ended, because they end with it. */
export function endBudgetOf(memory: SharedArrayBuffer, thread: number): void {
  const counters = new Int32Array(memory);
  for (const place of kinds.flatMap((kind) => placesOf(counters, kind))) {
    if (Atomics.load(counters, place) !== thread + 1) continue;
    Atomics.store(counters, place + 1, free);
    Atomics.store(counters, place, free);
  }
}
