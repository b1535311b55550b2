/** What lies below every route: connections and their limits, routing, and shutdown. */
import assert from 'node:assert/strict';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import { isIP, type ListenOptions } from 'node:net';
import type { TLSSocket } from 'node:tls';
import proxyAddress from '@fastify/proxy-addr';
import findMyWay, { type HTTPMethod } from 'find-my-way';
import type { AdmittedEntrant } from '../base/admission.ts';
import { loopHeader, namesVault } from '../base/cdn-loop.ts';
import { second } from '../base/clock.ts';
import { VaultError } from '../base/errors.ts';
import { countKeyUpdates } from '../base/key-updates.ts';
import { nodeHttp } from '../base/node-http.ts';
import type { ProcessorTime } from '../base/processor-time.ts';
import type { Log } from '../base/telemetry/log.ts';
import type { Metrics } from '../base/telemetry/metrics.ts';
import type { PemPair } from '../keys/tls-pair.ts';
import type { BeginResponse } from './begin-response.ts';
import { connectionLimitsOf, descriptorsMax, guardConnections } from './limits/connections.ts';
import type { RequestClient, Shares } from './limits/shares.ts';
import type { OnExchangeEnd } from './observe-requests.ts';
import { RequestOfChunks } from './protocol/chunks.ts';
import { createEarlyResponses, createRefuseConnection } from './protocol/connection.ts';
import { type Cors, respondToPreflight } from './protocol/cors.ts';
import { createCutOff } from './protocol/cut-off.ts';
import { createFailures } from './protocol/failures.ts';
import { anyOtherMethod } from './protocol/methods.ts';
import { createPipelining } from './protocol/pipelining.ts';
import { watchProgress } from './protocol/progress.ts';
import { type Handle, RequestContext } from './protocol/request-context.ts';
import type { RequestShare } from './protocol/request-share.ts';
import { settleTarget } from './protocol/request-target.ts';
import { createStreaming, type Streaming } from './protocol/streaming.ts';

/** A token id of 400 characters, each percent-encoded as four bytes of UTF-8. */
const pathParamLengthMax = 4800;
const headerBytesMax = 16_384;
/** What the head of a request costs that may never begin, in milliseconds. */
const aheadMs = 0.03;
/** What a read of nothing but key updates costs, in milliseconds. */
const keyUpdatesMs = 8;
/** How long a client may take to send a request. */
export const requestTimeoutMs = 30 * second;
/** How long requests may go on while the server stops: Docker kills after 10 s, Kubernetes after 30 s. */
export const finishMsMax = 3 * second;
/** How often Node looks for requests past that; its own default would double the time. */
const timeoutCheckMs = second;
const keepAliveMs = 72 * second;

export interface ConnectionOptions {
  readonly tls: PemPair | undefined;
  /** Addresses and networks of proxies that are trusted to name the client's address. */
  readonly trustedProxies: readonly string[];
  /** So many threads of the process share its descriptors; one unless given. */
  readonly threads?: number;
  /** Another one than {@link requestTimeoutMs}. */
  readonly requestTimeoutMs?: number | undefined;
}

export interface TransportOptions extends ConnectionOptions {
  readonly begin: BeginResponse;
  readonly cors: Cors;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly onEnd: OnExchangeEnd;
  /** Marks requests that the vault sent to itself. */
  readonly vaultName: string;
  readonly shares: Shares;
  readonly processorTime: ProcessorTime;
  /** The key that a request is sent with. */
  readonly keyOf: (request: IncomingMessage) => string | undefined;
  /** Preflights of browsers are for a destination. */
  readonly passesPreflights?: true;
  /** Which requests are events `upgrade` of the server, in place of requests; none unless given. */
  readonly upgrades?: (request: IncomingMessage) => boolean;
}

export interface HttpServer {
  readonly server: Server;
  listen(options: ListenOptions): Promise<void>;
  /** New connections get this certificate; those that are open keep theirs. Only for a server that has one. */
  setTls(pair: PemPair): void;
  /** Counts for requests that begin from now on. */
  setTrustedProxies(proxies: readonly string[]): void;
  /**
   * Resolves when every request that has begun has its response, and nothing is done for one any more.
   * Clients that keep it waiting for longer than {@link finishMsMax} are cut off.
   */
  close(): Promise<void>;
}

export interface Transport extends HttpServer {
  readonly streaming: Streaming;
  route(methods: readonly HTTPMethod[], path: string, handle: Handle): void;
  /** Methods that the path does not have. */
  refuse(methods: readonly HTTPMethod[], path: string, refusal: VaultError): void;
  /** Called before the routes, for every request. */
  divert(handlerOf: HandlerBeforeRoutes): void;
}

/** `undefined` leaves the request to the routes; without a promise if the result is known. */
export type HandlerBeforeRoutes = (
  context: RequestContext,
) => Handle | Promise<Handle | undefined> | undefined;

/** Where a request leads. */
interface RouteTarget {
  readonly path: string;
  readonly handle: Handle;
  /** Where the method leads nowhere. */
  readonly refusal?: VaultError;
}

/** A server without routes. */
export function createTransport(options: TransportOptions): Transport {
  const { begin, cors, log, metrics, onEnd, vaultName, shares, processorTime, keyOf } = options;
  const patienceMs = options.requestTimeoutMs ?? requestTimeoutMs;
  const checkMs = Math.min(timeoutCheckMs, patienceMs);
  const { logFailure, fail } = createFailures(log, metrics);
  const stopping = new AbortController();
  const trust = createTrust(options.trustedProxies);
  const { pathOf } = trust;
  const routes = createRoutes();
  const early = createEarlyResponses();
  const cutOff = createCutOff();
  const toEnd = { stopping: stopping.signal, onEarlyResponse: early.note };
  let handlerBeforeRoutes: HandlerBeforeRoutes = () => undefined;
  const turns = createPipelining({
    onAhead: (request) => shares.connect(pathOf(request).address, aheadMs),
  });
  /** Waits for its turn before anything is done for it. */
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    const { address, forwarded } = pathOf(request);
    const apiKey = keyOf(request);
    const context = new RequestContext({
      ...{ request, response, address, forwarded, apiKey },
      ...toEnd,
    });
    const begun = performance.now();
    begin(context);
    let release = nothing;
    let isWaiting = true;
    const withdraw = shares.enter(
      new ClientOfExchange(context),
      (share) => {
        isWaiting = false;
        release();
        context.share = share;
        processorTime.run(share, () => respond(context, share));
      },
      (refusal) => {
        isWaiting = false;
        release();
        fail(refusal, context);
      },
    );
    if (isWaiting && hasBody(request)) {
      // By then a small body has been parsed that came with its head.
      setImmediate(() => {
        if (isWaiting && !request.complete) release = hold(request);
      });
    }
    response.once('close', () => {
      withdraw();
      if (!request.complete) early.note(request);
      context.cutOffStatus = cutOff.statusOf(request.socket);
      onEnd(context, performance.now() - begun);
      context.share?.leave();
    });
  };
  /** Never throws. */
  const respond = (context: RequestContext, share: RequestShare) => {
    const failed = (error: unknown) => {
      fail(error, context);
      share.done();
    };
    const done = () => {
      // The work since the last call of the store.
      processorTime.lap();
      share.done();
    };
    try {
      if (context.flaw !== undefined) throw context.flaw;
      settleTarget(context.request);
      refuseLoop(context, vaultName);
      if (!options.passesPreflights && respondToPreflight(cors, context)) {
        share.done();
        return;
      }
      const diverted = handlerBeforeRoutes(context);
      const handled =
        diverted instanceof Promise
          ? diverted.then((handle) => (handle ?? routes.find(context))(context))
          : (diverted ?? routes.find(context))(context);
      handled.then(done, failed);
    } catch (error) {
      failed(error);
    }
  };
  const receive = (request: IncomingMessage, response: ServerResponse) =>
    turns.take(request, response, () => handle(request, response));
  const server = createNodeServer(options, { patienceMs, checkMs }, receive);
  // An expectation that the vault does not know is ignored (RFC 9110, section 10.1.1). Node would refuse it itself.
  server.on('checkExpectation', receive);
  guardConnections(server, {
    limits: connectionLimitsOf(descriptorsMax(), options.threads ?? 1),
    shares,
    isTls: options.tls !== undefined,
    isTrusted: trust.isTrusted,
    isIdle: turns.isIdle,
    requestsOf: turns.requestsOf,
    unpaidMs: processorTime.unpaidMs,
    log,
  });
  limitKeyUpdates(server, ({ remoteAddress = '' }) => {
    shares.connect(remoteAddress, keyUpdatesMs);
    log.debug('connection cut', { reason: 'it changes its keys again and again' });
  });
  const progress = watchProgress(server, { patienceMs, checkMs, log, cutOff });
  const streaming = createStreaming({
    stopping: stopping.signal,
    progress,
    patienceMs,
    logFailure,
  });
  server.on(
    'clientError',
    createRefuseConnection(log, {
      ...early,
      isStreaming: streaming.isStreaming,
      cutOff,
      refusalOf: routes.refusalOf,
    }),
  );
  return {
    server,
    streaming,
    route: routes.add,
    refuse: routes.refuse,
    divert: (handlerOf) => {
      handlerBeforeRoutes = handlerOf;
    },
    listen: (where) =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(where, () => {
          server.off('error', reject);
          resolve();
        });
      }),
    setTls: ({ cert, key }) => {
      assert('setSecureContext' in server, 'the server serves TLS');
      (server as HttpsServer).setSecureContext({ cert, key });
    },
    setTrustedProxies: trust.setProxies,
    close: async () => {
      stopping.abort();
      await closed(server, { waitMs: Math.min(finishMsMax, patienceMs), cutAll: progress.cutAll });
      await streaming.ended();
    },
  };
}

/**
 * Stops reading a body until the caller calls the result: a waiting request holds no more than has arrived by the end
 * of a turn of the event loop. A connection whose request is complete is still watched, so that the request is
 * withdrawn when its client leaves. Pausing such a connection is expensive: Node reads a connection that was paused
 * once without the fast path of its parser from then on.
 */
function hold({ socket }: IncomingMessage): typeof nothing {
  socket.pause();
  return () => {
    socket.resume();
    return undefined;
  };
}

interface Closing {
  readonly waitMs: number;
  readonly cutAll: () => void;
}

/**
 * No new connection; idle ones end now, others with their response. Node times no request out any more
 * once its server closes, and knows neither of a TLS handshake nor of a client that does not read.
 */
async function closed(server: Server, { waitMs, cutAll }: Closing): Promise<void> {
  const deadline = setTimeout(cutAll, waitMs);
  await new Promise<void>((resolve) => server.close(() => resolve()));
  clearTimeout(deadline);
}

interface ProgressLimits {
  readonly patienceMs: number;
  readonly checkMs: number;
}

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

function createNodeServer(
  { tls, upgrades = () => false }: Pick<TransportOptions, 'tls' | 'upgrades'>,
  { patienceMs, checkMs }: ProgressLimits,
  listener: Listener,
): Server {
  const limits = {
    IncomingMessage: RequestOfChunks,
    maxHeaderSize: headerBytesMax,
    // Node would respond itself, to any number of requests at once, of which nobody would be charged.
    requireHostHeader: false,
    requestTimeout: patienceMs,
    headersTimeout: patienceMs,
    keepAliveTimeout: keepAliveMs,
    shouldUpgradeCallback: upgrades,
    connectionsCheckingInterval: checkMs,
  };
  if (!tls) return nodeHttp.createServer(limits, listener);
  const https = process.getBuiltinModule('node:https');
  const server = https.createServer({ ...limits, handshakeTimeout: patienceMs, ...tls }, listener);
  // Before Node passes it on as a client's error: a response would wait for the handshake, and the connection with it.
  return server.prependListener('tlsClientError', (_error, socket) => socket.destroy());
}

/** Ends connections whose clients change their keys more often than any needs to. */
function limitKeyUpdates(server: Server, onEnd: (socket: TLSSocket) => void): void {
  const end = (socket: TLSSocket & { readonly _handle?: ReadableHandle | null }) => {
    // Otherwise more would be read in this turn. What was read is lost to OpenSSL in any case.
    socket._handle?.readStop();
    setImmediate(() => {
      onEnd(socket);
      socket.destroy();
    });
  };
  // Only a server of TLS emits it.
  server.on('keylog', countKeyUpdates('client', end));
}

/** Of a connection, below the stream. */
interface ReadableHandle {
  readStop(): number;
}

/** Every path leads to a target or throws its error. A slash at the end of a path makes no difference. */
function createRoutes() {
  const router = findMyWay({
    ignoreTrailingSlash: true,
    maxParamLength: pathParamLengthMax,
    onBadUrl: () => refusePath('The path is not valid.'),
    onMaxParamLength: () => refusePath('The path is too long.'),
  });
  return {
    add: (methods: readonly HTTPMethod[], path: string, handle: Handle) =>
      router.on([...methods], path, nothing, { path, handle } satisfies RouteTarget),
    refuse: (methods: readonly HTTPMethod[], path: string, refusal: VaultError) => {
      const handle = () => Promise.reject(refusal);
      router.on([...methods], path, nothing, { path, handle, refusal } satisfies RouteTarget);
    },
    /** The refusal of an unknown method; `undefined` if the path does not exist. */
    refusalOf: (url: string): VaultError | undefined =>
      (router.find(anyOtherMethod, url)?.store as RouteTarget | null | undefined)?.refusal,
    find: (context: RequestContext): Handle => {
      const { method, request } = context;
      const url = request.url ?? '';
      const found = router.find(method as HTTPMethod, url) ?? router.find(anyOtherMethod, url);
      if (found === null) throw new VaultError('not_found', { public: 'There is no such route.' });
      const target = found.store as RouteTarget | null;
      // Only what refuses a path has no target.
      if (target === null) return found.handler(request, context.response, {}, null, {});
      context.route = target.path;
      context.params = found.params;
      context.query = found.searchParams;
      return target.handle;
    },
  };
}

const nothing = () => undefined;

/** The client of a request, for which the request waits while its body arrives and while its response leaves. */
class ClientOfExchange implements RequestClient {
  readonly #context: RequestContext;
  /** That its connection had read by then; of a request without a body nothing more is read. */
  readonly #bytesReadBefore: number;

  constructor(context: RequestContext) {
    this.#context = context;
    this.#bytesReadBefore = hasBody(context.request) ? context.request.socket.bytesRead : 0;
  }

  get address(): string {
    return this.#context.address;
  }

  get key(): string | undefined {
    return this.#context.apiKey;
  }

  get url(): string | undefined {
    return this.#context.request.url;
  }

  isWaitedFor(): boolean {
    const { request, response } = this.#context;
    return !request.complete || response.headersSent;
  }

  bytesMoved({ held }: AdmittedEntrant): number {
    const { socket } = this.#context.request;
    const received = this.#bytesReadBefore === 0 ? 0 : socket.bytesRead - this.#bytesReadBefore;
    return Math.max(received, held - socket.writableLength);
  }

  cut(): void {
    this.#context.request.socket.destroy();
  }
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}

/** Before any of its body is read: a webhook or a proxy that leads to this vault would feed itself for ever. */
function refuseLoop({ headers }: RequestContext, vaultName: string): void {
  const list = headers[loopHeader];
  if (!namesVault(typeof list === 'string' ? list : undefined, vaultName)) return;
  throw new VaultError('loop_detected', {
    public: 'The request came from this vault, which its CDN-Loop header says.',
  });
}

function refusePath(message: string): never {
  throw new VaultError('malformed_request', { public: message });
}

/** The way of a request to this server, as far as it can be trusted. */
interface RequestPath {
  readonly address: string;
  /** The trusted proxies that passed it on, the nearest to the client first. */
  readonly forwarded?: string | undefined;
}

/** More proxies than these are not named. */
const proxiesNamedMax = 4;

interface ProxyTrust {
  /**
   * The address of the peer, or the valid address that trusted proxies name: limits count by it, and the log names it.
   * A peer that has already left has no address. What a client claims of hops before the one that the last trusted
   * proxy saw is left out.
   */
  pathOf(request: IncomingMessage): RequestPath;
  /** Whether a peer is a proxy that is trusted. */
  isTrusted(address: string): boolean;
  setProxies(proxies: readonly string[]): void;
}

function createTrust(trustedProxies: readonly string[]): ProxyTrust {
  let trust = trustIn(trustedProxies);
  const peerOf = ({ socket }: IncomingMessage): RequestPath => ({
    address: socket.remoteAddress ?? '',
  });
  return {
    pathOf: (request) => {
      if (trust === undefined) return peerOf(request);
      const hops = proxyAddress.all(request, trust);
      const address = hops.at(-1) ?? '';
      if (isIP(address) === 0) return peerOf(request);
      const proxies = hops.slice(0, -1).reverse().slice(-proxiesNamedMax);
      return { address, forwarded: proxies.length === 0 ? undefined : proxies.join(', ') };
    },
    isTrusted: (address) => trust !== undefined && isIP(address) !== 0 && trust(address, 0),
    setProxies: (proxies) => {
      trust = trustIn(proxies);
    },
  };
}

function trustIn(proxies: readonly string[]) {
  return proxies.length === 0 ? undefined : proxyAddress.compile([...proxies]);
}
