/** Where a call is sent: the path below the base of the proxy, spelled as the caller spelled it. */
import { type CalledProxy, invalidCall } from './called-proxy.ts';

export interface CallPath {
  /** What comes after `/proxy`, or the whole path where a host names the proxy. Empty, or begins with a slash. */
  readonly path: string;
  /** Without the question mark; `undefined` where there is none. */
  readonly query: string | undefined;
}

export interface Destination {
  readonly url: URL;
  /** Path and query as they are sent. */
  readonly target: string;
}

export function destinationOf(
  { destinationUrl }: Pick<CalledProxy, 'destinationUrl'>,
  { path, query }: CallPath,
): Destination {
  const url = new URL(destinationUrl);
  const below = `${url.pathname.replace(/\/+$/, '')}${path}` || '/';
  return { url, target: query === undefined ? below : `${below}?${query}` };
}

const pathForm = /^(?:\/[!-~]*)?$/;

/** Beyond so many rounds of decoding no host goes. */
const decodingsMax = 3;

/**
 * No path leads out of the base, however the destination reads it: percent signs that are encoded
 * themselves, encoded slashes, backslashes, and parameters of a segment are all taken into account.
 * @throws VaultError `invalid_proxy_request`
 */
export function checkPath(path: string): void {
  if (!pathForm.test(path) || path.includes('#')) {
    throw invalidCall('path', 'must begin with / and hold only printable ASCII characters');
  }
  if (/\\|%5c/i.test(path)) throw invalidCall('path', 'must not hold a backslash');
  checkSegments(path);
}

/**
 * Of a path into which values were written, which may hold any character, encoded.
 * @throws VaultError `invalid_proxy_request`
 */
export function checkSegments(path: string): void {
  if (path.includes('//')) throw invalidCall('path', 'must not have an empty segment');
  let spelled = path;
  for (let round = 0; round < decodingsMax; round++) {
    if (!spelled.includes('%')) break;
    spelled = spelled.replace(/%(25|2e|2f|3b|5c)/gi, decodeURIComponent);
  }
  const segments = spelled.split(/[/\\]/).map((segment) => segment.split(';', 1)[0]);
  if (segments.includes('..') || segments.includes('.')) {
    throw invalidCall('path', 'must not have a segment that is "." or "..", encoded or not');
  }
}
