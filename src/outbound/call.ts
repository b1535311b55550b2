/** Calls whose whole response the vault reads itself, limited in time and size, including redirects. */
import type { TraceContext } from '../base/telemetry/trace-context.ts';
import { valuesOf } from './end-to-end.ts';
import { failureOf, OutboundError } from './error.ts';
import type { Forward } from './forward.ts';
import type { ForwardResponse } from './response.ts';

export interface OutboundRequest {
  readonly method: string;
  /** May be http if the operator's allow-list has the host. */
  readonly url: URL;
  /** Names and values that HTTP allows. A list is sent as several headers. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Uint8Array;
  /** From the first look-up of the name to the last byte of the last response. */
  readonly timeoutMs: number;
  /** Ends the call as the timeout does. */
  readonly signal?: AbortSignal;
  readonly responseBytesMax: number;
  /** The maximum number of redirects. With 0 a redirect is a response like any other. */
  readonly redirectsMax: number;
  /** The trace of the request that makes this call; see `traced.ts`. */
  readonly trace?: TraceContext | undefined;
}

export interface OutboundResponse {
  readonly status: number;
  /** Names and values alternate, as the host sent them. */
  readonly headers: readonly string[];
  /** The bytes that the host sent. Compressed bodies are not unpacked, so they cannot grow. */
  readonly body: Buffer;
}

/** @throws OutboundError with a reason that contains no data of the call. */
export type Outbound = (request: OutboundRequest) => Promise<OutboundResponse>;

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** 303 always changes the method to GET. 301 and 302 do so for POST only, as browsers do. */
const becomesGet = (status: number, method: string) =>
  status === 303 ? method !== 'HEAD' : method === 'POST' && status < 303;

/** All of these calls share connections, so requests of tenants use another `forward`. */
const partition = 'vault';

/** Cookies are not stored between calls. */
export function createOutbound(forward: Forward): Outbound {
  return async (request) => {
    const timeout = AbortSignal.timeout(request.timeoutMs);
    const signal = request.signal ? AbortSignal.any([timeout, request.signal]) : timeout;
    try {
      let next = request;
      for (let followed = 0; ; followed += 1) {
        const response = await forward({
          method: next.method,
          url: next.url,
          headers: listed(next.headers),
          body: next.body === undefined ? undefined : Buffer.from(next.body),
          timeoutMs: request.timeoutMs,
          partition,
          mayBePlain: true,
          repeatable: true,
          trace: request.trace,
          signal,
        });
        if (request.redirectsMax === 0 || !redirects.has(response.status)) {
          return await read(response, request.responseBytesMax);
        }
        response.body.destroy();
        if (followed === request.redirectsMax) throw new OutboundError('too_many_redirects');
        next = redirected(next, response);
      }
    } catch (error) {
      const failure = failureOf(error);
      throw failure.reason === 'aborted' ? new OutboundError('timeout') : failure;
    }
  };
}

function listed(headers: OutboundRequest['headers'] = {}): string[] {
  return Object.entries(headers).flatMap(([name, values]) =>
    [values].flat().flatMap((value) => [name, value]),
  );
}

/** A redirect to another origin drops the headers, which carry keys, and the body. */
function redirected(request: OutboundRequest, response: ForwardResponse): OutboundRequest {
  const [location] = valuesOf(response.headers, 'location');
  const url = location === undefined ? null : URL.parse(location, request.url);
  if (url === null) throw new OutboundError('bad_redirect');
  const { headers, body, ...rest } = request;
  const get = becomesGet(response.status, request.method);
  const method = get ? 'GET' : request.method;
  if (url.origin === request.url.origin) {
    const bodiless = Object.entries(headers ?? {}).filter(([name]) => !/^content-/i.test(name));
    if (get) return { ...rest, url, method, headers: Object.fromEntries(bodiless) };
    return { ...request, url };
  }
  if (body !== undefined && !get) throw new OutboundError('forbidden_redirect');
  return { ...rest, url, method };
}

async function read(response: ForwardResponse, bytesMax: number): Promise<OutboundResponse> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response.body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new OutboundError('too_large');
    chunks.push(chunk);
  }
  return { status: response.status, headers: response.headers, body: Buffer.concat(chunks, bytes) };
}
