/** One session with a server: its queries, how long it has been silent, and its end. */
import { Socket } from 'node:net';
import pg from 'pg';
import { isOutdatedPlan, isReadOnly } from './failure.ts';

export interface SessionOptions {
  readonly connection: pg.ClientConfig;
  /** The whole of connecting, up to the first response to a query. */
  readonly timeoutMs: number;
}

/** The server did not finish opening a session in time. */
export class NoResponseError extends Error {
  override readonly name = 'NoResponseError';
}

export interface SessionEvents {
  /** Called once, whichever side ended the session. */
  onEnd(): void;
  /** The server accepts no writes, or no more. */
  onReadOnly(): void;
}

/** Before the first probe of an idle connection, by the system, which ends what does not respond. */
const keepAliveMs = 10_000;
/** A connection whose other side does not say goodbye is cut. */
const farewellMs = 1_000;

/**
 * Routines that warn of a commit which may be lost, and then report it as done: PostgreSQL where it is interrupted
 * before a standby has it, and Citus where the worker that has the rows fails before it confirms it.
 */
const doubtful: ReadonlySet<string | undefined> = new Set([
  'SyncRepWaitForLSN',
  'ReportConnectionError',
  'ReportResultError',
]);

export class Session {
  /** True if statements may be prepared: then one server receives all of them. */
  keepsStatements = true;
  /** Its name. */
  server = '';
  /** Whether the server still is the one to use, as far as any thread of the process knows. */
  isCurrent = (): boolean => true;
  readonly #client: pg.Client;
  readonly #socket = new Socket();
  #events: SessionEvents | undefined;
  #busySince: number | undefined;
  #hasEnded = false;
  #isRetired = false;
  #isDoubtful = false;

  private constructor(connection: pg.ClientConfig) {
    this.#client = new pg.Client({
      ...connection,
      stream: () => this.#socket,
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveMs,
    });
    this.#client.on('error', () => this.end());
    this.#client.on('end', () => this.end());
    this.#client.on('notice', (notice) => {
      if ('routine' in notice && doubtful.has(notice.routine)) this.#isDoubtful = true;
    });
  }

  /** @param begin the first query. If it fails, the session is ended. */
  static async open(
    { connection, timeoutMs }: SessionOptions,
    begin: (session: Session) => Promise<void>,
  ): Promise<Session> {
    const session = new Session(connection);
    const late = () => {
      const text = `the database did not respond in ${timeoutMs} ms`;
      session.#socket.destroy(new NoResponseError(text));
    };
    const timer = setTimeout(late, timeoutMs);
    try {
      await session.#client.connect();
      await begin(session);
      return session;
    } catch (error) {
      session.#socket.destroy();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  set events(events: SessionEvents) {
    this.#events = events;
  }

  /** The id of the server's process, unless a pooler in between assigns its own. */
  get processId(): number | undefined {
    return (
      (this.#client as pg.Client & { readonly processID?: number | null }).processID ?? undefined
    );
  }

  /** It takes queries. */
  get isOpen(): boolean {
    return !this.#hasEnded && !this.#isRetired && this.isCurrent();
  }

  /** By `performance.now`: when the query was sent that has no response yet. */
  get busySince(): number | undefined {
    return this.#busySince;
  }

  /** One at a time. What the server did not respond to ends the session. */
  async query({ name, ...config }: pg.QueryConfig): Promise<pg.QueryResult> {
    const isNamed = name !== undefined && this.keepsStatements;
    this.#busySince = performance.now();
    try {
      const result = await this.#send(config, isNamed ? name : undefined);
      if (this.#isDoubtful) throw new Error('the server warned that the commit may be lost');
      return result;
    } catch (error) {
      if (!(error instanceof pg.DatabaseError)) this.cut();
      else if (isReadOnly(error)) this.#events?.onReadOnly();
      throw error;
    } finally {
      this.#busySince = undefined;
      if (this.#isRetired) this.end();
    }
  }

  /** A later release may have changed the result of a prepared statement. Nothing was done, and it is sent again. */
  async #send(config: pg.QueryConfig, name: string | undefined): Promise<pg.QueryResult> {
    if (name === undefined) return this.#client.query(config);
    try {
      return await this.#client.query({ ...config, name });
    } catch (error) {
      if (!isOutdatedPlan(error)) throw error;
      this.retire();
      return this.#client.query(config);
    }
  }

  /** Ends it once it has nothing to do. */
  retire(): void {
    this.#isRetired = true;
    if (this.#busySince === undefined) this.end();
  }

  /** Ends it at once. A query that waits for its response fails. */
  cut(): void {
    this.#socket.destroy();
    this.end();
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#events?.onEnd();
    const timer = setTimeout(() => this.#socket.destroy(), farewellMs);
    void this.#client.end().finally(() => clearTimeout(timer));
  }

  /** The same. Resolves when the connection is closed. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      if (this.#socket.closed) resolve();
      else this.#socket.once('close', () => resolve());
    });
    this.end();
    await closed;
  }
}
