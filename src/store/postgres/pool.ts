/**
 * Sessions that queries share: bounded in number, and so is what waits for one of them. Reads by key wait in a line of
 * their own, and every second session that is free is theirs: however many queries of other kinds somebody causes, a
 * read of single rows waits for one of them.
 */

import type { QueryConfig, QueryResult } from 'pg';
import type { PoolState } from '../../base/telemetry/store-work.ts';
import { overloaded, unavailable } from '../unavailable.ts';
import type { Session } from './session.ts';

export interface PoolOptions {
  readonly sessionsMax: number;
  /** Of each line. Queries beyond it are refused immediately. */
  readonly waitingMax: number;
  readonly waitMsMax: number;
  /** Rejects when there is no server for it. */
  connect(): Promise<Session>;
}

/** In which a query waits for a session. */
export type Line = 'by key' | 'others';

interface Waiter {
  readonly giveUpAt: number;
  resolve(session: Session): void;
  reject(error: unknown): void;
}

/** An idle session is closed after one to two of these periods. */
const idleMs = 10_000;

export class Pool {
  readonly #options: PoolOptions;
  readonly #sweep: NodeJS.Timeout;
  #idle: { readonly session: Session; readonly since: number }[] = [];
  readonly #lines: Readonly<Record<Line, Waiter[]>> = { 'by key': [], others: [] };
  /** From which the next waiter is taken, if it has one. */
  #turn: Line = 'by key';
  #busy = new Set<Session>();
  #connecting = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #onQuiet: (() => void) | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#sweep = setInterval(() => this.#endIdle(), idleMs).unref();
  }

  get state(): PoolState {
    return { busy: this.#busy.size, idle: this.#idle.length, waiting: this.#waiting };
  }

  get #waiting(): number {
    return this.#lines['by key'].length + this.#lines.others.length;
  }

  /** Rejects with `overloaded`, `unavailable`, what `connect` said, or the error of the driver. */
  async query(config: QueryConfig, line: Line = 'others'): Promise<QueryResult> {
    const session = this.#takeIdle() ?? (await this.#wait(this.#lines[line]));
    try {
      return await session.query(config);
    } finally {
      this.#busy.delete(session);
      this.#give(session);
    }
  }

  /** Resolves when the queries that were accepted are done. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#sweep);
    if (this.#busy.size + this.#connecting + this.#waiting > 0) {
      await new Promise<void>((resolve) => {
        this.#onQuiet = resolve;
      });
    }
    const idle = this.#idle.splice(0);
    await Promise.all(idle.map(({ session }) => session.close()));
  }

  #takeIdle(): Session | undefined {
    for (let last = this.#idle.pop(); last; last = this.#idle.pop()) {
      if (last.session.isOpen) {
        this.#busy.add(last.session);
        return last.session;
      }
      last.session.end();
    }
    return undefined;
  }

  #wait(line: Waiter[]): Promise<Session> {
    if (this.#isClosed) throw unavailable('the store is closed');
    if (line.length >= this.#options.waitingMax) throw overloaded('too many queries wait');
    return new Promise((resolve, reject) => {
      const giveUpAt = performance.now() + this.#options.waitMsMax;
      line.push({ giveUpAt, resolve, reject });
      this.#watch();
      this.#grow();
    });
  }

  /** Takes out who is next: the lines take turns. */
  #next(): Waiter | undefined {
    const line = this.#turn;
    const other = line === 'by key' ? 'others' : 'by key';
    this.#turn = other;
    return this.#lines[line].shift() ?? this.#lines[other].shift();
  }

  /** Opens as many sessions as requests wait for. */
  #grow(): void {
    const room = this.#options.sessionsMax - this.#busy.size - this.#idle.length;
    if (this.#connecting >= Math.min(room, this.#waiting)) return;
    this.#connecting++;
    this.#options.connect().then(
      (session) => {
        this.#connecting--;
        this.#give(session);
        this.#grow();
      },
      (error: unknown) => {
        this.#connecting--;
        // Where there is another session, its turn will come; the server may have no room for more.
        if (this.#busy.size === 0) this.#next()?.reject(error);
        if (this.#busy.size === 0) this.#grow();
        this.#announceQuiet();
      },
    );
    this.#grow();
  }

  #give(session: Session): void {
    if (session.isOpen) {
      const waiter = this.#next();
      if (waiter === undefined) this.#idle.push({ session, since: performance.now() });
      else {
        this.#busy.add(session);
        waiter.resolve(session);
      }
    } else {
      session.end();
      this.#grow();
    }
    this.#announceQuiet();
  }

  #announceQuiet(): void {
    if (this.#busy.size + this.#connecting + this.#waiting === 0) this.#onQuiet?.();
  }

  /** Refuses queries that have waited too long. */
  #watch(): void {
    if (this.#timer || this.#waiting === 0) return;
    const lines = Object.values(this.#lines);
    const oldest = Math.min(...lines.flatMap(([first]) => first?.giveUpAt ?? []));
    const patienceMs = Math.max(1, oldest - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const now = performance.now();
      for (const line of lines) {
        const alive = line.findIndex(({ giveUpAt }) => giveUpAt > now);
        const expired = line.splice(0, alive < 0 ? line.length : alive);
        for (const { reject } of expired) reject(unavailable('no connection was free in time'));
      }
      this.#announceQuiet();
      this.#watch();
    }, patienceMs).unref();
  }

  #endIdle(): void {
    const now = performance.now();
    const stays = (one: { since: number; session: Session }) =>
      one.session.isOpen && now - one.since < idleMs;
    const ended = this.#idle.filter((one) => !stays(one));
    this.#idle = this.#idle.filter(stays);
    for (const { session } of ended) session.end();
  }
}
