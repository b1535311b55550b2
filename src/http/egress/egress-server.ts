/** The forward proxy: programs send their requests through it, and hold placeholders in place of values. */
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { setImmediate as nextTurn, setTimeout as timeout } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import { minute, second } from '../../base/clock.ts';
import { errorKinds, reasonOf, VaultError } from '../../base/errors.ts';
import { nodeHttp } from '../../base/node-http.ts';
import { OutboundError } from '../../outbound/error.ts';
import type { OpenTunnel } from '../../outbound/tunnel.ts';
import { isHandshake } from '../../outbound/websocket.ts';
import { covers, createApprovals } from '../../proxies/approvals/waiting.ts';
import { egressId, egressProxy } from '../../proxies/calls/called-proxy.ts';
import { failedEntry } from '../../proxies/calls/entries.ts';
import type { GivenApproval, ProxyCall } from '../../proxies/calls/proxy-call.ts';
import { findingPlaceholders, hasPlaceholders } from '../../proxies/egress/placeholder-targets.ts';
import {
  type PlaceholdersRead,
  readPlaceholders,
  textsOf,
  textsWithNumbers,
} from '../../proxies/egress/placeholder-texts.ts';
import { scrubMessages, scrubResponse } from '../../proxies/egress/scrub-response.ts';
import { CheckedFrames } from '../../proxies/egress/websocket-frames.ts';
import type { Caller, Origin } from '../../rules/caller.ts';
import { allowsDestination } from '../../rules/destinations.ts';
import {
  digestOfPolicy,
  type EgressPolicy,
  type EgressTarget,
  policiesFor,
  policyFor,
} from '../../rules/egress-policies.ts';
import { detailed, entryOf } from '../../rules/log-entries.ts';
import { isEnded, perform } from '../../rules/operation.ts';
import { holds } from '../../rules/policy.ts';
import { forbid } from '../../rules/refusal.ts';
import { createBeginResponse } from '../begin-response.ts';
import { createAdmission } from '../limits/admission.ts';
import type { Holder } from '../limits/rate-limit.ts';
import type { Shares } from '../limits/shares.ts';
import type { OpenForTool } from '../mcp/tool-request.ts';
import { observingRequests } from '../observe-requests.ts';
import { createCors } from '../protocol/cors.ts';
import { createServiceHeaders } from '../protocol/headers.ts';
import { paced } from '../protocol/paced.ts';
import { problemMediaType, problemOf, vaultErrorOf } from '../protocol/problem.ts';
import type { RequestContext } from '../protocol/request-context.ts';
import type { RequestShare } from '../protocol/request-share.ts';
import type { CallParties } from '../proxy/find-call.ts';
import { createHandleCall, type HandledCall } from '../proxy/handle-call.ts';
import { callPath } from '../proxy/methods.ts';
import type { ServerOptions } from '../server.ts';
import { createTransport, finishMsMax, type HttpServer } from '../transport.ts';
import { createEgressLimits } from './egress-limits.ts';
import { proxyKeyOf, requireSameHost, targetOf } from './egress-target.ts';
import { serveHttp2 } from './http2-streams.ts';
import { innerConnection } from './inner-connection.ts';
import { createLeafContexts } from './leaf-contexts.ts';
import { type BegunUpgrade, beginUpgrade } from './upgrade.ts';

export interface EgressServerOptions extends ServerOptions {
  readonly shares: Shares;
  readonly openTunnel: OpenTunnel;
}

/** A CONNECT. */
interface RequestedConnection {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly share: RequestShare;
}

/** What a connection was opened for. */
interface OpenedConnection extends EgressTarget {
  readonly key: string;
  /** Tools have no messages. */
  readonly upgrades: boolean;
}

const route = {
  method: 'POST',
  path: '/egress',
  permission: 'proxy:invoke',
  alternative: 'token:use',
  kinds: ['private'],
} as const;

/** Rules that name calls of proxies by their method count a connection as one that sends something. */
const countedAs = { method: 'POST', path: callPath } as const;
/** The response to a CONNECT says nothing of what is left. */
const headless = { headerToSend: () => undefined, setHeaders: () => undefined };

const marks = { isIn: hasPlaceholders, overlapBytes: 30 };
/** What a new connection costs: a handshake, and sometimes a certificate, in milliseconds. */
const connectMs = 2;
const handshakeMsMax = 10 * second;
/** One of so many parts of the connections that requests to the vault itself may have. */
const descriptorsPart = 8;
/** A tunnel in which nothing moves for so long ends. */
const idleMsMax = 10 * minute;
/** Values that are shorter may be guessed by trying. */
const guessedLengthMax = 16;
/** Between looks at whether a tunnel may go on. */
const standsMs = second / 2;

export interface EgressServer extends HttpServer {
  readonly openForTool: OpenForTool;
}

export function createEgressServer(options: EgressServerOptions): EgressServer {
  const { store, clock, headerPrefixes, authenticate, shares, log, openTunnel } = options;
  const headers = createServiceHeaders(headerPrefixes);
  const cors = createCors(headerPrefixes);
  const opened = new WeakMap<Duplex, OpenedConnection>();
  const sockets = new Set<Duplex>();
  /** What gives what programs send after their handshakes. */
  const handshakes = new WeakMap<IncomingMessage, BegunUpgrade['open']>();
  const leafContext = createLeafContexts(options);
  const spend = createEgressLimits(store);
  const stopping = new AbortController();
  const awaitApproval = createApprovals({ ...options, stopping: stopping.signal });
  /** Requests that wait for a person. */
  const waiting = new Set<Promise<unknown>>();
  const upgrades = (request: IncomingMessage) =>
    opened.get(request.socket)?.upgrades === true && isHandshake(request);
  const transport = createTransport({
    ...options,
    threads: (options.threads ?? 1) * descriptorsPart,
    begin: createBeginResponse({ ...options, headers, cors }),
    cors,
    passesPreflights: true,
    upgrades,
    onEnd: observingRequests(options),
    keyOf: (request) => opened.get(request.socket)?.key ?? proxyKeyOf(request),
  });
  const { streaming, server } = transport;
  const admission = createAdmission(options);
  const handleCall = createHandleCall({ ...options, headers, admission, streaming });
  const limits = options.rateLimits(countedAs);

  /** Fails, and records it, unless the caller's policies have the host. */
  async function requirePolicies(
    caller: Caller,
    target: EgressTarget,
  ): Promise<readonly [EgressPolicy, ...EgressPolicy[]]> {
    const [first, ...others] = policiesFor(caller.egress ?? [], target);
    const destinations = caller.tenant.settings.proxy_destinations;
    if (!first) return refuse(caller, 'No egress policy of the application has this host.');
    if (allowsDestination(destinations, target.host)) return [first, ...others];
    return refuse(
      caller,
      'The tenant does not allow this destination (setting proxy_destinations).',
    );
  }

  async function refuse(caller: Caller, message: string): Promise<never> {
    const denial = { entity: 'proxy', id: egressId, operation: 'invoke', message };
    const performing = { store, actor: caller, clock, route };
    return perform<never>(performing, async () => forbid(caller, clock.now(), denial));
  }

  async function handle(context: RequestContext): Promise<void> {
    const { request, apiKey, method } = context;
    const connection = opened.get(request.socket);
    if (apiKey === undefined) return challenge(context);
    const target = connection ?? targetOf(request.headers.host ?? '', true);
    if (connection) requireSameHost(request, connection);
    const [path = '', ...query] = (request.url ?? '').split('?');
    const values = new Set<string>();
    const openMessages = handshakes.get(request);
    let policyDigest: string | undefined;
    const parties: HandledCall['parties'] = async (limits) => {
      const count =
        limits &&
        ((holder: Holder) => limits.byKey({ ...admission.senderOf(context), holder }, context));
      const caller = await admission.admit(route, context, count);
      const policies = await requirePolicies(caller, target);
      const policy = policyFor(policies, { method, path });
      if (!policy || policy.tunnel) {
        return refuse(
          caller,
          'The egress policies for this host do not have the method and the path.',
        );
      }
      if (openMessages) {
        // What is said in a connection has no other moment at which the policy would count.
        policyDigest ??= digestOfPolicy(policy);
        const isSame = digestOfPolicy(policy) === policyDigest;
        if (!policy.websocket) return refuse(caller, 'The egress policy has no WebSocket.');
        if (!isSame) return refuse(caller, 'The egress policy of the WebSocket changed.');
      }
      return { caller, proxy: egressProxy(caller.tenant, { ...target, policy }) };
    };
    await handleCall(context, {
      path,
      query: query.length === 0 ? undefined : query.join('?'),
      isOnOwnHost: false,
      marks,
      ...(openMessages && { upgrade: true }),
      parties,
      headers: () => ({ headers: request.rawHeaders, hopHeaders: [], encrypted: undefined }),
      prepare: (found) => prepare(found, values),
      receive: async (response, call) => {
        const { upgraded } = response;
        if (values.size === 0 && !upgraded) return response;
        const { host } = new URL(call.proxy.destinationUrl);
        const sent = { values, known: textsOf(call), pay: payerOf(context) };
        const onEnd = (found: number) => {
          if (found === 0) return;
          noteFound(call.caller, `${call.method}, ${found} in the response of ${host}`);
        };
        if (!upgraded) return scrubResponse(response, sent, onEnd);
        const scrubbed = await scrubMessages(response, sent, onEnd);
        assert(openMessages && context.share, 'only a handshake with its turn is accepted');
        const ways = [new CheckedFrames('client', sent.pay), paced(context.share)] as const;
        for (const way of ways) way.once('error', () => upgraded.destroy());
        openMessages().pipe(ways[0]).pipe(ways[1]).pipe(upgraded);
        return scrubbed;
      },
    });
  }

  async function prepare({ caller, proxy }: CallParties, values: Set<string>) {
    const { egress: policy } = proxy;
    assert(policy, 'a policy is in the place of the proxy');
    await spend({ caller, policy, what: 'calls', times: 1 });
    return {
      readPlaceholders: (call: ProxyCall) => readAsOfNow(call, values),
      ...(policy.approval && { approve }),
    };
  }

  /** What is refused in any case is shown to nobody: it is read once more, and refused with its entry. */
  async function approve(call: ProxyCall): Promise<GivenApproval | undefined> {
    let found: PlaceholdersRead['found'];
    try {
      found = (await read(call, () => undefined))?.found ?? [];
    } catch (error) {
      if (error instanceof VaultError) return undefined;
      throw error;
    }
    const tokens = found.map(({ target: { tokenId: id, property }, place }) => ({
      id,
      ...(property !== undefined && { property }),
      place,
    }));
    const approval = awaitApproval(call, tokens);
    waiting.add(approval);
    return approval.finally(() => waiting.delete(approval));
  }

  async function read({ caller, ...call }: ProxyCall, onValue: (value: string) => void) {
    const { egress: policy } = call.proxy;
    assert(policy, 'a policy is in the place of the proxy');
    const holder = {
      keyring: caller.tenant.keyring,
      application: caller.application,
      policies: caller.egress ?? [],
      now: () => clock.now(),
    };
    const find = await findingPlaceholders(holder, textsWithNumbers({ ...call, caller }));
    return readPlaceholders(
      { ...call, caller },
      {
        policy,
        find,
        onValue: (value) => {
          if (call.upgrade && mayBeGuessed(value)) throw guessable();
          onValue(value);
        },
      },
    );
  }

  /** While a body arrived slowly, the policies may have changed, and placeholders may have ended. */
  async function readAsOfNow(call: ProxyCall, values: Set<string>) {
    const { caller, proxy, approval } = call;
    const { egress: policy } = proxy;
    assert(policy, 'a policy is in the place of the proxy');
    const texts = await read(call, (value) => values.add(value));
    if (policy.approval && !(approval && covers(approval, policy))) throw unapproved();
    if (texts) await spend({ caller, policy, what: 'values', times: texts.references.length });
    return texts;
  }

  /** The request is over, so a failure is the operator's to see. */
  function noteFound(caller: Caller, detail: string): void {
    const fact = { entity: 'proxy', id: egressId, operation: 'scrub' } as const;
    const entry = detailed(entryOf(caller, clock.now(), fact), detail);
    store.commit({ entries: [entry] }).catch((error: unknown) => {
      log.error('values in a response are not in the log', { reason: reasonOf(error) });
    });
  }

  /** RFC 9110, section 15.5.8. */
  function challenge(context: RequestContext): void {
    context.setHeader('proxy-authenticate', proxyAuthenticate);
    context.send(407, JSON.stringify(authenticationProblem), problemMediaType);
  }

  /** Waits for its turn in the share of its key, which pays for it. */
  function enter(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const refuseWith = (error: unknown) => {
      const failure = vaultErrorOf(error);
      if (failure.code === 'internal')
        log.error('a connection of a program failed', { reason: failure.message });
      refuseConnect(socket, failure);
    };
    const client = {
      address: request.socket.remoteAddress ?? '',
      key: proxyKeyOf(request),
      url: request.url,
      isWaitedFor: () => false,
      bytesMoved: () => 0,
      cut: () => socket.destroy(),
    };
    const begin = (share: RequestShare) => {
      share.charge(connectMs);
      connect({ request, socket, head, share })
        .catch((error: unknown) => {
          // Of a key that is not valid any more, the holder pays for nothing.
          if (error instanceof VaultError && error.code === 'unauthenticated')
            share.settle(undefined);
          refuseWith(error);
        })
        .finally(() => {
          share.leave();
          share.done();
        });
    };
    socket.once('close', shares.enter(client, begin, refuseWith));
  }

  async function connect({ request, socket, head, share }: RequestedConnection): Promise<void> {
    const address = request.socket.remoteAddress ?? '';
    const target = targetOf(request.url ?? '', false);
    const key = proxyKeyOf(request);
    const dialect = headerPrefixes[0] ?? 'SVC';
    const origin: Origin = { address, traceId: options.newTraceId(), dialect };
    const parties = async () => {
      const caller = await authenticate(key, origin);
      if (caller.kind !== 'private')
        await refuse(caller, 'A forward proxy needs a private API key.');
      // No request within a tunnel is admitted, so whatever it needs is asked here, and again while it is open.
      if (![route.permission, route.alternative].some((one) => holds(caller.policy, one)))
        await refuse(caller, 'A connection needs the permission proxy:invoke or token:use.');
      const [policy] = await requirePolicies(caller, target);
      return { caller, policy };
    };
    await limits.byAddress({ address, key }, headless);
    const holder = await authenticate(key, origin);
    share.settle(holder);
    await limits.byKey({ address, key, holder }, headless);
    const { caller, policy } = await parties();
    assert(key !== undefined, 'no caller is authenticated without a key');
    if (policy.tunnel) {
      await passOnUnopened({ caller, target, socket, head, parties, share });
      return;
    }
    const secureContext = await leafContext(caller.tenant, certifiedName(policy, target));
    socket.write(established);
    if (head.length > 0) socket.unshift(head);
    open({
      socket,
      connection: { ...target, key, upgrades: true },
      secureContext,
      parties,
      address,
    });
  }

  interface ConnectionToOpen {
    readonly socket: Duplex;
    readonly connection: OpenedConnection;
    readonly secureContext: Awaited<ReturnType<typeof leafContext>>;
    readonly parties: Parties;
    readonly address: string;
  }

  function open({ socket, connection, secureContext, parties, address }: ConnectionToOpen): void {
    const secured = new TLSSocket(socket as never, {
      isServer: true,
      secureContext,
      ALPNProtocols: ['h2', 'http/1.1'],
      // A name that is not the one of the CONNECT would be another site of the same servers.
      SNICallback: (name, give) =>
        name.toLowerCase() === connection.host
          ? give(null, secureContext)
          : give(new Error('the server name is not the host of the connection')),
    });
    const timer = setTimeout(() => secured.destroy(), handshakeMsMax);
    secured.on('error', () => secured.destroy());
    secured.once('close', () => {
      clearTimeout(timer);
      socket.destroy();
    });
    secured.once('secure', () => {
      clearTimeout(timer);
      if (secured.alpnProtocol !== 'h2') {
        serve(secured, connection);
        return;
      }
      serveHttp2(secured, {
        below: socket,
        open: () => serveWithin(address, { ...connection, upgrades: false }, socket),
        check: (end) => endWith(parties, ({ tunnel }) => tunnel !== true, end),
      });
    });
  }

  function serve(socket: Duplex, connection: OpenedConnection): void {
    opened.set(socket, connection);
    // A server of TLS takes connections that are secured by another event.
    server.emit(options.tls ? 'secureConnection' : 'connection', socket);
  }

  const openForTool: OpenForTool = ({ key, address, authority, isPlain }) => {
    const target = targetOf(authority, isPlain);
    return serveWithin(address, { ...target, key, upgrades: false });
  };

  /** A connection within the process. */
  function serveWithin(address: string, connection: OpenedConnection, within?: Duplex): Duplex {
    const { client, server: socket } = innerConnection(address, within);
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket)).on('error', () => socket.destroy());
    serve(socket, connection);
    return client;
  }

  interface UnopenedConnection {
    readonly caller: Caller;
    readonly target: EgressTarget;
    readonly socket: Duplex;
    readonly head: Buffer;
    readonly parties: Parties;
    readonly share: RequestShare;
  }

  /**
   * The entry comes first, as before each call. The connection ends with the key and with the policy. Resolves when it
   * has ended: until then its share pays for what it passes on.
   */
  async function passOnUnopened(unopened: UnopenedConnection): Promise<void> {
    const { caller, target, socket, head, parties, share } = unopened;
    const { host, port } = target;
    const fact = { entity: 'proxy', id: egressId, operation: 'invoke' } as const;
    const entry = detailed(
      entryOf(caller, clock.now(), fact),
      `CONNECT, tunnel to ${host}:${port}`,
    );
    await store.commit({ entries: [entry] });
    const began = performance.now();
    const other = await openTunnel(new URL(`https://${host}:${port}`), caller.tenant.id).catch(
      async (error) => {
        const proxy = { id: egressId, destinationUrl: `https://${host}:${port}` } as const;
        const outcome = { now: clock.now(), milliseconds: Math.round(performance.now() - began) };
        const reason = error instanceof OutboundError ? error.message : 'it could not be reached';
        await store.commit({
          entries: [failedEntry({ caller, proxy, method: 'CONNECT' }, outcome, reason)],
        });
        throw new VaultError('bad_gateway', {
          public: `The destination could not be called: ${reason}.`,
          cause: error,
        });
      },
    );
    sockets.add(other);
    const watch = setInterval(
      () => endWith(parties, ({ tunnel }) => tunnel === true, end),
      standsMs,
    ).unref();
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const end = () => {
      resolve();
      clearInterval(watch);
      sockets.delete(other);
      other.destroy();
      socket.destroy();
    };
    other.setTimeout(idleMsMax, end);
    other.on('error', end).once('close', end);
    socket.on('error', end).once('close', end);
    socket.write(established);
    if (head.length > 0) other.write(head);
    const ways = [paced(share), paced(share)] as const;
    for (const way of ways) way.on('error', end);
    socket.pipe(ways[0]).pipe(other).pipe(ways[1]).pipe(socket);
    await ended;
  }

  // They are handled as requests are, whose response is the beginning of the connection.
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    // Node before 24.9 asks nobody whether a request is one.
    const begun = upgrades(request) ? beginUpgrade({ request, socket, head }) : undefined;
    if (!begun) {
      socket.destroy();
      return;
    }
    handshakes.set(request, begun.open);
    server.emit('request', request, begun.response);
  });
  transport.divert((context) => () => handle(context));
  server.on('connect', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    // Layers of TLS within each other would have no end.
    if (opened.has(request.socket)) {
      refuseConnect(socket, nestedConnect());
      return;
    }
    enter(request, socket, head);
  });
  return {
    ...transport,
    openForTool,
    close: async () => {
      stopping.abort();
      const closed = transport.close();
      // They have their response, and nothing stored waits without them.
      await Promise.race([
        Promise.allSettled(waiting).then(() => nextTurn()),
        timeout(finishMsMax, undefined, { ref: false }),
      ]);
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** Who has a connection, and under which policy, as of now. */
type Parties = () => Promise<{ readonly policy: EgressPolicy }>;

/** With the key of a connection, and with its policy. */
function endWith(
  parties: Parties,
  stands: (policy: EgressPolicy) => boolean,
  end: () => void,
): void {
  parties().then(
    ({ policy }) => stands(policy) || end(),
    (error: unknown) => isEnded(error) && end(),
  );
}

/** The time that a response takes is its caller's, whose other requests and other callers have their turns between. */
function payerOf({ share }: RequestContext): (ms: number) => Promise<void> {
  let owedMs = 0;
  return async (ms) => {
    owedMs += ms;
    if (share === undefined || owedMs < 1) return;
    share.charge(owedMs);
    owedMs = 0;
    await share.turnOfPart();
  };
}

/** One certificate for all hosts of a wildcard, which clients take from three labels on: names cost nothing. */
function certifiedName({ host: named }: EgressPolicy, { host }: EgressTarget): string {
  return named.startsWith('*.') && named.split('.').length >= 3 ? named : host;
}

/** Shorter than keys are, or nothing but digits. */
function mayBeGuessed(value: string): boolean {
  return value.length < guessedLengthMax || /^[\d\s.-]*$/.test(value);
}

/** If the host sends back what it gets, each message would test a guess, and none of them has a budget. */
function guessable(): VaultError {
  return new VaultError('forbidden', {
    public:
      'The handshake of a WebSocket cannot have a value of digits alone, or of fewer than ' +
      `${guessedLengthMax} characters: messages could be used to guess it.`,
  });
}

function unapproved(): VaultError {
  return new VaultError('forbidden', {
    public: 'The egress policy needs the approval of a person, and changed since one was asked.',
  });
}

const established = 'HTTP/1.1 200 Connection Established\r\n\r\n';
const proxyAuthenticate = 'Basic realm="strongroom", charset="UTF-8"';

const authenticationProblem = {
  type: 'urn:strongroom:problem:unauthenticated',
  title: 'Proxy Authentication Required',
  status: 407,
  detail: 'Send a valid API key as the password of the proxy.',
};

function nestedConnect(): VaultError {
  return new VaultError('malformed_request', {
    public: 'A connection that was opened has requests of its host, and no CONNECT.',
  });
}

/** In place of a connection. */
function refuseConnect(socket: Duplex, failure: VaultError): void {
  const isUnknown = failure.code === 'unauthenticated';
  const status = isUnknown ? 407 : errorKinds[failure.code].status;
  const body = JSON.stringify(isUnknown ? authenticationProblem : problemOf(failure));
  const given = isUnknown ? { 'proxy-authenticate': proxyAuthenticate } : (failure.headers ?? {});
  const head = [
    `HTTP/1.1 ${status} ${nodeHttp.STATUS_CODES[status]}`,
    `content-type: ${problemMediaType}`,
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
    ...Object.entries(given).map(([name, value]) => `${name}: ${value}`),
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}
