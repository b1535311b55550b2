/** The other request threads, as an import sees them: each can do some of its lines. */
import type { Origin } from '../../rules/caller.ts';
import type { ImportRun } from '../../tokens/import.ts';

/** Lines as they cross to another thread, which authenticates their caller itself. */
export interface SharedPart {
  readonly run: ImportRun;
  readonly key: string | undefined;
  readonly origin: Origin;
  /** The number of the first line. */
  readonly first: number;
  /** The lines, with a newline after each. */
  readonly bytes: Uint8Array;
}

export interface SharedResult {
  /** The lines of the response. */
  readonly bytes: Uint8Array;
  readonly idsAreTaken: boolean;
}

/**
 * @param turn as for an import: nothing is committed before it has resolved.
 * Rejects with {@link SiblingEnded} where the thread ended before it responded.
 */
export type ImportShared = (part: SharedPart, turn: () => Promise<void>) => Promise<SharedResult>;

export interface Sibling {
  readonly importShared: ImportShared;
  readonly load: Load;
}

export interface Siblings {
  /** Of this thread. */
  readonly load: Load;
  /** Those that are there now. */
  all(): readonly Sibling[];
}

/** How many parts of imports a thread works on, its own and those of others, in memory that all threads share. */
export interface Load {
  readonly memory: SharedArrayBuffer;
  now(): number;
  add(parts: number): void;
}

/** @param memory of the load of another thread; a new one without. */
export function createLoad(memory = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)): Load {
  const parts = new Int32Array(memory);
  return {
    memory,
    now: () => Atomics.load(parts, 0),
    add: (more) => {
      Atomics.add(parts, 0, more);
    },
  };
}

export class SiblingEnded extends Error {
  constructor() {
    super('the thread that works on some of the lines ended');
  }
}
