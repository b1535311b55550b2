/** All messages between the process and its request threads. */
import type { MessagePort } from 'node:worker_threads';
import type { CountedActivity } from '../access/activity/counting.ts';
import type { OnFailedAuthentication } from '../access/failed-authentication.ts';
import type { LogPosition } from '../audit/find.ts';
import type { Log, LogFields } from '../base/telemetry/log.ts';
import type { Counts, Metrics } from '../base/telemetry/metrics.ts';
import type { GivenBack, Taken, Wanted, WindowState } from '../base/window-counter.ts';
import type { SharedPart, SharedResult } from '../http/bulk/siblings.ts';
import type { Isolation } from '../reactors/sandbox/isolation.ts';
import type { Change } from '../store/change.ts';
import type { Limit } from '../store/limiter.ts';
import type { ChainedEntry } from '../store/log-chain/entries.ts';
import type { StoreHealth } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import type { Config } from './config/config.ts';
import type { VaultKeyCalls } from './remote-vault-keys.ts';
import type { RequestWorkerConfig, WorkerReloadable } from './request-worker.ts';

/** The data with which a thread starts: plain values, and memory that all threads share. */
export interface ThreadData {
  readonly config: RequestWorkerConfig &
    Pick<Config, 'databaseUrl' | 'dataDir' | 'host' | 'logExport' | 'threads'>;
  /** The public name of the vault. */
  readonly vaultName: string;
  readonly epochs: SharedArrayBuffer;
  /** Found once, by the process. */
  readonly isolation: Isolation | undefined;
  /** The shared count of processes with code, and the thread's place in it. */
  readonly budget: { readonly memory: SharedArrayBuffer; readonly thread: number };
  /** The shared time of a clock that is not the machine's. */
  readonly clock: SharedArrayBuffer | undefined;
  readonly requestTimeoutMs: number | undefined;
  /** The name of this server in leases, where the thread takes any. */
  readonly leaseHolder?: string;
}

/** Requests from the process to a thread. */
export interface ThreadCalls {
  /** Builds everything that serves requests; fails like a start of the process. */
  prepare(data: ThreadData): Promise<void>;
  /** @returns the port, which the system chooses for port 0. */
  listen(port: number): Promise<number>;
  /** Uses these settings from now on; where they cannot be used, it changes nothing and says why. */
  apply(settings: WorkerReloadable): Promise<{ readonly problems: readonly string[] }>;
  counts(): Promise<Counts>;
  /** The way to another request thread, which has its other end. */
  addSibling(port: MessagePort): Promise<void>;
  /** Resolves when every request that has begun has its response, and no commit is waiting. */
  stop(): Promise<void>;
}

/** Requests from a thread to the process, which holds these parts once. */
export interface ProcessCalls extends VaultKeyCalls {
  /** Of the embedded engine. */
  writerPort(): Promise<MessagePort>;
  ping(): Promise<StoreHealth>;
  /** Of the embedded engine; servers on PostgreSQL count in the database. */
  countRequests(counted: CountedRequests): Promise<WindowState>;
  takeRequests(asked: TakenRequests): Promise<Taken>;
  giveRequestsBack(given: ReturnedRequests): Promise<void>;
  logRefusals(refused: Change['entries']): Promise<void>;
  logFailedAuthentication(failed: Parameters<OnFailedAuthentication>): Promise<void>;
  countFailedAttempt(address: string): Promise<void>;
  /** Resolves when it is the turn of a key from this address, until `endLookUp`. */
  beginLookUp(address: string): Promise<LookUp>;
  endLookUp(lookUp: LookUp): void;
  pageEnd(page: string): Promise<LogPosition | undefined>;
  setPageEnd(end: { readonly page: string; readonly position: LogPosition }): Promise<void>;
  exposeMetrics(): ReturnType<Metrics['expose']>;
  log(line: LogLine): void;
  /** On PostgreSQL, where threads write log streams of their own. */
  takeEntries(entries: readonly ChainedEntry[]): void;
  takeCheckpoints(checkpoints: readonly Row<'checkpoints'>[]): void;
  takeActivity(counted: readonly CountedActivity[]): void;
  /** Reports a stored note of a grown log. */
  takeNote(note: Row<'due_work'>): void;
}

/** Requests between request threads. */
export interface SiblingCalls {
  importShared(part: PartInTurn): Promise<SharedResult>;
  /** Memory in which it says how many parts it works on. */
  load(): SharedArrayBuffer;
  /** Of a part that was given to the other side: resolves when it may be committed. */
  turn(id: PartInTurn['turn']): Promise<void>;
}

export interface PartInTurn extends SharedPart {
  /** Names its turn. */
  readonly turn: number;
}

/** Names a look-up of a thread. */
export type LookUp = number;

export interface CountedRequests {
  readonly limit: Limit;
  readonly key: string;
  readonly times: number | undefined;
}

interface NamedCounter {
  readonly limit: Limit;
  readonly key: string;
}

interface TakenRequests extends NamedCounter {
  readonly wanted: Wanted;
}

interface ReturnedRequests extends NamedCounter {
  readonly given: GivenBack;
}

export interface LogLine {
  readonly level: keyof Log;
  readonly message: string;
  readonly fields: LogFields | undefined;
}
