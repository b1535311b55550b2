/** How many connections a server takes, in all and from one address, so that descriptors are left for its own work. */
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { networkOf } from '../../lib/network.ts';
import type { Log } from '../../lib/telemetry/log.ts';
import type { Shares } from './shares.ts';

/** Descriptors kept back at least: for the database, calls to other hosts and processes of code. */
export const descriptorsKeptBack = 256;

/** Connections of one address. */
export const addressConnectionsMax = 1_000;

/** How many times as many an address may have from which a private or management key has come. */
const knownAddressFactor = 4;

export interface ConnectionLimits {
  /** `undefined` where the system does not say how many descriptors there are. */
  readonly all: number | undefined;
  readonly address: number;
  readonly knownAddress: number;
}

/**
 * Of one thread.
 * @param descriptors that the process may have; `undefined` where that is not known.
 */
export function connectionLimitsOf(
  descriptors: number | undefined,
  threads: number,
): ConnectionLimits {
  const all =
    descriptors === undefined
      ? undefined
      : Math.max(
          8,
          Math.floor(Math.min(descriptors - descriptorsKeptBack, descriptors * 0.75) / threads),
        );
  const quarter = all === undefined ? addressConnectionsMax : Math.ceil(all / 4);
  const address = Math.min(addressConnectionsMax, quarter);
  return {
    all,
    address,
    knownAddress: Math.min(knownAddressFactor * addressConnectionsMax, 2 * quarter),
  };
}

/** The soft limit, which Node has raised as far as it may; `undefined` on other systems than Linux. */
export function descriptorsMax(): number | undefined {
  try {
    const [, soft] =
      /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}

/** What a new connection costs before its first request, in milliseconds. */
const connectMs = { plain: 0.06, tls: 1.5 } as const;

export interface ConnectionGuarding {
  readonly limits: ConnectionLimits;
  readonly shares: Pick<Shares, 'connect' | 'isKnown'>;
  readonly isTls: boolean;
  /** A proxy, behind which there are many clients. */
  readonly isTrusted: (address: string) => boolean;
  readonly log: Log;
}

/** From now on connections beyond the limits are ended at once, before TLS and HTTP have anything to do with them. */
export function guardConnections(server: Server, guarding: ConnectionGuarding): void {
  const { limits, shares, isTls, isTrusted, log } = guarding;
  const open = new Map<string, number>();
  const ms = isTls ? connectMs.tls : connectMs.plain;

  function admit(socket: Socket): boolean {
    const address = socket.remoteAddress ?? '';
    if (isTrusted(address)) return true;
    const network = networkOf(address);
    const isKnown = shares.isKnown(address);
    const count = (open.get(network) ?? 0) + 1;
    if (count > (isKnown ? limits.knownAddress : limits.address)) return false;
    if (!shares.connect(address, ms) && !isKnown) return false;
    open.set(network, count);
    socket.once('close', () => {
      const left = (open.get(network) ?? 1) - 1;
      if (left > 0) open.set(network, left);
      else open.delete(network);
    });
    return true;
  }

  // Below the limit of the system: Node closes what is beyond it without a socket.
  if (limits.all !== undefined) server.maxConnections = limits.all;
  const listeners = server.listeners('connection');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    if (admit(socket)) {
      for (const listener of listeners) Reflect.apply(listener, server, [socket]);
    } else {
      log.debug('connection refused', { reason: 'its address has too many' });
      socket.resetAndDestroy();
    }
  });
}
