/** The store: rows by key, queries, and changes that are committed whole or not at all. */
import type { MessagePort } from 'node:worker_threads';
import type { CompiledQuery, Kysely } from 'kysely';
import type { Clock } from '../base/clock.ts';
import type { Epochs } from '../base/epochs.ts';
import type { TenantId } from '../base/ids.ts';
import type { HostHealth, OnGroup, StoreState } from '../base/telemetry/store-work.ts';
import type { Bookkeeping, Change, CommitOutcome } from './change.ts';
import type { Limit, Limiter } from './limiter.ts';
import type { ChainedEntry } from './log-chain/entries.ts';
import type { RowFromStore, Unread } from './stored-row.ts';
import type { DatabaseSchema, Key, Table } from './tables.ts';

/** Builds a query without running it; the store compiles it for its engine. */
export interface Query<R> {
  (db: Kysely<DatabaseSchema>): { compile(): CompiledQuery<R> };
  /** The name under which PostgreSQL keeps the plan, for a query that runs often with the same SQL. */
  readonly statement?: string;
}

/** Whose turn a scan takes: that of a caller, by a name within the tenant, or that of the vault's own work. */
export type ScanPayer = 'vault' | { readonly tenant: TenantId; readonly name: string };

/** Scans of one state of the database, for the vault's own work. */
export type ScanSnapshot = <R>(query: Query<R> & Unread<R>) => Promise<R[]>;

export type CommitListener = (change: Change) => void;

/**
 * Both engines keep the same promises. What `commit` has acknowledged is on disk; a read that begins afterwards, on
 * any server, sees it. While the engine cannot be reached or cannot write, every method fails with `unavailable`, and
 * works again without a restart afterwards. It fails with `overloaded` while too many requests wait, and with
 * `unavailable` after the store was closed.
 */
export interface Store {
  readonly engine: 'sqlite' | 'postgres';
  /** Those of the process: a commit through any store of it advances them before it resolves. */
  readonly epochs: Epochs;
  /** The row of that key. Reads that arrive together are fetched together. */
  get<T extends Table>(table: T, key: Key<T>): Promise<RowFromStore<T> | undefined>;
  select<R>(query: Query<R> & Unread<R>): Promise<R[]>;
  /** The same for a query over many rows. Other requests do not wait for it, and scans take turns by who pays. */
  scan<R>(query: Query<R> & Unread<R>, payer: ScanPayer): Promise<R[]>;
  /**
   * Runs `work`, all of whose reads see one state of the database, that of the first. Meanwhile the engine keeps what
   * others remove, so `work` must end. Resolves to `undefined`, without a call, where tables are distributed: their
   * machines have no state in common.
   */
  snapshot<R>(work: (scan: ScanSnapshot) => Promise<R>): Promise<R | undefined>;
  /**
   * Commits a change together with its log entries and resolves once it is durable. A conflict names
   * the precondition that did not hold; nothing of the change was done then.
   */
  commit(change: Change): Promise<CommitOutcome>;
  /** The same for the vault's own bookkeeping. Listeners are not notified of it. */
  record(work: Bookkeeping): Promise<CommitOutcome>;
  /**
   * After this call the listener gets each change that was committed through this store, before its `commit`
   * resolves. The listener neither throws nor waits.
   */
  subscribe(listener: CommitListener): void;
  /** The current length of the queues. */
  state(): StoreState;
  /** The servers of the database, as of a few seconds ago at most. Only PostgreSQL has them. */
  readonly hosts?: () => Promise<readonly HostHealth[]>;
  /** Rejects with `unavailable` if the engine cannot respond. */
  ping(): Promise<StoreHealth>;
  /** Counts requests against a limit, on PostgreSQL together with all servers of the database. */
  limiter(limit: Limit): Limiter;
  /**
   * Removes old copies of removed data that the engine still has: pages in the write-ahead log of the embedded
   * engine, and counters of ended windows on PostgreSQL. The operator of PostgreSQL limits how long old rows stay
   * there, by vacuuming and recycling its log.
   */
  scrub(): Promise<void>;
  /**
   * For the embedded engine, if it was opened and not attached: a port through which the changes of another thread
   * reach the one writer. Rejects with `unavailable` while there is no writer.
   */
  readonly writerPort?: () => Promise<MessagePort>;
  /** Finishes accepted work, then closes the engine. */
  close(): Promise<void>;
}

/** Of an engine that can read and write. */
export interface StoreHealth {
  /** Whether storage is nearly full: changes that grow are refused with `insufficient_storage`. */
  readonly isShort: boolean;
}

/** The part of a store that an engine implements. Notification of commits is the same for both. */
export type StoreEngine = Omit<Store, 'subscribe' | 'epochs'>;

export interface StoreOptions {
  /** `postgres://…`, or none for the embedded engine. */
  readonly databaseUrl: string | undefined;
  /** Citus: tables that are not distributed yet are, before anything is stored in them. */
  readonly isDistributed?: boolean | undefined;
  /** Where the embedded engine keeps its file. */
  readonly dataDir: string;
  /** The machine's time unless given. */
  readonly clock?: Clock | undefined;
  /** For the embedded engine: the bytes that stay free on its disk for reading and deleting. */
  readonly freeBytesMin?: number | undefined;
  /** A fresh name for the log stream of each writer. */
  readonly newStreamId: () => string;
  /** Called for each group of changes that was handed to the engine. */
  readonly onGroup?: OnGroup | undefined;
  /** Called with log entries once they are durable, each stream's in its order. It neither throws nor waits. */
  readonly onCommitted?: ((entries: readonly ChainedEntry[]) => void) | undefined;
}

/** The options with which another thread of the process attaches to the store that the process has opened. */
export interface AttachOptions extends StoreOptions {
  readonly epochs: Epochs;
  /** The number of attached threads. Together they use few connections more than one server does. */
  readonly threads: number;
  /** The opened store, for what the embedded engine has only once. */
  readonly owner: Required<Pick<Store, 'writerPort' | 'ping' | 'limiter'>>;
}
