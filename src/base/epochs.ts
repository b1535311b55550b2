/**
 * Counters in memory that all threads of a process share. A counter shows that something changed, and all threads see
 * it at once.
 */

const names = [
  /** Groups of commits. A snapshot of the embedded engine that began before the latest commit does not include it. */
  'commits',
  /** Commits that revoked access of a key, an application, or a tenant, or changed its permissions. */
  'access',
  /** Commits that changed or deleted a tenant. */
  'tenants',
  /** Commits that created, changed, or deleted a proxy, or a name of one. */
  'proxies',
  /** Commits that queued asynchronous calls of reactors. */
  'reactor_runs',
  /** Commits that deleted an encryption key of a client. */
  'client_keys',
  /** Commits that created, changed, or deleted a webhook. */
  'webhooks',
  /** Commits that created events. */
  'events',
  /** Commits that requested deliveries of events that were dispatched before. */
  'deliveries',
  /** Which PostgreSQL server accepts the writes, as `store/postgres/primary.ts` encodes it. */
  'primary',
  /** Which data that server has, in the encoding of the same file. */
  'primary_data',
] as const;

export type EpochName = (typeof names)[number];

export interface Epochs {
  /** With this memory, another thread creates the same epochs. */
  readonly memory: SharedArrayBuffer;
  /** A number that differs after each advance of the epoch. */
  now(name: EpochName): number;
  /** Called before any listener is notified of the change. */
  advance(name: EpochName): void;
  /** Compares and swaps. @returns false if the epoch is no longer `seen`, because another thread changed it first. */
  replace(name: EpochName, seen: number, next: number): boolean;
  /** Resolves when the epoch differs from `seen`, or after that many milliseconds. */
  change(name: EpochName, seen: number, ms: number): Promise<void>;
}

/** @param memory of the epochs of another thread. Without it, the epochs are new. */
export function createEpochs(
  memory = new SharedArrayBuffer(names.length * Int32Array.BYTES_PER_ELEMENT),
): Epochs {
  const counters = new Int32Array(memory);
  return {
    memory,
    now: (name) => Atomics.load(counters, names.indexOf(name)),
    advance: (name) => {
      Atomics.add(counters, names.indexOf(name), 1);
      Atomics.notify(counters, names.indexOf(name));
    },
    replace: (name, seen, next) => {
      const was = Atomics.compareExchange(counters, names.indexOf(name), seen, next);
      Atomics.notify(counters, names.indexOf(name));
      return was === seen;
    },
    change: async (name, seen, ms) => {
      await Atomics.waitAsync(counters, names.indexOf(name), seen, ms).value;
    },
  };
}
