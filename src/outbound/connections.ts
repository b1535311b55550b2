/** Connections to other hosts, kept open for later requests to the same destination only. */
import type { ClientRequest } from 'node:http';
import https, { type RequestOptions } from 'node:https';
import { connect, type TcpNetConnectOpts } from 'node:net';
import type { Duplex } from 'node:stream';
import type { SecureContext, TLSSocket } from 'node:tls';
import { countKeyUpdates } from '../base/key-updates.ts';
import { HandshakeGate } from './handshake-gate.ts';
import { Handshakes } from './handshakes.ts';

export interface OutgoingOptions extends RequestOptions {
  /** Requests with the same string share connections. */
  readonly destination: string;
  /** The party that is charged for handshakes. */
  readonly party: string;
  readonly secureContext: SecureContext;
}

/** Shorter than the idle timeout of most servers, so that a request seldom meets a connection that is closing. */
const idleMs = 4000;
const idleMax = 256;
const idlePerPlaceMax = 64;
const sessionsMax = 1000;

/** Our own agent ignores proxy settings of the environment. */
export class Connections extends https.Agent {
  /** Idle connections, the longest unused first. */
  readonly #idle = new Set<Duplex>();
  readonly #idleMax: number;
  readonly #handshakes: Handshakes;
  readonly #forget: (this: Duplex) => void;

  /** @param max the maximum number of idle connections in total. */
  constructor(max = idleMax, handshakes = new Handshakes()) {
    super({
      keepAlive: true,
      timeout: idleMs,
      maxFreeSockets: idlePerPlaceMax,
      maxCachedSessions: sessionsMax,
    });
    this.#handshakes = handshakes;
    this.#idleMax = max;
    const idle = this.#idle;
    this.#forget = function forget() {
      idle.delete(this);
    };
  }

  /** Node's own name covers the options that Node knows, but neither the guard's decision nor the tenant. */
  override getName(options?: Partial<OutgoingOptions>): string {
    return options?.destination ?? '';
  }

  /** @throws OutboundError `expensive_tls` for a destination whose handshakes cost too much. */
  override createConnection(options: OutgoingOptions): Duplex {
    const { destination, host, port, lookup } = options;
    this.#handshakes.requireAffordable(destination);
    const raw = connect({
      host,
      port,
      lookup,
      noDelay: true,
      keepAlive: true,
    } as TcpNetConnectOpts);
    const gate = new HandshakeGate(raw, this.#handshakes.begin(options));
    const socket = super.createConnection({
      ...options,
      socket: gate,
    } as RequestOptions) as TLSSocket;
    const count = countKeyUpdates('server', () => gate.refuseMore());
    socket.on('keylog', (line: Buffer) => count(line, socket));
    return socket.once('secureConnect', () => gate.secured());
  }

  override keepSocketAlive(socket: Duplex): boolean {
    // False if the host announced that it closes the connection too soon. The types do not declare this.
    const kept: unknown = super.keepSocketAlive(socket);
    if (kept !== true) return false;
    this.#idle.add(socket);
    socket.once('close', this.#forget);
    const [oldest] = this.#idle;
    if (this.#idle.size > this.#idleMax) oldest?.destroy();
    return true;
  }

  override reuseSocket(socket: Duplex, request: ClientRequest): void {
    this.#idle.delete(socket);
    socket.off('close', this.#forget);
    super.reuseSocket(socket, request);
  }

  /** Closes idle connections, so that the next request to the destination opens a new one. */
  closeIdle(destination: string): void {
    for (const socket of this.freeSockets[destination] ?? []) socket.destroy();
  }
}
