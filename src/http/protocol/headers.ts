/** The service's own headers, which clients may send under more than one prefix. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

export type ServiceHeader = 'api-key' | 'idempotency-key' | 'trace-id';

export interface ServiceHeaders {
  /** The header under the first prefix that carries it. */
  read(headers: IncomingHttpHeaders, name: ServiceHeader): string | undefined;
  /** What the caller calls that header, for messages to the caller. */
  nameAsSent(message: IncomingMessage, name: ServiceHeader): string;
  /** The prefix under which a request authenticates: its dialect. */
  dialectOf(headers: IncomingHttpHeaders): string;
}

/** @param prefixes such as `SVC`; the first is the service's own. */
export function createServiceHeaders(prefixes: readonly string[]): ServiceHeaders {
  const own = prefixes[0] ?? 'SVC';
  const under = (name: ServiceHeader) =>
    prefixes.map((prefix) => `${prefix.toLowerCase()}-${name}`);
  /** In lower case, as Node gives them; made once, since every request is asked for them. */
  const names: Readonly<Record<ServiceHeader, readonly string[]>> = {
    'api-key': under('api-key'),
    'idempotency-key': under('idempotency-key'),
    'trace-id': under('trace-id'),
  };
  const nameIn = (headers: IncomingHttpHeaders, name: ServiceHeader) =>
    names[name].find((full) => headers[full] !== undefined);
  return {
    read: (headers, name) => {
      const found = nameIn(headers, name);
      const value = found === undefined ? undefined : headers[found];
      return typeof value === 'string' ? value : undefined;
    },
    nameAsSent: ({ headers, rawHeaders }, name) => {
      const found = nameIn(headers, name);
      return (
        rawHeaders.find((raw, index) => index % 2 === 0 && raw.toLowerCase() === found) ??
        `${own}-${name}`.toUpperCase()
      );
    },
    dialectOf: (headers) =>
      prefixes.find((_, index) => headers[names['api-key'][index] ?? ''] !== undefined) ?? own,
  };
}
