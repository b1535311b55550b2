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

/** So many connections of all are for those that come while others are being ended for them. */
const roomMax = 64;

/** Those of one network, the oldest first. */
type OfNetwork = Set<Socket>;

/**
 * From now on connections beyond the limits are ended at once, before TLS and HTTP have anything to do with them.
 * Where there are as many as the server takes, the oldest of the visitor's network that has most makes room.
 */
export function guardConnections(server: Server, guarding: ConnectionGuarding): void {
  const { limits, shares, isTls, isTrusted, log } = guarding;
  const open = new Map<string, OfNetwork>();
  const ms = isTls ? connectMs.tls : connectMs.plain;
  const allMax = limits.all === undefined ? undefined : limits.all - roomOf(limits.all);
  let all = 0;

  function admit(socket: Socket): boolean {
    const address = socket.remoteAddress ?? '';
    if (isTrusted(address)) return enter(socket, { network: undefined, most: 0 });
    const network = networkOf(address);
    const isKnown = shares.isKnown(address);
    const count = open.get(network)?.size ?? 0;
    if (count >= (isKnown ? limits.knownAddress : limits.address)) return false;
    if (!shares.connect(address, ms) && !isKnown) return false;
    return enter(socket, { network, most: isKnown ? 0 : count });
  }

  /** @param most how many the network may have that makes room where that is needed. */
  function enter(
    socket: Socket,
    { network, most }: { readonly network: string | undefined; readonly most: number },
  ): boolean {
    if (allMax !== undefined && all >= allMax && !makeRoom(most)) return false;
    all += 1;
    const others = network === undefined ? undefined : (open.get(network) ?? new Set());
    if (network !== undefined && others) open.set(network, others.add(socket));
    socket.once('close', () => {
      if (!gone.delete(socket)) leave(socket, network);
    });
    return true;
  }

  function leave(socket: Socket, network: string | undefined): void {
    all -= 1;
    const others = network === undefined ? undefined : open.get(network);
    if (network !== undefined && others?.delete(socket) && others.size === 0) open.delete(network);
  }

  /** Ended for others, and no longer counted. */
  const gone = new WeakSet<Socket>();

  function makeRoom(least: number): boolean {
    let most = least;
    let chosen: string | undefined;
    for (const [network, { size }] of open) {
      if (size <= most || shares.isKnown(network)) continue;
      most = size;
      chosen = network;
    }
    const [oldest] = (chosen !== undefined && open.get(chosen)) || [];
    if (oldest === undefined) return false;
    gone.add(oldest);
    leave(oldest, chosen);
    log.debug('connection cut', { reason: 'its address has most, and others had no room' });
    oldest.resetAndDestroy();
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

function roomOf(all: number): number {
  return Math.min(roomMax, Math.floor(all / 8));
}
