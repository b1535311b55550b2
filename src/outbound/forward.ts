/** The client for other hosts: streamed in both directions, guarded, limited, and with persistent connections. */
import assert from 'node:assert/strict';
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { type Duplex, Readable } from 'node:stream';
import { extendedLoop, loopHeader } from '../base/cdn-loop.ts';
import type { TraceContext } from '../base/telemetry/trace-context.ts';
import { type Admission, type AdmissionOptions, createAdmission, nameOf } from './admission.ts';
import { Connections, type OutgoingOptions } from './connections.ts';
import { endToEnd, valuesOf } from './end-to-end.ts';
import { failureOf, OutboundError } from './error.ts';
import type { Handshakes } from './handshakes.ts';
import { announcedLength, firstPart, framingOf, sendStream } from './request-body.ts';
import { type ForwardResponse, type Received, receive } from './response.ts';
import { type Slot, type SlotLimits, Slots } from './slots.ts';
import { TimeLimit } from './time-limit.ts';
import {
  type ClientCertificate,
  type Credentials,
  createTrust,
  type TrustOptions,
} from './trust.ts';
import { acceptedResponse, extensionsHeader, handshakeHeaders, isAccepted } from './websocket.ts';

export interface ForwardRequest {
  /** Any method except CONNECT. */
  readonly method: string;
  readonly url: URL;
  /** The path and query exactly as sent, if the URL would spell them differently. ASCII without spaces. */
  readonly target?: string | undefined;
  /**
   * Alternating names and values in the order in which they are sent. Hop-by-hop headers are removed, and Host is
   * set.
   */
  readonly headers: readonly string[];
  /** Headers for the connection to the host, such as `Keep-Alive`. */
  readonly hopHeaders?: readonly string[] | undefined;
  /** A stream is sent with its Content-Length if one is given, otherwise in chunks. It is never destroyed. */
  readonly body: Readable | Uint8Array | undefined;
  /**
   * Limits the time from the look-up of the name to the head of the response. After that, it limits the time in which
   * no byte moves in either direction.
   */
  readonly timeoutMs: number;
  /** Requests share connections if they have the same partition, guard's decision, and client certificate. */
  readonly partition: string;
  readonly clientCertificate?: ClientCertificate | undefined;
  /** The `CDN-Loop` of the original request, even if its other headers were changed. */
  readonly loop?: string | undefined;
  /**
   * Set for a caller without a key. Such requests have slots of their own, so that no call with a key waits for them.
   */
  readonly keyless?: true | undefined;
  /** The request may be sent twice without harm, whatever its method is. */
  readonly repeatable?: true;
  /** A handshake of WebSocket, without a body. Its key is in the headers; the connection is then the caller's. */
  readonly upgrade?: true | undefined;
  /** The operator chose the URL, which may be http if the allow-list has its host. */
  readonly mayBePlain?: true;
  /** Aborted when the caller has disconnected, which closes the connection to the host. */
  readonly signal?: AbortSignal | undefined;
  /** The trace of the original request; see `traced.ts`. */
  readonly trace?: TraceContext | undefined;
}

/** Follows no redirect. @throws OutboundError with a reason that contains no data of the call. */
export type Forward = (request: ForwardRequest) => Promise<ForwardResponse>;

export interface OutboundOptions extends AdmissionOptions, TrustOptions {}

export interface ForwardOptions extends OutboundOptions {
  /** The name of this vault, which every request adds to `CDN-Loop` (RFC 8586), so that no request loops forever. */
  readonly vaultName: string;
  /** Of all forwards of this thread together. */
  readonly handshakes?: Handshakes | undefined;
}

export const forwardHeaderBytesMax = 16_384;
/** Requests in progress. Further requests wait within their time limit. A destination is a host of a partition. */
export const slotLimits = {
  destinationMax: 64,
  partitionMax: 256,
  totalMax: 512,
  waitingMax: 1_024,
  waitingOfPartitionMax: 256,
};

/** Responses before the final one (RFC 9110, section 15.2). Each costs some microseconds. */
export const interimResponsesMax = 100;

/** The fraction of each limit that callers without a key have, in addition to the limits of callers with keys. */
const keylessShare = 4;

function quarterOf(limits: SlotLimits): SlotLimits {
  const share = (max: number) => Math.max(1, Math.floor(max / keylessShare));
  return {
    destinationMax: share(limits.destinationMax),
    partitionMax: share(limits.partitionMax),
    totalMax: share(limits.totalMax),
    waitingMax: share(limits.waitingMax),
    waitingOfPartitionMax: share(limits.waitingOfPartitionMax),
  };
}

/** Methods that are idempotent (RFC 9110, section 9.2.2). */
const idempotent: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'PUT',
  'DELETE',
  'OPTIONS',
  'TRACE',
]);

/** An admitted request with its options and limits. */
interface Passage {
  readonly request: ForwardRequest;
  readonly options: OutgoingOptions;
  readonly limit: TimeLimit;
  /** Whether the request may be sent again if the host had already closed the reused connection. */
  readonly repeatable: boolean;
}

export function createForward(
  options: ForwardOptions,
  limits: SlotLimits = slotLimits,
  connections = new Connections(undefined, options.handshakes),
): Forward {
  const admit = createAdmission(options);
  const credentialsOf = createTrust(options);
  const slots = new Slots(limits);
  const keylessSlots = new Slots(quarterOf(limits));
  // Our own agent ignores proxy settings of the environment.
  const plainConnections = new http.Agent();

  async function send(passage: Passage): Promise<ForwardResponse> {
    const { request, options, limit } = passage;
    const { destination } = options;
    const waiting = firstPart(request.body, limit);
    if (waiting) await waiting;
    const taken = (request.keyless ? keylessSlots : slots).take({
      destination,
      partition: request.partition,
      limit,
    });
    const slot = taken instanceof Promise ? await taken : taken;
    const client = open(options, limit, slot);
    const watched = watch(client, options.protocol === 'http:');
    const { promise, resolve, reject } = Promise.withResolvers<ForwardResponse>();
    let received: Received | undefined;
    let upgraded: Duplex | undefined;
    let isRepeated = false;
    const stop = (failure: OutboundError) => {
      received?.fail(failure);
      upgraded?.destroy(failure);
      client.destroy(failure);
    };
    limit.giveUp = stop;
    slot.watch({
      // Until the host responds, whether the request has its effect is not known.
      isWaitedFor: () => (received ?? upgraded) !== undefined || !client.writableEnded,
      bytesMoved: watched.bytesMoved,
      cut: () => stop(new OutboundError('busy')),
    });
    client.once('close', () => {
      // Its connection is open.
      if (upgraded) return;
      if (!isRepeated) limit.lift();
      slot.free();
      // There is nearly always a response by now, and creating an error is expensive because of its stack trace.
      if (received === undefined) reject(new OutboundError('reset'));
    });
    client.on('upgrade', (incoming, socket, head) => {
      if (
        !request.upgrade ||
        interim > interimResponsesMax ||
        !isAccepted(incoming, request.headers)
      ) {
        socket.destroy();
        reject(new OutboundError('invalid_response'));
        return;
      }
      upgraded = socket;
      limit.stopTimer();
      socket.once('close', () => {
        limit.lift();
        slot.free();
      });
      if (head.length > 0) socket.unshift(head);
      resolve(acceptedResponse(incoming, socket));
    });
    let interim = 0;
    client.on('information', () => {
      interim += 1;
      if (interim > interimResponsesMax) stop(new OutboundError('invalid_response'));
    });
    client.on('response', (incoming) => {
      // It has been stopped, but the parser goes on to the end of the packet.
      if (interim > interimResponsesMax) return;
      if (!isFinal(incoming) || !hasKnownFraming(incoming))
        return stop(new OutboundError('invalid_response'));
      // The timer also applies to a response that is complete and only has to be read.
      limit.restartTimer();
      // Most responses arrive complete in the packet of their head, which has been parsed by then.
      queueMicrotask(() => {
        if (incoming.complete && client.writableFinished) return;
        limit.stopTimer();
        limitSilence(client, request.timeoutMs, stop);
      });
      received = receive(client, incoming);
      resolve(received.response);
    });
    client.on('error', (error) => {
      // A complete response stays valid if the rest of the request cannot be sent any more.
      if (received) return received.isWhole() ? undefined : received.fail(failureOf(error));
      if (!passage.repeatable || !watched.isStale(error)) return reject(watched.failureOf(error));
      isRepeated = true;
      connections.closeIdle(destination);
      resolve(send({ ...passage, repeatable: false }));
    });
    sendBody(client, request);
    return promise;
  }

  return async (request) => {
    assert(request.method !== 'CONNECT');
    const admitted = admit(request.url);
    const isPlain = request.url.protocol === 'http:';
    if (isPlain && !request.mayBePlain) throw new OutboundError('forbidden_url');
    const credentials = credentialsOf(request.clientCertificate);
    const placed = {
      ...optionsOf(request, admitted, { ...credentials, vaultName: options.vaultName }),
      agent: isPlain ? plainConnections : connections,
    };
    const mayRepeat = request.repeatable ?? idempotent.has(request.method);
    const repeatable = mayRepeat && !(request.body instanceof Readable);
    const limit = new TimeLimit(request.timeoutMs, request.signal);
    try {
      return await send({ request, options: placed, limit, repeatable });
    } catch (error) {
      limit.lift();
      throw failureOf(error);
    }
  };
}

function optionsOf(
  request: ForwardRequest,
  { decision, host, lookup }: Admission,
  { id, context, vaultName }: Credentials & Pick<ForwardOptions, 'vaultName'>,
): OutgoingOptions {
  const { method, url, target, headers, body, partition, loop, upgrade } = request;
  const hopHeaders = upgrade ? handshakeHeaders : (request.hopHeaders ?? []);
  const dropped = ['host', 'content-length', 'expect', loopHeader];
  const name = nameOf(url);
  const lengths = body instanceof Readable ? valuesOf(headers, 'content-length') : [];
  return {
    method,
    protocol: url.protocol,
    host: name,
    port: Number(url.port || (url.protocol === 'https:' ? 443 : 80)),
    path: target ?? `${url.pathname}${url.search}`,
    headers: [
      ...['Host', url.host],
      ...endToEnd(headers, upgrade ? [...dropped, extensionsHeader] : dropped),
      ...['CDN-Loop', extendedLoop([loop, ...valuesOf(headers, loopHeader)], vaultName)],
      ...hopHeaders,
      ...framingOf({ method, body, lengths }),
    ],
    maxHeaderSize: forwardHeaderBytesMax,
    insecureHTTPParser: false,
    // Overrides NODE_TLS_REJECT_UNAUTHORIZED.
    rejectUnauthorized: true,
    // Without it, Node verifies the name in the Host header.
    servername: isIP(name) === 0 ? name : '',
    secureContext: context,
    destination: `${decision} ${host} ${id} ${partition}`,
    party: request.keyless ? `keyless ${partition}` : partition,
    ...(lookup && { lookup }),
  };
}

function open(options: OutgoingOptions, limit: TimeLimit, slot: Slot): ClientRequest {
  try {
    limit.throwIfOver();
    // `https.request` would copy the options once more.
    const client = http.request(options);
    // Without it, Node drops headers beyond the two-thousandth. Their bytes are limited anyway.
    client.maxHeadersCount = 0;
    return client;
  } catch (error) {
    slot.free();
    throw error;
  }
}

function sendBody(client: ClientRequest, { body, headers }: ForwardRequest): void {
  if (!(body instanceof Readable)) {
    client.end(body);
    return;
  }
  // A host may respond, and a caller may wait for that response, before the body begins.
  if (body.readableLength === 0) client.flushHeaders();
  sendStream(client, body, announcedLength(valuesOf(headers, 'content-length')));
}

/** Tracks how far the connection of a request has come. */
function watch(client: ClientRequest, isPlain: boolean) {
  let isSecured = isPlain;
  /** The bytes that a reused connection had received and sent before. */
  let readBefore = 0;
  let writtenBefore = 0;
  client.on('socket', (socket) => {
    if (client.reusedSocket) {
      readBefore = socket.bytesRead;
      writtenBefore = socket.bytesWritten;
    } else {
      socket.once('secureConnect', () => {
        isSecured = true;
      });
    }
  });
  const isUntouched = () => client.socket?.bytesRead === readBefore;
  const isBroken = (error: Error) => failureOf(error).reason === 'reset';
  return {
    /** In both directions; what has not been taken by the host has not moved. */
    bytesMoved: () => {
      const { socket } = client;
      if (!socket) return 0;
      const written = socket.bytesWritten - socket.writableLength - writtenBefore;
      return socket.bytesRead - readBefore + Math.max(0, written);
    },
    /** The host closed a reused connection, or was about to, and has not responded at all. */
    isStale: (error: Error) => client.reusedSocket && isUntouched() && isBroken(error),
    failureOf: (error: Error) => {
      const isHandshaking = !client.reusedSocket && !isSecured;
      return isHandshaking && isBroken(error) ? new OutboundError('tls', error) : failureOf(error);
    },
  };
}

/** The parser accepts any three digits as a status, including those that no server can forward. */
function isFinal({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200;
}

/** The vault requests no coding other than chunked, and another one would be lost with its header. */
function hasKnownFraming({ rawHeaders }: IncomingMessage): boolean {
  const codings = valuesOf(rawHeaders, 'transfer-encoding');
  return codings.length === 0 || (codings.length === 1 && /^chunked$/i.test(codings[0] ?? ''));
}

/** Applies until the connection serves another request. */
function limitSilence(
  client: ClientRequest,
  timeoutMs: number,
  stop: (failure: OutboundError) => void,
): void {
  const { socket } = client;
  const onSilence = () => stop(new OutboundError('timeout'));
  socket?.setTimeout(timeoutMs).on('timeout', onSilence);
  client.once('close', () => socket?.off('timeout', onSilence));
}
