/** What a store shows of its work, for the operator's metrics: numbers and times, nothing of what is stored. */

/** One group of changes that went to the engine together. */
export interface ObservedGroup {
  readonly changes: number;
  /** Changes that met a conflict, and changes that failed. */
  readonly conflicts: number;
  readonly failures: number;
  /** How long the first of them had waited, and how long the commit then took. */
  readonly waitedMs: number;
  readonly tookMs: number;
}

/** Called for each group; it neither throws nor waits. */
export type OnGroup = (group: ObservedGroup) => void;

/** What waits at this moment. */
export interface Backlog {
  /** Changes whose commit has not begun. */
  readonly changes: number;
  readonly oldestMs: number;
}

/** Connections that queries share; only PostgreSQL has them. */
export interface PoolState {
  readonly busy: number;
  readonly idle: number;
  /** Queries that wait for one. */
  readonly waiting: number;
}

/** A database server as it was found a moment ago. */
export interface HostHealth {
  /** `host:port`, without user or password. */
  readonly host: string;
  /** A session could be opened. */
  readonly isUp: boolean;
  /** It accepts writes. Of a primary and its standbys exactly one does. */
  readonly isWritable: boolean;
}

export interface StoreState {
  readonly backlog: Backlog;
  readonly pool?: PoolState;
}
