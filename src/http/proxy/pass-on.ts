/** The response to a call: the destination's, and what the vault adds to it. */
import type { ProxyResponse } from '../../proxies/calls/proxy-call.ts';
import { isOwnCookie } from '../console/credential.ts';
import { withoutOrders } from '../protocol/orders.ts';
import { originOf, type RequestContext } from '../protocol/request-context.ts';
import { headersOfHost } from '../protocol/sending.ts';

/**
 * Every header of the destination is retained, except those that servers in front of the vault obey, and redirects with
 * expressions. The vault puts its own under names that are free.
 */
export function passOn(
  context: RequestContext,
  response: ProxyResponse,
  isOnOwnHost: boolean,
): void {
  const sent = withoutOrders(response.headers);
  const passed = isOnOwnHost ? forOwnHost(context, sent) : sent;
  const headers = headersOf(context, { ...response, headers: passed });
  context.pass({ ...response, headers, trailers: () => withoutOrders(response.trailers()) });
}

/**
 * Pages of a destination run in an origin of their own, and browsers store no cookies for the vault. A browser that
 * says nothing of itself stores none of the names that the console reads.
 */
function forOwnHost({ headers: sent }: RequestContext, headers: readonly string[]): string[] {
  const isBrowser = sent['sec-fetch-site'] !== undefined;
  const passed = headers.filter((_, at) => {
    const name = headers[at - (at % 2)]?.toLowerCase() ?? '';
    if (name === 'set-cookie') return !isBrowser && !isOwnCookie(headers[at | 1] ?? '');
    return !headersOfHost.has(name);
  });
  return [...passed, 'content-security-policy', 'sandbox'];
}

function headersOf(context: RequestContext, response: ProxyResponse): string[] {
  const { headers, destinationStatus = response.status } = response;
  const { dialect, traceId } = originOf(context);
  const prefix = dialect.toLowerCase();
  const statusName = `${prefix}-proxy-destination-status`;
  const passed = without(headers, statusName);
  const names = new Set(passed.flatMap((name, at) => (at % 2 === 0 ? name.toLowerCase() : [])));
  const traceName = `${prefix}-trace-id`;
  const added = [
    names.has(traceName) ? `${prefix}-proxy-trace-id` : traceName,
    traceId,
    ...(destinationStatus === null ? [] : [statusName, String(destinationStatus)]),
  ];
  const crossesOrigins = names.values().some((name) => name.startsWith('access-control-'));
  const own = context.headersToSend;
  for (let at = 0; at + 1 < own.length; at += 2) {
    const name = own[at] ?? '';
    if (name === traceName || names.has(name)) continue;
    // The destination's CORS headers override the vault's.
    if (crossesOrigins && name.startsWith('access-control-')) continue;
    added.push(name, own[at + 1] ?? '');
  }
  return [...passed, ...added];
}

/** No destination can forge a header of the vault. */
function without(headers: readonly string[], dropped: string): string[] {
  return headers.filter((_, at) => headers[at - (at % 2)]?.toLowerCase() !== dropped);
}
