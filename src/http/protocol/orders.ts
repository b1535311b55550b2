/** Response headers with which another host, or code, would decide about the next request of a caller. */
import { hasExpressions } from '../../expressions/request-parts/forms.ts';

/**
 * Servers in front of the vault obey these. nginx sends the request again to the path in `X-Accel-Redirect`, with the
 * API key of its caller, so a destination could have the vault write any value that the caller may use into that path.
 * Other servers read a file, call another host, change what they cache, or send no more requests to a server that
 * calls itself unhealthy.
 */
const obeyed = /^x-(?:accel|envoy|lighttpd|litespeed|reproxy|sendfile)/i;

/** Most clients follow a redirect at once, with their API key, and browsers fetch what `Link` names. */
const followed = /^(?:location|refresh|link)$/i;

/** Clients leave these out of a URL. */
const ignoredInUrls = /[\t\r\n]/g;

/**
 * True for a header that servers in front of the vault obey, and for a redirect or link with an expression: where it
 * leads to the vault, the expression would be evaluated for the caller, and the values sent to a path that is not the
 * caller's.
 */
export function directsCaller(name: string, value: string): boolean {
  if (obeyed.test(name)) return true;
  return followed.test(name) && hasExpressions(value.replace(ignoredInUrls, ''));
}

/** @param pairs names and values in turn. */
export function withoutOrders(pairs: readonly string[]): readonly string[] {
  const isOrder = (at: number) => {
    const nameAt = at - (at % 2);
    return directsCaller(pairs[nameAt] ?? '', pairs[nameAt + 1] ?? '');
  };
  return pairs.some((_, at) => isOrder(at)) ? pairs.filter((_, at) => !isOrder(at)) : pairs;
}
