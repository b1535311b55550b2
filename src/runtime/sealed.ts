/** A sealed vault on its address: it is alive, it is not ready, and it serves nothing else. */
import { once } from 'node:events';
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { second } from '../base/clock.ts';
import { errorKinds, VaultError } from '../base/errors.ts';
import { nodeHttp } from '../base/node-http.ts';
import type { Log } from '../base/telemetry/log.ts';
import {
  connectionLimitsOf,
  descriptorsMax,
  guardConnections,
} from '../http/limits/connections.ts';
import { problemMediaType, problemOf } from '../http/protocol/problem.ts';
import { jsonMediaType } from '../http/protocol/request-context.ts';
import type { HeldAddress } from './address.ts';
import type { Config } from './config/config.ts';
import type { UnsealProgress } from './unsealing.ts';

export interface SealedAddress extends HeldAddress {
  readonly port: number;
  readonly isReleased: boolean;
}

const limits = {
  requestTimeout: 10 * second,
  headersTimeout: 10 * second,
  connectionsCheckingInterval: second,
  maxHeaderSize: 16_384,
};

export interface SealedOptions {
  readonly progress: () => UnsealProgress;
  readonly log: Log;
}

/**
 * Descriptors are left for shares, and for opening the vault. No connection is in the middle of anything, so any of
 * them may make room.
 */
function guard(server: Server, isTls: boolean, log: Log): void {
  guardConnections(server, {
    limits: connectionLimitsOf(descriptorsMax(), 1),
    shares: { connect: () => true, isKnown: () => false },
    isTls,
    isTrusted: () => false,
    isIdle: () => true,
    requestsOf: () => 1,
    unpaidMs: () => 0,
    log,
  });
}

/** @throws the system's error when the address cannot be listened on. */
export async function listenSealed(
  { host, port, tls }: Pick<Config, 'host' | 'port' | 'tls'>,
  { progress, log }: SealedOptions,
): Promise<SealedAddress> {
  const listener: RequestListener = (request, response) => {
    const { status, mediaType, body } = responseTo(request, progress());
    request.resume();
    response.writeHead(status, {
      'content-type': mediaType,
      'cache-control': 'no-store',
      // The listener that takes over has connections of its own.
      connection: 'close',
      ...(status === unavailable && { 'retry-after': '5' }),
    });
    response.end(request.method === 'HEAD' ? undefined : JSON.stringify(body));
  };
  const server = tls
    ? (await import('node:https')).createServer(
        { ...limits, handshakeTimeout: 10 * second, cert: tls.cert, key: tls.key },
        listener,
      )
    : nodeHttp.createServer(limits, listener);
  guard(server, tls !== undefined, log);
  server.listen({ host, port, exclusive: true });
  await once(server, 'listening');
  let closed: Promise<unknown> | undefined;
  return {
    port: (server.address() as AddressInfo).port,
    get isReleased() {
      return closed !== undefined;
    },
    release: async () => {
      if (!closed) {
        closed = once(server, 'close');
        server.close();
        server.closeIdleConnections();
        // A client that sends slowly must not keep the vault from opening.
        setTimeout(() => server.closeAllConnections(), second).unref();
      }
      await closed;
    },
  };
}

const { status: unavailable } = errorKinds.unavailable;

function responseTo({ url = '' }: Pick<IncomingMessage, 'url'>, { given, needed }: UnsealProgress) {
  const path = url.split('?', 1)[0]?.replace(/(.)\/$/, '$1');
  if (path === '/healthz') {
    return { status: 200, mediaType: jsonMediaType, body: { status: 'alive' } };
  }
  const missing = needed - given;
  if (path === '/readyz') {
    const body = {
      status: 'sealed',
      shares_given: given,
      shares_needed: needed,
      shares_missing: missing,
    };
    return { status: unavailable, mediaType: jsonMediaType, body };
  }
  const detail = `The vault is sealed: ${missing} of ${needed} shares of its root key are missing.`;
  const body = problemOf(new VaultError('unavailable', { public: detail }));
  return { status: unavailable, mediaType: problemMediaType, body };
}
