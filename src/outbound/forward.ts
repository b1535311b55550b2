/** The client for other hosts: streamed both ways, guarded, within limits, over connections that are kept open. */
import assert from 'node:assert/strict';
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { Readable } from 'node:stream';
import { extendedLoop, loopHeader } from '../base/cdn-loop.ts';
import type { TraceContext } from '../base/telemetry/trace-context.ts';
import { type Admission, type AdmissionOptions, createAdmission, nameOf } from './admission.ts';
import { Connections, type PlacedOptions } from './connections.ts';
import { endToEnd, valuesOf } from './end-to-end.ts';
import { failureOf, OutboundError } from './error.ts';
import { announcedLength, firstPart, framingOf, sendStream } from './request-body.ts';
import { type ForwardResponse, type Received, receive } from './response.ts';
import { type SlotLimits, Slots } from './slots.ts';
import { TimeLimit } from './time-limit.ts';
import {
  type ClientCertificate,
  type Credentials,
  createTrust,
  type TrustOptions,
} from './trust.ts';

export interface ForwardRequest {
  /** Any but CONNECT. */
  readonly method: string;
  readonly url: URL;
  /** The path and query as they are sent, where the URL would spell them otherwise. ASCII without spaces. */
  readonly target?: string | undefined;
  /** Names and values in turn, in the order they are sent; those of the hop are taken out, Host is set. */
  readonly headers: readonly string[];
  /** Headers for the connection to the host, such as `Keep-Alive`. */
  readonly hopHeaders?: readonly string[] | undefined;
  /** A stream is sent under its Content-Length where that is given, else in chunks, and never destroyed. */
  readonly body: Readable | Uint8Array | undefined;
  /**
   * From the look-up of the name to the head of the answer, and as long again without a byte moving, in
   * either direction, after it.
   */
  readonly timeoutMs: number;
  /** Connections are shared by requests with the same text here, guard's decision and client certificate. */
  readonly partition: string;
  readonly clientCertificate?: ClientCertificate | undefined;
  /** The `CDN-Loop` of the request for which it is made, whatever became of its other headers. */
  readonly loop?: string | undefined;
  /** Of a caller without a key: it has slots of its own, so that no call with a key waits for it. */
  readonly keyless?: true | undefined;
  /** To be received twice does no harm, whatever the method says. */
  readonly repeatable?: true;
  /** The operator chose the URL, which may be http where the allow-list has its host. */
  readonly mayBePlain?: true;
  /** Aborted when the caller has gone, which closes the connection. */
  readonly signal?: AbortSignal | undefined;
  /** Of the request that is forwarded; see `traced.ts`. */
  readonly trace?: TraceContext | undefined;
}

/** Follows no redirect. @throws OutboundError whose reason says what went wrong, and nothing else. */
export type Forward = (request: ForwardRequest) => Promise<ForwardResponse>;

export interface OutboundOptions extends AdmissionOptions, TrustOptions {}

export interface ForwardOptions extends OutboundOptions {
  /** Of this vault, which every request names in `CDN-Loop` (RFC 8586), so that none comes back for ever. */
  readonly vaultName: string;
}

export const forwardHeaderBytesMax = 16_384;
/** Under way at once; further requests wait within their time limit. A place is a host of a partition. */
export const slotLimits = {
  placeMax: 64,
  partitionMax: 256,
  totalMax: 512,
  waitingMax: 1_024,
  waitingOfPartitionMax: 256,
};

/** What callers without a key have of each limit, beside all that callers with keys have. */
const keylessShare = 4;

function quarterOf(limits: SlotLimits): SlotLimits {
  const share = (max: number) => Math.max(1, Math.floor(max / keylessShare));
  return {
    placeMax: share(limits.placeMax),
    partitionMax: share(limits.partitionMax),
    totalMax: share(limits.totalMax),
    waitingMax: share(limits.waitingMax),
    waitingOfPartitionMax: share(limits.waitingOfPartitionMax),
  };
}

/** Once more is no more than once (RFC 9110, section 9.2.2). */
const idempotent: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'PUT',
  'DELETE',
  'OPTIONS',
  'TRACE',
]);

/** A request that was let through, and all it is sent with. */
interface Passage {
  readonly request: ForwardRequest;
  readonly options: PlacedOptions;
  readonly limit: TimeLimit;
  /** Whether it may be sent again when a kept connection turns out to have been closed. */
  readonly repeatable: boolean;
}

export function createForward(
  options: ForwardOptions,
  limits: SlotLimits = slotLimits,
  connections = new Connections(),
): Forward {
  const admit = createAdmission(options);
  const credentialsOf = createTrust(options);
  const slots = new Slots(limits);
  const keylessSlots = new Slots(quarterOf(limits));
  // An agent of our own takes no proxy from the environment.
  const plainConnections = new http.Agent();

  async function send(passage: Passage): Promise<ForwardResponse> {
    const { request, options, limit } = passage;
    const { place } = options;
    const waiting = firstPart(request.body, limit);
    if (waiting) await waiting;
    const taken = (request.keyless ? keylessSlots : slots).take({
      place,
      partition: request.partition,
      limit,
    });
    const release = taken instanceof Promise ? await taken : taken;
    const client = open(options, limit, release);
    const watched = watch(client, options.protocol === 'http:');
    const { promise, resolve, reject } = Promise.withResolvers<ForwardResponse>();
    let received: Received | undefined;
    let isRepeated = false;
    const stop = (failure: OutboundError) => {
      received?.fail(failure);
      client.destroy(failure);
    };
    limit.giveUp = stop;
    client.once('close', () => {
      if (!isRepeated) limit.lift();
      release();
      // Nearly always there is a response by now, and an error costs the trace of its stack.
      if (received === undefined) reject(new OutboundError('reset'));
    });
    client.on('upgrade', (_, socket) => {
      socket.destroy();
      reject(new OutboundError('invalid_response'));
    });
    client.on('response', (incoming) => {
      if (!isFinal(incoming) || !hasKnownFraming(incoming))
        return stop(new OutboundError('invalid_response'));
      // Also for what is whole by now, and then only has to be read.
      limit.restartTimer();
      // Most responses are whole in the packet of their head, which has been read by then.
      queueMicrotask(() => {
        if (incoming.complete && client.writableFinished) return;
        limit.stopTimer();
        limitSilence(client, request.timeoutMs, stop);
      });
      received = receive(client, incoming);
      resolve(received.answer);
    });
    client.on('error', (error) => {
      // What is whole already stays so when the rest of the request cannot be sent any more.
      if (received) return received.isWhole() ? undefined : received.fail(failureOf(error));
      if (!passage.repeatable || !watched.isStale(error)) return reject(watched.failureOf(error));
      isRepeated = true;
      connections.closeIdle(place);
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
  { method, url, target, headers, hopHeaders = [], body, partition, loop }: ForwardRequest,
  { decision, host, lookup }: Admission,
  { id, context, vaultName }: Credentials & Pick<ForwardOptions, 'vaultName'>,
): PlacedOptions {
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
      ...endToEnd(headers, ['host', 'content-length', 'expect', loopHeader]),
      ...['CDN-Loop', extendedLoop([loop, ...valuesOf(headers, loopHeader)], vaultName)],
      ...hopHeaders,
      ...framingOf({ method, body, lengths }),
    ],
    maxHeaderSize: forwardHeaderBytesMax,
    insecureHTTPParser: false,
    // Whatever NODE_TLS_REJECT_UNAUTHORIZED says.
    rejectUnauthorized: true,
    // Otherwise Node takes the name to verify from the Host header.
    servername: isIP(name) === 0 ? name : '',
    secureContext: context,
    place: `${decision} ${host} ${id} ${partition}`,
    ...(lookup && { lookup }),
  };
}

function open(options: PlacedOptions, limit: TimeLimit, release: () => void): ClientRequest {
  try {
    limit.throwIfOver();
    // That of `node:https` copies the options once more.
    const client = http.request(options);
    // Otherwise headers beyond the two-thousandth are dropped; their bytes are limited anyway.
    client.maxHeadersCount = 0;
    return client;
  } catch (error) {
    release();
    throw error;
  }
}

function sendBody(client: ClientRequest, { body, headers }: ForwardRequest): void {
  if (!(body instanceof Readable)) {
    client.end(body);
    return;
  }
  // A host may answer, and a caller wait for that, before there is any of the body.
  if (body.readableLength === 0) client.flushHeaders();
  sendStream(client, body, announcedLength(valuesOf(headers, 'content-length')));
}

/** How far the connection of a request has come. */
function watch(client: ClientRequest, isPlain: boolean) {
  let isSecured = isPlain;
  /** What a kept connection had brought before. */
  let readBefore = 0;
  client.on('socket', (socket) => {
    if (client.reusedSocket) readBefore = socket.bytesRead;
    else
      socket.once('secureConnect', () => {
        isSecured = true;
      });
  });
  const isUntouched = () => client.socket?.bytesRead === readBefore;
  const isBroken = (error: Error) => failureOf(error).reason === 'reset';
  return {
    /** The host had closed a kept connection, or was about to, and has not answered at all. */
    isStale: (error: Error) => client.reusedSocket && isUntouched() && isBroken(error),
    failureOf: (error: Error) => {
      const isHandshaking = !client.reusedSocket && !isSecured;
      return isHandshaking && isBroken(error) ? new OutboundError('tls', error) : failureOf(error);
    },
  };
}

/** The parser takes any three digits for a status, also those that no server can send on. */
function isFinal({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200;
}

/** Codings other than chunked were not asked for, and would be lost with their header. */
function hasKnownFraming({ rawHeaders }: IncomingMessage): boolean {
  const codings = valuesOf(rawHeaders, 'transfer-encoding');
  return codings.length === 0 || (codings.length === 1 && /^chunked$/i.test(codings[0] ?? ''));
}

/** From here on, until the connection serves another request. */
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
