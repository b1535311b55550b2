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
  const lower = prefixes.map((prefix) => prefix.toLowerCase());
  const own = prefixes[0] ?? 'SVC';
  /** In lower case, as Node gives them. */
  const nameIn = (headers: IncomingHttpHeaders, name: ServiceHeader) =>
    lower.map((prefix) => `${prefix}-${name}`).find((full) => headers[full] !== undefined);
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
      prefixes.find((prefix) => headers[`${prefix.toLowerCase()}-api-key`] !== undefined) ?? own,
  };
}
