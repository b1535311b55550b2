/** Connections to other hosts, kept open for the next request to the same place, and no other. */
import type { ClientRequest } from 'node:http';
import https, { type RequestOptions } from 'node:https';
import type { Duplex } from 'node:stream';
import type { SecureContext } from 'node:tls';

export interface PlacedOptions extends RequestOptions {
  /** Requests share a connection when this text is the same. */
  readonly place: string;
  readonly secureContext: SecureContext;
}

/** Shorter than what servers usually wait, so that a request seldom meets a connection being closed. */
const idleMs = 4000;
const idleMax = 256;
const idlePerPlaceMax = 64;
const sessionsMax = 1000;

/** An agent of our own takes no proxy from the environment. */
export class Connections extends https.Agent {
  /** From the one unused for the longest time on. */
  readonly #idle = new Set<Duplex>();
  readonly #idleMax: number;
  readonly #forget: (this: Duplex) => void;

  /** @param max of idle connections together. */
  constructor(max = idleMax) {
    super({
      keepAlive: true,
      timeout: idleMs,
      maxFreeSockets: idlePerPlaceMax,
      maxCachedSessions: sessionsMax,
    });
    this.#idleMax = max;
    const idle = this.#idle;
    this.#forget = function forget() {
      idle.delete(this);
    };
  }

  /** Node's own name lists the options it knows, not the guard's decision or the tenant. */
  override getName(options?: Partial<PlacedOptions>): string {
    return options?.place ?? '';
  }

  override keepSocketAlive(socket: Duplex): boolean {
    // False where the host announced to close it too soon, which the types do not say.
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

  /** The next request to the place opens a connection. */
  closeIdle(place: string): void {
    for (const socket of this.freeSockets[place] ?? []) socket.destroy();
  }
}
