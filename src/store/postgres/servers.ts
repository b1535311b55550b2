/** The servers of a database: which of them takes the writes now, and the sessions with it. */
import pg from 'pg';
import { createEpochs } from '../../base/epochs.ts';
import type { HostHealth } from '../../base/telemetry/store-work.ts';
import { type Facts, factsOf, markerOption } from './facts.ts';
import { firstOf, NoPrimaryError } from './first-of.ts';
import { type DatabaseHost, hostsOf } from './hosts.ts';
import { Primary } from './primary.ts';
import { Session, type SessionOptions } from './session.ts';

/** For a session to be open. */
const connectTimeoutMs = 3_000;
/**
 * How often several hosts are checked while all is well: one may have been promoted while the old primary still runs.
 */
const surveyMs = 10_000;

/** Metrics may be requested without a key, so their result is shared for this time. */
const healthSharedMs = 2_000;

/** What servers and commands that write call themselves to the database. */
export const serverName = 'strongroom';

/** Settings of the server, by name, for the duration of a session. A pooler may withhold them from the server. */
export type SessionParameters = Readonly<Record<string, string | number>>;

/** A server that was looked at. */
export interface ExaminedServer {
  readonly name: string;
  readonly facts?: Facts;
  readonly error?: unknown;
}

interface Server extends DatabaseHost {
  /** Its position in the URL. */
  readonly index: number;
  /** Between it and the vault is a pooler that gives each transaction another session. */
  isPooled: boolean;
}

interface OpenedSession {
  readonly session: Session;
  readonly server: Server;
  readonly facts: Facts;
}

export class Servers {
  readonly #connection: pg.ClientConfig;
  readonly #servers: readonly Server[];
  readonly #sessions = new Map<Session, Server>();
  readonly #survey: NodeJS.Timeout | undefined;
  readonly #primary: Primary;
  #health: { readonly at: number; readonly found: Promise<readonly HostHealth[]> } | undefined;
  #opened = 0;
  #isSurveying = false;

  /** @param epochs of the process, whose threads use one primary. */
  constructor(databaseUrl: string, connection: pg.ClientConfig, epochs = createEpochs()) {
    this.#connection = connection;
    this.#primary = new Primary(epochs);
    this.#servers = hostsOf(databaseUrl).map((host, index) => ({
      ...host,
      index,
      isPooled: false,
    }));
    if (this.#servers.length === 1) return;
    this.#survey = setInterval(() => void this.survey(), surveyMs).unref();
  }

  get sessions(): Iterable<Session> {
    return this.#sessions.keys();
  }

  /** Whether the sessions' process ids are those of the server's processes. */
  get knowsProcesses(): boolean {
    return this.#current?.isPooled === false;
  }

  get #current(): Server | undefined {
    return this.#servers[this.#primary.host ?? this.#servers.length];
  }

  /** A session with the server that takes writes. Rejects with the error of the driver, or with `NoPrimaryError`. */
  async connect(parameters: SessionParameters): Promise<Session> {
    const current = this.#current;
    const first = current ? [current] : [];
    const order = [...first, ...this.#servers.filter((server) => server !== current)];
    const { session, server, facts } = await firstOf(
      order.map((one) => async () => {
        const opened = await this.#open(one, parameters);
        const refusal = this.#refuse(one, opened.facts);
        if (refusal === undefined) return opened;
        opened.session.cut();
        throw refusal;
      }),
      ({ session: late }) => late.cut(),
    );
    if (!this.#adopt(server, facts)) {
      session.cut();
      throw new NoPrimaryError(`another server was promoted while ${server.name} was connected to`);
    }
    session.isCurrent = () => this.#primary.has(server.index, facts.timeline);
    this.#sessions.set(session, server);
    session.events = {
      onEnd: () => this.#sessions.delete(session),
      onReadOnly: () => this.#leave(server),
    };
    return session;
  }

  /** The same for a session that only reads: with any server if none accepts writes. */
  async connectToRead(parameters: SessionParameters): Promise<Session> {
    if (this.#servers.length > 1) {
      const session = await this.connect(parameters).catch(() => undefined);
      if (session !== undefined) return session;
    }
    const attempts = this.#servers.map((server) => () => this.#open(server, parameters));
    const { session } = await firstOf(attempts, ({ session: late }) => late.cut());
    return session;
  }

  /** Facts of every server that can be reached, and the error of every other one. */
  async examine(): Promise<readonly ExaminedServer[]> {
    return Promise.all(
      this.#servers.map(async (server) => {
        try {
          const { session, facts } = await this.#open(server, {});
          session.end();
          return { name: server.name, facts };
        } catch (error) {
          return { name: server.name, error };
        }
      }),
    );
  }

  /** The health of every server, for metrics. It is determined on request. */
  health(): Promise<readonly HostHealth[]> {
    const now = performance.now();
    if (this.#health === undefined || now - this.#health.at >= healthSharedMs) {
      this.#health = { at: now, found: this.examine().then((all) => all.map(healthOf)) };
    }
    return this.#health.found;
  }

  /** Checks all servers, and fails over to one that was promoted although the current one still runs. */
  async survey(): Promise<void> {
    if (this.#isSurveying || this.#servers.length === 1) return;
    this.#isSurveying = true;
    const seen = await this.examine();
    this.#isSurveying = false;
    for (const [index, { facts }] of seen.entries()) {
      const server = this.#servers[index];
      if (server === undefined || facts === undefined) continue;
      if (this.#refuse(server, facts) === undefined) this.#adopt(server, facts);
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#survey);
    await Promise.all([...this.#sessions.keys()].map((session) => session.close()));
  }

  /** From now on sessions are opened with this server, and none goes on with another. False where it is refused. */
  #adopt(server: Server, { systemId, timeline }: Facts): boolean {
    if (!this.#primary.adopt(server.index, timeline)) return false;
    this.#primary.remember(systemId);
    for (const session of this.#sessions.keys()) if (!session.isCurrent()) session.retire();
    return true;
  }

  /** The server accepts no writes now. This does not prove that another one has its acknowledged commits. */
  #leave(server: Server): void {
    for (const [session, other] of this.#sessions) if (other === server) session.retire();
  }

  #refuse(server: Server, { isStandby, isReadOnly, systemId, timeline }: Facts): Error | undefined {
    if (isStandby || isReadOnly) {
      if (isStandby) this.#primary.leave(server.index);
      const why = isStandby ? 'is a standby' : 'has default_transaction_read_only on';
      return new NoPrimaryError(`${server.name} ${why} and accepts no writes`);
    }
    const refusal = this.#primary.isOther(systemId)
      ? 'other'
      : this.#primary.refusalOf(server.index, timeline);
    if (refusal === undefined) return undefined;
    if (refusal !== 'rival') this.#primary.leave(server.index);
    const why = {
      other: 'has other data than the server that was used before',
      outdated: `is on timeline ${timeline}, and another server was promoted to ${this.#primary.timeline}`,
      rival:
        `accepts writes on timeline ${timeline ?? 'unknown'} and was not promoted after ` +
        `${this.#current?.name}, which is not known to be a standby`,
    }[refusal];
    return new NoPrimaryError(`${server.name} ${why}`);
  }

  async #open(server: Server, parameters: SessionParameters): Promise<OpenedSession> {
    const marker = server.isPooled ? undefined : `${performance.timeOrigin}-${++this.#opened}`;
    const connection = this.#connectionTo(server, marker, parameters);
    let facts: Facts | undefined;
    const begin = async (session: Session) => {
      facts = await factsOf(session, marker, this.#servers.length > 1);
    };
    const options: SessionOptions = { connection, timeoutMs: connectTimeoutMs };
    try {
      const session = await Session.open(options, begin);
      if (facts === undefined) throw new Error('a session without facts');
      server.isPooled = !facts.hasParameters;
      session.keepsStatements = facts.hasParameters;
      session.server = server.name;
      return { session, server, facts };
    } catch (error) {
      if (marker !== undefined && refusesParameters(error)) {
        server.isPooled = true;
        return this.#open(server, parameters);
      }
      throw error;
    }
  }

  /** A pooler gives a session's statements to sessions of its own, which have parameters of their own. */
  #connectionTo(
    { url }: Server,
    marker: string | undefined,
    parameters: SessionParameters,
  ): pg.ClientConfig {
    const base = { ...this.#connection, connectionString: url };
    if (marker === undefined) return base;
    const given = Object.entries(parameters).map(([name, value]) => `-c ${name}=${value}`);
    const own = URL.parse(url)?.searchParams.get('options') ?? '';
    const options = [...given, own, markerOption(marker)].filter(Boolean).join(' ');
    return { ...base, connectionString: withoutOptions(url), options };
  }
}

function healthOf({ name, facts }: ExaminedServer): HostHealth {
  const isWritable = facts !== undefined && !facts.isStandby && !facts.isReadOnly;
  return { host: name, isUp: facts !== undefined, isWritable };
}

/** The driver prefers what the URL says. */
function withoutOptions(url: string): string {
  if (!/[?&]options=/.test(url)) return url;
  const [place = '', query = ''] = url.split('?', 2);
  const parameters = new URLSearchParams(query);
  parameters.delete('options');
  return `${place}?${parameters}`;
}

/** PgBouncer's, of a parameter that it does not pass on. */
function refusesParameters(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /unsupported startup parameter/.test(error.message);
}
