/**
 * Browsers of any origin may call: a key in a header is the only authority. Without the header that allows credentials,
 * no page of another origin can send the cookie of the console together with a header of the console.
 */

import type { ServiceHeader } from './headers.ts';
import type { RequestContext } from './request-context.ts';

/** How long a browser may remember the response to a preflight; browsers cut it to their own limits. */
const preflightSeconds = 86_400;

const accepted: readonly ServiceHeader[] = ['api-key', 'idempotency-key', 'trace-id', 'reason'];

const exposed = [
  'ETag',
  'Location',
  'Retry-After',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
];

export interface Cors {
  /** What every response to a page carries, so that it may be read there, refusals included. */
  readonly headers: Readonly<Record<string, string>>;
  /** The headers of a preflight response. */
  readonly preflightHeaders: Readonly<Record<string, string>>;
}

/** @param prefixes of the service's headers. */
export function createCors(prefixes: readonly string[]): Cors {
  const under = (name: ServiceHeader) => prefixes.map((prefix) => `${prefix}-${name}`);
  return {
    headers: {
      'access-control-allow-origin': '*',
      'access-control-expose-headers': [
        ...under('trace-id'),
        ...prefixes.map((prefix) => `${prefix}-Proxy-Destination-Status`),
        ...exposed,
      ].join(', '),
    },
    preflightHeaders: {
      'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
      // Browser clients add headers of their own that identify the client.
      'access-control-allow-headers': [
        'Content-Type',
        'If-Match',
        ...accepted.flatMap(under),
        '*',
      ].join(', '),
      'access-control-max-age': String(preflightSeconds),
    },
  };
}

/** Responds to a preflight on any path. Returns true if the request was one. */
export function respondToPreflight({ preflightHeaders }: Cors, context: RequestContext): boolean {
  if (context.method !== 'OPTIONS') return false;
  if (context.headers['access-control-request-method'] === undefined) return false;
  context.setHeaders(preflightHeaders);
  context.send(204);
  return true;
}
