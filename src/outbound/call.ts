/** Calls to other people's hosts: never to an address of our own network, and never without limits. */
import type { Agent, IncomingHttpHeaders, IncomingMessage } from 'node:http';
import https from 'node:https';
import { nodeHttp } from '../lib/node-http.ts';
import type { TraceContext } from '../lib/telemetry/trace-context.ts';
import { type AdmissionOptions, createAdmission } from './admission.ts';
import { failureOf, OutboundError } from './error.ts';
import { createTrust, type TrustOptions } from './trust.ts';

export interface OutboundRequest {
  readonly method: string;
  readonly url: URL;
  /** Names and values that HTTP allows; lists are sent as several headers. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Uint8Array;
  /** From the first look-up of the name to the last byte of the last answer. */
  readonly timeoutMs: number;
  readonly answerBytesMax: number;
  /** How many redirects are followed; with 0 a redirect is a response like any other. */
  readonly redirectsMax: number;
  /** Of the request for which it is made; see `traced.ts`. */
  readonly trace?: TraceContext | undefined;
}

export interface OutboundAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: IncomingHttpHeaders;
  /** As sent: a compressed body is not unpacked, so it cannot grow. */
  readonly body: Buffer;
}

/** @throws OutboundError whose reason says what went wrong, and nothing else. */
export type Outbound = (request: OutboundRequest) => Promise<OutboundAnswer>;

export interface OutboundOptions extends AdmissionOptions, TrustOptions {}

const headerBytesMax = 16_384;
/** To one host, and to all together; further calls wait within their time limit. */
const connectionsMax = { maxSockets: 64, maxTotalSockets: 256 };

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** 303 always becomes a GET. 301 and 302 do so for POST alone, by what browsers made of them. */
const becomesGet = (status: number, method: string) =>
  status === 303 ? method !== 'HEAD' : method === 'POST' && status < 303;

interface HttpModule {
  readonly request: typeof https.request;
  readonly agent: Agent;
}

/**
 * Connections are not kept for the next call, cookies are never kept, and a proxy named in the
 * environment is not used: an agent of our own does none of that.
 */
export function createOutbound(options: OutboundOptions): Outbound {
  const transports: Readonly<Record<string, HttpModule>> = {
    'http:': { request: nodeHttp.request, agent: new nodeHttp.Agent(connectionsMax) },
    'https:': { request: https.request, agent: new https.Agent(connectionsMax) },
  };
  const admit = createAdmission(options);
  const credentialsOf = createTrust(options);

  function send(request: OutboundRequest, signal: AbortSignal): Promise<IncomingMessage> {
    const { url, method, headers, body } = request;
    const { lookup } = admit(url);
    const transport = transports[url.protocol];
    if (!transport) throw new OutboundError('forbidden_url');
    const { promise, resolve: answered, reject } = Promise.withResolvers<IncomingMessage>();
    transport
      .request(url, {
        method,
        headers: { ...headers, ...(body !== undefined && { 'content-length': lengthOf(body) }) },
        agent: transport.agent,
        maxHeaderSize: headerBytesMax,
        signal,
        ...(url.protocol === 'https:' && { secureContext: credentialsOf().context }),
        // Whatever NODE_TLS_REJECT_UNAUTHORIZED says.
        rejectUnauthorized: true,
        ...(lookup && { lookup }),
      })
      .on('response', answered)
      .on('error', reject)
      .end(body);
    return promise;
  }

  return async (request) => {
    const signal = AbortSignal.timeout(request.timeoutMs);
    try {
      let next = request;
      for (let followed = 0; ; followed += 1) {
        const answer = await send(next, signal);
        if (request.redirectsMax === 0 || !redirects.has(answer.statusCode ?? 0)) {
          return await read(answer, request.answerBytesMax);
        }
        answer.destroy();
        if (followed === request.redirectsMax) throw new OutboundError('too_many_redirects');
        next = redirected(next, answer);
      }
    } catch (error) {
      if (error instanceof OutboundError || !signal.aborted) throw failureOf(error);
      throw new OutboundError('timeout', error);
    }
  };
}

/** Another origin gets neither the headers, in which keys are sent, nor the body. */
function redirected(request: OutboundRequest, answer: IncomingMessage): OutboundRequest {
  const url = URL.parse(answer.headers.location ?? '', request.url);
  if (answer.headers.location === undefined || url === null)
    throw new OutboundError('bad_redirect');
  const { headers, body, ...rest } = request;
  const get = becomesGet(answer.statusCode ?? 0, request.method);
  const method = get ? 'GET' : request.method;
  if (url.origin === request.url.origin) {
    const bodiless = Object.entries(headers ?? {}).filter(([name]) => !/^content-/i.test(name));
    if (get) return { ...rest, url, method, headers: Object.fromEntries(bodiless) };
    return { ...request, url };
  }
  if (body !== undefined && !get) throw new OutboundError('forbidden_redirect');
  return { ...rest, url, method };
}

async function read(answer: IncomingMessage, bytesMax: number): Promise<OutboundAnswer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new OutboundError('too_large');
    chunks.push(chunk);
  }
  return {
    status: answer.statusCode ?? 0,
    headers: answer.headers,
    body: Buffer.concat(chunks, bytes),
  };
}

function lengthOf(body: string | Uint8Array): number {
  return typeof body === 'string' ? Buffer.byteLength(body) : body.length;
}
