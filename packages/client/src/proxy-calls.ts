/** Calls of proxies, with the shape of `fetch`. */
import type { RequestOptions } from './connection.ts';
import { ConfigurationError } from './errors.ts';
import { Resource } from './resource.ts';
import type { Proxy as ProxyDefinition } from './wire.ts';

/**
 * What `fetch` takes, the proxy, and the options of any call.
 *
 * @example
 * ```ts
 * import type { ProxyRequestInit } from '@strongroom/client';
 *
 * const init: ProxyRequestInit = { proxy: proxyKey, method: 'POST', timeout: 10_000 };
 * const response = await vault.proxy.fetch('/charges', init);
 * ```
 */
export interface ProxyRequestInit
  extends Omit<RequestInit, 'redirect' | 'signal'>,
    Pick<RequestOptions, 'timeout' | 'traceId' | 'signal'> {
  /** The `key` of a proxy, or the proxy; without one, `url` names the destination. */
  readonly proxy?: string | Pick<ProxyDefinition, 'key' | 'destination_url'> | undefined;
}

/**
 * Calls of proxies, as `vault.proxy`.
 *
 * @example
 * ```ts
 * const response = await vault.proxy.fetch('/charges', {
 *   proxy: proxyKey,
 *   method: 'POST',
 *   headers: { 'content-type': 'application/json' },
 *   body: JSON.stringify({ number: "{{ order-4711-card | json: '$.number' }}" }),
 * });
 * ```
 */
export class ProxyCalls extends Resource {
  /**
   * Sends a request through the vault, which writes values in the place of expressions. With `proxy`, `url` is a path
   * below the destination of the proxy, or an address whose path and query are used. Without it, `url` is the https
   * address of the destination.
   *
   * Like `fetch` it gives the response of the destination whatever its status. It follows no redirect, and never
   * sends a request again by itself. A failure of the vault is thrown. `timeout` is for the beginning of the response.
   *
   * @throws ApiError where the vault refuses the call, or cannot reach the destination.
   * @example
   * ```ts
   * const response = await vault.proxy.fetch('/charges', {
   *   proxy: proxyKey,
   *   method: 'POST',
   *   headers: { 'content-type': 'application/json' },
   *   body: JSON.stringify({
   *     amount: 1999,
   *     number: "{{ order-4711-card | json: '$.number' }}",
   *   }),
   * });
   * console.log(response.status, await response.json());
   * ```
   */
  fetch(url: string | URL, init: ProxyRequestInit = {}): Promise<Response> {
    const { proxy, timeout, traceId, signal, method = 'GET', body, ...rest } = init;
    const { connection } = this;
    const headers = new Headers(rest.headers);
    if (proxy !== undefined) {
      headers.set(connection.header('PROXY-KEY'), typeof proxy === 'string' ? proxy : proxy.key);
    } else {
      headers.set(connection.header('PROXY-URL'), destinationOf(url).origin);
    }
    const isStream = body instanceof ReadableStream;
    const foreign = connection.header('PROXY-DESTINATION-STATUS');
    return connection.send(
      {
        operation: 'proxy.fetch',
        method: method.toUpperCase(),
        path: `/proxy${pathOf(url, proxy)}`,
        headers,
        body: body ?? undefined,
        // It may have reached the destination, and proxies know no idempotency keys.
        isRepeatable: false,
        init: { ...rest, ...(isStream && { duplex: 'half' }) } as RequestInit,
        isForeign: (response) =>
          response.headers.has(foreign) || response.type === 'opaqueredirect',
      },
      (response) => response,
      { timeout, traceId, signal },
    );
  }
}

function destinationOf(url: string | URL): URL {
  try {
    return new URL(url);
  } catch {
    throw new ConfigurationError(
      'Give proxy.fetch the option proxy together with a path, or the whole https address of a destination.',
    );
  }
}

/**
 * `fetch` resolves `..`, `%2e%2e` and the like, and a part of the path may come from somewhere else: it would reach the
 * vault's own interface with the key.
 */
function belowProxies(path: string): string {
  const { pathname } = new URL(`/proxy${path}`, 'https://vault.invalid');
  if (/^\/proxy(?:\/|$)/.test(pathname)) return path;
  throw new ConfigurationError('The path of proxy.fetch must not lead above the destination.');
}

function pathOf(url: string | URL, proxy: ProxyRequestInit['proxy']): string {
  const text = String(url);
  if (text.startsWith('/') || text === '') return belowProxies(text);
  const { href, origin, hash, protocol } = destinationOf(url);
  const whole = href.slice(0, href.length - hash.length);
  if (typeof proxy !== 'object')
    return /^https?:$/.test(protocol) ? whole.slice(origin.length) : '';
  const base = proxy.destination_url.replace(/\/$/, '');
  const below = whole.slice(base.length);
  if (whole.startsWith(base) && /^(?:$|[/?])/.test(below)) return below;
  throw new ConfigurationError(
    'The url of proxy.fetch is not below the destination_url of the proxy. Give its path alone.',
  );
}
