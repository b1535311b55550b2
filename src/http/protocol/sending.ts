/** Sends the result of a request: its status, the `Location` of a created resource, and a body or a list. */
import type { Caller } from '../../rules/caller.ts';
import type { MadeReply, Reply, ReplyBody } from '../../rules/reply.ts';
import { directsCaller } from './orders.ts';
import { jsonMediaType, type RequestContext } from './request-context.ts';
import type { Serialize } from './serialization.ts';
import type { Streaming } from './streaming.ts';

export interface SendingOptions {
  /** The prefix of a `Location`. It does not come from the `Host` of the request, which any client can forge. */
  readonly publicUrl: string | undefined;
  readonly streaming: Streaming;
}

/** What is the same for every response of a route. */
export interface Sending {
  /** The status of a response that has the schema of the route. */
  readonly status: number;
  /** By the schema of the route. */
  readonly serialize: Serialize;
  /** The caller as of now. */
  readonly caller: (context: RequestContext) => Promise<Caller>;
}

/** `undefined` where the response is on its way; else resolves when it is. */
export type Send = (
  result: Reply,
  context: RequestContext,
  sending: Sending,
) => Promise<void> | undefined;

export function createSend({ publicUrl = '', streaming }: SendingOptions): Send {
  return ({ status, location, etag, body, list, made }, context, sending) => {
    if (list) {
      const { serialize } = sending;
      const caller = () => sending.caller(context);
      return streaming.responseList({ context, serialize, caller, list });
    }
    if (location !== undefined) context.setHeader('location', `${publicUrl}${location}`);
    if (etag !== undefined) context.setHeader('etag', etag);
    if (made) sendMade(context, made);
    else if (body === undefined) context.send(status);
    else context.send(status, textOf(status, body, sending), jsonMediaType);
    return undefined;
  };
}

function textOf(status: number, body: ReplyBody, { status: own, serialize }: Sending): string {
  const hasSchema = typeof body === 'object' && body !== null && status === own;
  return hasSchema ? serialize(body) : JSON.stringify(body);
}

/** Headers that affect the whole host, or let caches share the response: only the vault sets them. */
export const headersOfHost: ReadonlySet<string> = new Set([
  ...['strict-transport-security', 'public-key-pins', 'public-key-pins-report-only', 'alt-svc'],
  ...['clear-site-data', 'service-worker-allowed', 'origin-agent-cluster', 'accept-ch'],
  ...['critical-ch', 'nel', 'report-to', 'reporting-endpoints'],
  // Device-bound sessions, log-in status, and what browsers keep or load ahead for the host.
  ...['secure-session-registration', 'sec-session-registration', 'secure-session-challenge'],
  ...['sec-session-challenge', 'set-login', 'use-as-dictionary', 'speculation-rules'],
  ...['no-vary-search', 'supports-loading-mode'],
  ...['cache-control', 'expires', 'pragma', 'surrogate-control', 'cdn-cache-control'],
]);

/** Code sets neither the framing of a message, nor which origins may read it, nor cookies of the vault's host. */
const unsent: ReadonlySet<string> = new Set([
  ...['connection', 'content-length', 'content-encoding', 'keep-alive', 'proxy-connection', 'te'],
  ...['trailer', 'transfer-encoding', 'upgrade', 'set-cookie', 'content-security-policy'],
]);

/** A page that code makes runs in an origin of its own, like those of destinations. */
function sendMade(context: RequestContext, { status, headers, body }: MadeReply): void {
  const own = new Set(context.headersToSend.filter((_, at) => at % 2 === 0));
  let mediaType = typeof body === 'string' ? 'text/plain; charset=utf-8' : jsonMediaType;
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    if (lower === 'content-type') mediaType = value;
    else if (isCodes(lower) && !own.has(lower) && !directsCaller(lower, value)) {
      context.setHeader(lower, value);
    }
  }
  context.setHeader('content-security-policy', 'sandbox');
  if (body === undefined || status === 204 || status === 304) context.send(status);
  else context.send(status, typeof body === 'string' ? body : JSON.stringify(body), mediaType);
}

function isCodes(name: string): boolean {
  return !unsent.has(name) && !headersOfHost.has(name) && !name.startsWith('access-control-');
}
