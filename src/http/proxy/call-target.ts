/** Where a request names the proxy that it calls: in the address, byte for byte, and in headers. */
import type { CallPath } from '../../proxies/calls/destination.ts';
import type { ServiceHeaders } from '../protocol/headers.ts';
import type { RequestContext } from '../protocol/request-context.ts';
import { callPath } from './methods.ts';

export interface CallTarget extends CallPath {
  /** The proxy's key, from a header or the query. */
  readonly key: string | undefined;
  /** Where an ephemeral proxy is to send; a key comes first. */
  readonly url: string | undefined;
}

/** True for `/proxy` and everything below it. */
export function isCallAddress(url: string): boolean {
  if (!url.startsWith(callPath)) return false;
  const next = url[callPath.length];
  return next === undefined || next === '/' || next === '?';
}

export function targetBelowProxy(context: RequestContext, headers: ServiceHeaders): CallTarget {
  const { path, query } = splitAddress((context.request.url ?? '').slice(callPath.length));
  const { key, rest } = takeKey(query, headers);
  return {
    path,
    query: rest,
    key: headers.read(context.headers, 'proxy-key') ?? key,
    url: headers.read(context.headers, 'proxy-url'),
  };
}

/** Where the Host names the proxy, the whole path is the destination's. */
export function targetOfHost(context: RequestContext, headers: ServiceHeaders): CallPath {
  const { path, query } = splitAddress(context.request.url ?? '');
  return { path: path === '/' ? '' : path, query: takeKey(query, headers).rest };
}

function splitAddress(address: string): CallPath {
  const at = address.indexOf('?');
  if (at < 0) return { path: address, query: undefined };
  return { path: address.slice(0, at), query: address.slice(at + 1) };
}

interface TakenKey {
  readonly key: string | undefined;
  /** The rest of the query, as it was sent. */
  readonly rest: string | undefined;
}

function takeKey(query: string | undefined, headers: ServiceHeaders): TakenKey {
  const isKey = (parameter: string) =>
    headers.isNamed(parameter.split('=', 1)[0] ?? '', 'proxy-key');
  const parameters = query?.split('&') ?? [];
  const keys = parameters.filter(isKey);
  if (keys.length === 0) return { key: undefined, rest: query };
  const rest = parameters.filter((parameter) => !isKey(parameter));
  return {
    key: keys[0]?.slice(keys[0].indexOf('=') + 1),
    rest: rest.length === 0 ? undefined : rest.join('&'),
  };
}
