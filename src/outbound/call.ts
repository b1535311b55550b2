/** Calls whose whole response the vault reads itself: bounded in time and size, through redirects. */
import type { TraceContext } from '../base/telemetry/trace-context.ts';
import { valuesOf } from './end-to-end.ts';
import { failureOf, OutboundError } from './error.ts';
import type { Forward } from './forward.ts';
import type { ForwardResponse } from './response.ts';

export interface OutboundRequest {
  readonly method: string;
  /** May be http where the operator's allow-list has the host. */
  readonly url: URL;
  /** Names and values that HTTP allows; lists are sent as several headers. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Uint8Array;
  /** From the first look-up of the name to the last byte of the last answer. */
  readonly timeoutMs: number;
  readonly responseBytesMax: number;
  /** How many redirects are followed; with 0 a redirect is a response like any other. */
  readonly redirectsMax: number;
  /** Of the request for which it is made; see `traced.ts`. */
  readonly trace?: TraceContext | undefined;
}

export interface OutboundResponse {
  readonly status: number;
  /** As sent, names and values in turn. */
  readonly headers: readonly string[];
  /** As sent: a compressed body is not unpacked, so it cannot grow. */
  readonly body: Buffer;
}

/** @throws OutboundError whose reason says what went wrong, and nothing else. */
export type Outbound = (request: OutboundRequest) => Promise<OutboundResponse>;

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** 303 always becomes a GET. 301 and 302 do so for POST alone, by what browsers made of them. */
const becomesGet = (status: number, method: string) =>
  status === 303 ? method !== 'HEAD' : method === 'POST' && status < 303;

/** All calls share their connections, so tenants' requests go through another `forward`. */
const partition = 'vault';

/** Cookies are not kept from one call to the next. */
export function createOutbound(forward: Forward): Outbound {
  return async (request) => {
    const signal = AbortSignal.timeout(request.timeoutMs);
    try {
      let next = request;
      for (let followed = 0; ; followed += 1) {
        const answer = await forward({
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
        if (request.redirectsMax === 0 || !redirects.has(answer.status)) {
          return await read(answer, request.responseBytesMax);
        }
        answer.body.destroy();
        if (followed === request.redirectsMax) throw new OutboundError('too_many_redirects');
        next = redirected(next, answer);
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

/** Another origin gets neither the headers, in which keys are sent, nor the body. */
function redirected(request: OutboundRequest, answer: ForwardResponse): OutboundRequest {
  const [location] = valuesOf(answer.headers, 'location');
  const url = location === undefined ? null : URL.parse(location, request.url);
  if (url === null) throw new OutboundError('bad_redirect');
  const { headers, body, ...rest } = request;
  const get = becomesGet(answer.status, request.method);
  const method = get ? 'GET' : request.method;
  if (url.origin === request.url.origin) {
    const bodiless = Object.entries(headers ?? {}).filter(([name]) => !/^content-/i.test(name));
    if (get) return { ...rest, url, method, headers: Object.fromEntries(bodiless) };
    return { ...request, url };
  }
  if (body !== undefined && !get) throw new OutboundError('forbidden_redirect');
  return { ...rest, url, method };
}

async function read(answer: ForwardResponse, bytesMax: number): Promise<OutboundResponse> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer.body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new OutboundError('too_large');
    chunks.push(chunk);
  }
  return { status: answer.status, headers: answer.headers, body: Buffer.concat(chunks, bytes) };
}
