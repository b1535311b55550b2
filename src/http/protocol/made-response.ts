/** Responses that the tenant's code made: its status, headers and body, with nothing that is the vault's to say. */
import type { MadeReply } from '../../rules/reply.ts';
import { type Exchange, jsonMediaType } from './exchange.ts';

/** What speaks for the whole host, or lets caches between give the response to others, is the vault's to say. */
export const headersOfHost: ReadonlySet<string> = new Set([
  ...['strict-transport-security', 'public-key-pins', 'public-key-pins-report-only', 'alt-svc'],
  ...['clear-site-data', 'service-worker-allowed', 'origin-agent-cluster', 'accept-ch'],
  ...['critical-ch', 'nel', 'report-to', 'reporting-endpoints'],
  ...['cache-control', 'expires', 'pragma', 'surrogate-control', 'cdn-cache-control'],
]);

/** How a message is framed, and who may read it, is not for code to say; nor are cookies of the vault's host. */
const unsent: ReadonlySet<string> = new Set([
  ...['connection', 'content-length', 'content-encoding', 'keep-alive', 'proxy-connection', 'te'],
  ...['trailer', 'transfer-encoding', 'upgrade', 'set-cookie', 'content-security-policy'],
]);

/** A page that code makes runs in an origin of its own, like those of destinations. */
export function sendMade(exchange: Exchange, { status, headers, body }: MadeReply): void {
  const own = new Set(exchange.headersToSend.filter((_, at) => at % 2 === 0));
  let mediaType = typeof body === 'string' ? 'text/plain; charset=utf-8' : jsonMediaType;
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    if (lower === 'content-type') mediaType = value;
    else if (isCodes(lower) && !own.has(lower)) {
      exchange.setHeader(lower, value);
    }
  }
  exchange.setHeader('content-security-policy', 'sandbox');
  if (body === undefined || status === 204 || status === 304) exchange.send(status);
  else exchange.send(status, typeof body === 'string' ? body : JSON.stringify(body), mediaType);
}

function isCodes(name: string): boolean {
  return !unsent.has(name) && !headersOfHost.has(name) && !name.startsWith('access-control-');
}
