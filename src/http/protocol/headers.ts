/** The service's own headers, which clients may send under more than one prefix. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

const names = [
  'api-key',
  'idempotency-key',
  'trace-id',
  'proxy-key',
  'proxy-url',
  'proxy-require-key',
  'proxy-connection',
  'proxy-keep-alive',
  'encrypted',
  'reason',
  'console',
  'console-application',
] as const;

export type ServiceHeader = (typeof names)[number];

/** The headers that reveal which prefix a caller uses; the first one present decides. */
const spoken = ['api-key', 'proxy-key', 'proxy-url'] as const;

export interface ServiceHeaders {
  /** The header under the first prefix that carries it. */
  read(headers: IncomingHttpHeaders, name: ServiceHeader): string | undefined;
  /** The header as the caller spelled it, for messages to the caller. */
  nameAsSent(message: IncomingMessage, name: ServiceHeader): string;
  /** The prefix under which a request authenticates or, without a key, names a proxy: its dialect. */
  dialectOf(headers: IncomingHttpHeaders): string;
  /** True for that header's name under any prefix. @param full in lower case. */
  isNamed(full: string, name: ServiceHeader): boolean;
  /** True for every header that is for the service alone. @param name in lower case. */
  isOwn(name: string): boolean;
}

/** @param prefixes such as `SVC`; the first is the service's own. */
export function createServiceHeaders(prefixes: readonly string[]): ServiceHeaders {
  const own = prefixes[0] ?? 'SVC';
  const lowerPrefixes = prefixes.map((prefix) => `${prefix.toLowerCase()}-`);
  /** In lower case, as Node gives them; computed once, since every request needs them. */
  const fullNames = new Map(
    names.map((name) => [name, lowerPrefixes.map((prefix) => prefix + name)] as const),
  );
  const under = (name: ServiceHeader) => fullNames.get(name) ?? [];
  const nameIn = (headers: IncomingHttpHeaders, name: ServiceHeader) => {
    for (const full of under(name)) if (headers[full] !== undefined) return full;
    return undefined;
  };
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
    dialectOf: (headers) => {
      for (const name of spoken) {
        const full = nameIn(headers, name);
        if (full !== undefined) return prefixes[under(name).indexOf(full)] ?? own;
      }
      return own;
    },
    isNamed: (full, name) => under(name).includes(full),
    isOwn: (name) => lowerPrefixes.some((prefix) => name.startsWith(prefix)),
  };
}
