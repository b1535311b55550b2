/** The store: rows by key, queries, and changes that are committed whole or not at all. */
import type { MessagePort } from 'node:worker_threads';
import type { CompiledQuery, Kysely } from 'kysely';
import type { Epochs } from '../base/epochs.ts';
import type { HostHealth, OnGroup, StoreState } from '../base/telemetry/store-work.ts';
import type { Bookkeeping, Change, CommitOutcome } from './change.ts';
import type { Limit, Limiter } from './limiter.ts';
import type { ChainedEntry } from './log-chain/entries.ts';
import type { DatabaseSchema, Key, Row, Table } from './tables.ts';

/** Builds a query without running it; the store compiles it for its engine. */
export interface Query<R> {
  (db: Kysely<DatabaseSchema>): { compile(): CompiledQuery<R> };
  /** Under which PostgreSQL keeps the plan: of a query with one text, which is asked again and again. */
  readonly statement?: string;
}

export type CommitListener = (change: Change) => void;

/**
 * Both engines keep the same promises. What `commit` has acknowledged is on disk; a read that begins
 * afterwards, on any server, sees it. Every method fails with `unavailable` while the engine cannot
 * be reached or cannot write, and works again by itself when it can; with `overloaded` while more waits
 * than it can do in time; and with `unavailable` for ever once it is closed.
 */
export interface Store {
  readonly engine: 'sqlite' | 'postgres';
  /** Those of the process: a commit through any store of it advances them before it resolves. */
  readonly epochs: Epochs;
  /** The row of that key. Reads that arrive together are fetched together. */
  get<T extends Table>(table: T, key: Key<T>): Promise<Row<T> | undefined>;
  select<R>(query: Query<R>): Promise<R[]>;
  /** The same for a query that goes through many rows: no other request waits for it. */
  scan<R>(query: Query<R>): Promise<R[]>;
  /**
   * Commits a change together with its log entries and resolves once it is durable. A conflict names
   * the precondition that did not hold; nothing of the change was done then.
   */
  commit(change: Change): Promise<CommitOutcome>;
  /** The same for what the vault keeps for its own work. Nobody is notified of it. */
  record(work: Bookkeeping): Promise<CommitOutcome>;
  /**
   * From now on the listener gets each change that was committed through this store, before its `commit`
   * resolves. It neither throws nor waits.
   */
  subscribe(listener: CommitListener): void;
  /** What waits at this moment. */
  state(): StoreState;
  /** The servers of the database, found a few seconds ago at most. Only PostgreSQL has them. */
  readonly hosts?: () => Promise<readonly HostHealth[]>;
  /** Rejects with `unavailable` when the engine cannot answer. */
  ping(): Promise<StoreHealth>;
  /** Counts requests against a limit, on PostgreSQL together with all servers of the database. */
  limiter(limit: Limit): Limiter;
  /**
   * Removes what the engine itself still keeps of what is gone: the embedded engine's write-ahead log
   * holds pages as they were before, and PostgreSQL counters of windows long over. What PostgreSQL
   * keeps of old rows until it vacuums and recycles its log is its operator's to bound.
   */
  scrub(): Promise<void>;
  /**
   * Of the embedded engine, where it was opened and not attached: for another thread, through which its
   * changes reach the one writer. Rejects with `unavailable` while there is no writer.
   */
  readonly writerPort?: () => Promise<MessagePort>;
  /** Finishes what was accepted, then lets go of the engine. */
  close(): Promise<void>;
}

/** Of an engine that can read and write. */
export interface StoreHealth {
  /** Storage is nearly full: what grows is refused with `insufficient_storage`. */
  readonly isShort: boolean;
}

/** What an engine brings; who is notified of commits is the same for both. */
export type StoreEngine = Omit<Store, 'subscribe' | 'epochs'>;

export interface StoreOptions {
  /** `postgres://…`, or none for the embedded engine. */
  readonly databaseUrl: string | undefined;
  /** Citus: tables that are not distributed yet are, before anything is stored in them. */
  readonly isDistributed?: boolean | undefined;
  /** Where the embedded engine keeps its file. */
  readonly dataDir: string;
  /** Of the embedded engine: so much stays free on its disk for reading and deleting. */
  readonly freeBytesMin?: number | undefined;
  /** A fresh name for the log stream of each writer. */
  readonly newStreamId: () => string;
  /** Called for each group of changes that was handed to the engine. */
  readonly onGroup?: OnGroup | undefined;
  /** Called with log entries once they are durable, each stream's in its order. It neither throws nor waits. */
  readonly onCommitted?: ((entries: readonly ChainedEntry[]) => void) | undefined;
}

/** How another thread of a process opens the store that the process has opened. */
export interface AttachOptions extends StoreOptions {
  readonly epochs: Epochs;
  /** So many attach; together they take few connections more than one server does. */
  readonly threads: number;
  /** The store that was opened, as far as the embedded engine has it once. */
  readonly owner: Required<Pick<Store, 'writerPort' | 'ping' | 'limiter'>>;
}
