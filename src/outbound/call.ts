/** Calls to other people's hosts: never to an address of our own network, and never without limits. */
import { type LookupAddress, lookup as systemLookup } from 'node:dns';
import type { Agent, IncomingHttpHeaders, IncomingMessage } from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { nodeHttp } from '../lib/node-http.ts';
import { type AllowList, hostAndPort } from './allow-list.ts';
import { OutboundError } from './error.ts';
import { isPublicAddress } from './guard.ts';

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

export interface OutboundOptions {
  /** The operator's own hosts: they may be at any address and may be called without TLS. */
  readonly allow: AllowList;
  /** The port of the database, which is never called. */
  readonly databasePort?: number | undefined;
  readonly resolve?: Resolve;
}

/** All addresses of a name. */
export type Resolve = (
  name: string,
  give: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

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
  const resolve = options.resolve ?? ((name, give) => systemLookup(name, { all: true }, give));

  /**
   * The addresses are judged here, in the very look-up whose response is connected to: a name that
   * answers differently the next time gains nothing.
   */
  const publicLookup: LookupFunction = (name, { all }, give) =>
    resolve(name, (error, addresses) => {
      const open = error ? [] : addresses.filter(({ address }) => isPublicAddress(address));
      const [first] = open;
      if (first === undefined) give(error ?? new OutboundError('forbidden_address'), '');
      else if (all === true) give(null, open);
      else give(null, first.address, first.family);
    });

  function send(request: OutboundRequest, signal: AbortSignal): Promise<IncomingMessage> {
    const { url, method, headers, body } = request;
    const allowed = options.allow.has(hostAndPort(url));
    if (!allowed) refuseForeign(url, options.databasePort);
    const transport = transports[url.protocol];
    if (!transport || url.username !== '' || url.password !== '') {
      throw new OutboundError('forbidden_url');
    }
    const { promise, resolve: answered, reject } = Promise.withResolvers<IncomingMessage>();
    transport
      .request(url, {
        method,
        headers: { ...headers, ...(body !== undefined && { 'content-length': lengthOf(body) }) },
        agent: transport.agent,
        maxHeaderSize: headerBytesMax,
        signal,
        ...(!allowed && { lookup: publicLookup }),
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
      throw failureOf(error, signal);
    }
  };
}

/** An address in the URL itself is never looked up, so it is checked here. */
function refuseForeign(url: URL, databasePort: number | undefined): void {
  const { protocol, hostname, port } = url;
  if (protocol !== 'https:' || Number(port || 443) === databasePort) {
    throw new OutboundError('forbidden_url');
  }
  const literal = hostname.replace(/^\[|\]$/g, '');
  if (isIP(literal) !== 0 && !isPublicAddress(literal)) {
    throw new OutboundError('forbidden_address');
  }
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

function failureOf(error: unknown, signal: AbortSignal): OutboundError {
  if (error instanceof OutboundError) return error;
  return new OutboundError(signal.aborted ? 'timeout' : 'unreachable', error);
}
