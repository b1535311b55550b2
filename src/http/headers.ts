/** The service's own headers, which clients may send under more than one prefix. */
import type { IncomingHttpHeaders } from 'node:http';

export type ServiceHeader = 'api-key' | 'idempotency-key' | 'trace-id';

export interface ServiceHeaders {
  /** The header under the first prefix that carries it. */
  read(headers: IncomingHttpHeaders, name: ServiceHeader): string | undefined;
  /** The prefix under which a request authenticates: its dialect. */
  dialectOf(headers: IncomingHttpHeaders): string;
}

/** @param prefixes such as `SVC`; the first is the service's own. */
export function createServiceHeaders(prefixes: readonly string[]): ServiceHeaders {
  const lower = prefixes.map((prefix) => prefix.toLowerCase());
  const own = prefixes[0] ?? 'SVC';
  return {
    read: (headers, name) => {
      for (const prefix of lower) {
        const value = headers[`${prefix}-${name}`];
        if (typeof value === 'string') return value;
      }
      return undefined;
    },
    dialectOf: (headers) =>
      prefixes.find((prefix) => headers[`${prefix.toLowerCase()}-api-key`] !== undefined) ?? own,
  };
}
