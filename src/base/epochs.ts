/** Counters in memory that all threads of a process share: one says that something changed, all see it at once. */

const names = [
  /** Commits of the embedded engine: a snapshot that began before the latest does not show it. */
  'commits',
  /** Commits that took something from a key, an application or a tenant, or changed what it may do. */
  'access',
  /** Commits that changed or ended a tenant. */
  'tenants',
  /** Commits that made, changed or ended a proxy, or a name of one. */
  'proxies',
  /** Commits that asked for asynchronous calls of reactors. */
  'reactor_runs',
  /** Commits that ended an encryption key of a client. */
  'client_keys',
  /** Commits that made, changed or ended a webhook. */
  'webhooks',
  /** Commits that made events. */
  'events',
  /** Commits that asked for deliveries of events that were dispatched before. */
  'deliveries',
  /** Which PostgreSQL server takes the writes, as `store/postgres/primary.ts` writes it. */
  'primary',
  /** Which data that server has, as written there. */
  'primary_data',
] as const;

export type EpochName = (typeof names)[number];

export interface Epochs {
  /** What another thread makes the same epochs of. */
  readonly memory: SharedArrayBuffer;
  /** A number that is another one whenever the epoch was advanced since. */
  now(name: EpochName): number;
  /** Before anybody is notified of what changed. */
  advance(name: EpochName): void;
  /** False where it is not `seen` any more: then somebody else was faster. */
  replace(name: EpochName, seen: number, next: number): boolean;
  /** Resolves once the epoch is another one than `seen`, and after that time at the latest. */
  change(name: EpochName, seen: number, ms: number): Promise<void>;
}

/** @param memory of the epochs of another thread; new ones without. */
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
