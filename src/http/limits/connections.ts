/** How many connections a server takes, in all and from one address, so that descriptors are left for its own work. */
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { Heap } from '../../base/heap.ts';
import { networksOf } from '../../base/network.ts';
import type { Log } from '../../base/telemetry/log.ts';
import { createReadingCosts, readingCheckMs } from './reading-costs.ts';
import type { Shares } from './shares.ts';

/** Descriptors reserved at least: for the database, calls to other hosts, and processes of code. */
export const descriptorsKeptBack = 256;

/** Connections of one address. */
export const addressConnectionsMax = 1_000;

/** How many times as many an address may have from which a private or management key has come. */
const knownAddressFactor = 4;

export interface ConnectionLimits {
  /** `undefined` if the system does not report how many descriptors there are. */
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
  /** Whether no request of the connection is being handled. */
  readonly isIdle: (socket: Socket) => boolean;
  /** How many requests have come on the connection. */
  readonly requestsOf: (socket: Socket) => number;
  /** Processor time of this thread, in milliseconds, that no request has paid for. */
  readonly unpaidMs: () => number;
  readonly log: Log;
}

/** So many connections of all are for those that come while others are being ended for them. */
const roomMax = 64;
/** A site may have so many times what an address may have. */
const siteFactor = 2;
/** A busy connection is ended only if its site has this many times the connections that the other site would have. */
const busyFactor = 4;
/** So many connections of a site are looked at for one that is idle; the next look begins where this one ended. */
const looksMax = 32;

/** The connections of one site, by their networks. */
interface SiteConnections {
  readonly site: string;
  /** With their networks; the oldest first, but for those that were looked at. */
  readonly sockets: Map<Socket, string>;
  readonly ofNetworks: Map<string, number>;
}

interface ConnectionOrigin {
  readonly network: string;
  readonly site: string;
}

/**
 * From now on connections beyond the limits are ended at once, before TLS and HTTP have anything to do with them.
 * Where there are as many as the server takes, the visitors' site that has most makes room: with an idle connection,
 * or with one that has a request where the site has much more than the other.
 */
export function guardConnections(server: Server, guarding: ConnectionGuarding): void {
  const { limits, shares, isTls, isTrusted, isIdle, log } = guarding;
  const sites = new Map<string, SiteConnections>();
  const largest = new Heap<SiteConnections>((a, b) => a.sockets.size > b.sockets.size);
  const ms = isTls ? connectMs.tls : connectMs.plain;
  const allMax = limits.all === undefined ? undefined : limits.all - roomOf(limits.all);
  let all = 0;
  const reading = createReadingCosts({
    ...guarding,
    charge: shares.connect,
    end: (socket) => {
      log.debug('connection cut', {
        reason: 'it sends no request, and its address has used its part',
      });
      socket.resetAndDestroy();
    },
  });
  const checks = setInterval(reading.check, readingCheckMs).unref();
  server.once('close', () => clearInterval(checks));

  function admit(socket: Socket): boolean {
    const address = socket.remoteAddress ?? '';
    if (isTrusted(address)) return enter(socket, { from: undefined, has: 0 });
    const from = networksOf(address);
    const ofSite = sites.get(from.site);
    const isKnown = shares.isKnown(address);
    const most = isKnown ? limits.knownAddress : limits.address;
    if ((ofSite?.ofNetworks.get(from.network) ?? 0) >= most) return false;
    const has = ofSite?.sockets.size ?? 0;
    if (from.site !== from.network && has >= siteFactor * most) return false;
    if (!shares.connect(address, ms) && !isKnown) return false;
    return enter(socket, { from, has: isKnown ? 0 : has });
  }

  /** @param has how many its site has, as far as that counts against it. */
  function enter(
    socket: Socket,
    { from, has }: { readonly from: ConnectionOrigin | undefined; readonly has: number },
  ): boolean {
    if (allMax !== undefined && all >= allMax && !makeRoom(has)) return false;
    all += 1;
    if (from) {
      add(socket, from);
      reading.watch(socket, socket.remoteAddress ?? '');
    }
    socket.once('close', () => {
      if (!gone.delete(socket)) leave(socket, from);
    });
    return true;
  }

  function add(socket: Socket, { network, site }: ConnectionOrigin): void {
    const ofSite = sites.get(site) ?? { site, sockets: new Map(), ofNetworks: new Map() };
    sites.set(site, ofSite);
    ofSite.sockets.set(socket, network);
    ofSite.ofNetworks.set(network, (ofSite.ofNetworks.get(network) ?? 0) + 1);
    largest.put(ofSite);
  }

  function leave(socket: Socket, from: ConnectionOrigin | undefined): void {
    all -= 1;
    const ofSite = from && sites.get(from.site);
    if (!from || !ofSite?.sockets.delete(socket)) return;
    const left = (ofSite.ofNetworks.get(from.network) ?? 0) - 1;
    if (left > 0) ofSite.ofNetworks.set(from.network, left);
    else ofSite.ofNetworks.delete(from.network);
    if (ofSite.sockets.size > 0) largest.put(ofSite);
    else {
      largest.delete(ofSite);
      sites.delete(from.site);
    }
  }

  /** Ended for others, and no longer counted. */
  const gone = new WeakSet<Socket>();

  function makeRoom(least: number): boolean {
    const chosen = largestVisitor();
    if (!chosen || chosen.sockets.size <= least) return false;
    const ended =
      idleOf(chosen.sockets) ??
      (chosen.sockets.size > busyFactor * (least + 1) ? first(chosen.sockets.keys()) : undefined);
    if (ended === undefined) return false;
    gone.add(ended);
    leave(ended, { network: chosen.sockets.get(ended) ?? '', site: chosen.site });
    log.debug('connection cut', { reason: 'its address has most, and others had no room' });
    ended.resetAndDestroy();
    return true;
  }

  /** A site from which a private or management key has come makes no room, until its next connection. */
  function largestVisitor(): SiteConnections | undefined {
    for (;;) {
      const { first: chosen } = largest;
      const socket = chosen && first(chosen.sockets.keys());
      if (!socket || !shares.isKnown(socket.remoteAddress ?? '')) return chosen;
      largest.delete(chosen);
    }
  }

  function idleOf(sockets: Map<Socket, string>): Socket | undefined {
    const looks = Math.min(looksMax, sockets.size);
    for (let look = 0; look < looks; look += 1) {
      const [socket, network] = first(sockets) as [Socket, string];
      if (isIdle(socket)) return socket;
      sockets.delete(socket);
      sockets.set(socket, network);
    }
    return undefined;
  }

  // Lower than the limit of the system: beyond `maxConnections` Node closes connections without a socket.
  if (limits.all !== undefined) server.maxConnections = limits.all;
  const listeners = server.listeners('connection');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    if (isWithin(socket) || admit(socket)) {
      for (const listener of listeners) Reflect.apply(listener, server, [socket]);
    } else {
      log.debug('connection refused', { reason: 'its address has too many' });
      socket.resetAndDestroy();
    }
  });
}

/**
 * A connection that was opened within another one, which is counted, or within the process: it takes no descriptor.
 * It has no end of its own by RST either, with which those beyond the limits are ended.
 */
function isWithin(socket: Duplex): boolean {
  return socket instanceof TLSSocket || !(socket instanceof Socket);
}

function roomOf(all: number): number {
  return Math.min(roomMax, Math.floor(all / 8));
}

function first<T>([one]: Iterable<T>): T | undefined {
  return one;
}
