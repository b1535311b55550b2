/**
 * Response headers that servers in front of the vault obey. nginx sends the request again to the path in
 * `X-Accel-Redirect`, with the API key of its caller, so a destination could have the vault write any value that the
 * caller may use into that path. Other servers read a file, call another host, change what they cache, or send no more
 * requests to a server that calls itself unhealthy.
 */
const obeyed = /^x-(?:accel|envoy|lighttpd|litespeed|reproxy|sendfile)/i;

/** True for a header that only the vault may send, to whichever server is in front of it. */
export function directsFrontEnd(name: string): boolean {
  return obeyed.test(name);
}

/** @param pairs names and values in turn. */
export function withoutOrders(pairs: readonly string[]): readonly string[] {
  const isOrdered = (at: number) => directsFrontEnd(pairs[at - (at % 2)] ?? '');
  return pairs.some((_, at) => isOrdered(at)) ? pairs.filter((_, at) => !isOrdered(at)) : pairs;
}
