/** What a store reports of its work for the operator's metrics: numbers and times, and no stored data. */

/** One group of changes that was sent to the engine together. */
export interface ObservedGroup {
  readonly changes: number;
  /** Changes that ended in a conflict, and changes that failed. */
  readonly conflicts: number;
  readonly failures: number;
  /** How long the oldest change had waited, and how long the commit then took. */
  readonly waitedMs: number;
  readonly tookMs: number;
}

/** Called for each group. It neither throws nor waits. */
export type OnGroup = (group: ObservedGroup) => void;

/** The current queue of changes. */
export interface Backlog {
  /** Changes whose commit has not begun. */
  readonly changes: number;
  readonly oldestMs: number;
}

/** Connections that queries share. Only PostgreSQL has them. */
export interface PoolState {
  readonly busy: number;
  readonly idle: number;
  /** Queries that wait for a connection. */
  readonly waiting: number;
}

/** The recent state of a database server. */
export interface HostHealth {
  /** `host:port`, without user or password. */
  readonly host: string;
  /** Whether a session could be opened. */
  readonly isUp: boolean;
  /** Whether the server accepts writes. Exactly one of a primary and its standbys does. */
  readonly isWritable: boolean;
}

export interface StoreState {
  readonly backlog: Backlog;
  readonly pool?: PoolState;
}
