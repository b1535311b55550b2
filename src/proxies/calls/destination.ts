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

/** No server decodes a path more often than this. */
const decodingsMax = 5;

/**
 * No path leads out of the base, however the destination reads it. Empty segments stay: they lead nowhere
 * as long as no segment leads upwards.
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
  let spelled = path;
  for (let round = 0; ; round++) {
    if (spelled.split(slashes).some(leadsUpwards)) {
      throw invalidCall('path', 'must not have a segment that is "." or "..", encoded or not');
    }
    const decoded = decodedOnce(spelled);
    if (decoded === spelled) return;
    if (round === decodingsMax) {
      throw invalidCall('path', `must not be percent-encoded more than ${decodingsMax} times`);
    }
    spelled = decoded;
  }
}

const slashes = /[/\\]/;
/** What decoders drop or trim: control characters, white space, and bytes that are not UTF-8. */
const dropped = /[\p{C}\s\ufffd]/gu;
/** Servlet containers end a segment at its parameters, C programs at a null byte or line break, others at ? or #. */
const segmentEnd = /[;?#\0\r\n]/;

/** True for a segment that some server takes for "." or "..". */
function leadsUpwards(segment: string): boolean {
  if (!segment.includes('.')) return false;
  return [segment, segment.split(segmentEnd, 1)[0] ?? ''].some((read) => {
    const left = read.replace(dropped, '');
    // Windows ignores dots and spaces at the end of a name.
    const isTrimmed = left.length < read.length && /^\.+$/.test(left);
    return left === '.' || left === '..' || isTrimmed;
  });
}

/**
 * Decodes one level as the most lenient servers do: `%u002e` as IIS reads it, UTF-8 that is longer than it
 * may be, and characters that Windows replaces with similar ones of ASCII.
 */
function decodedOnce(text: string): string {
  if (!text.includes('%')) return text;
  const wide = text.replace(/%u([0-9a-f]{4})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return wide.replace(/(?:%[0-9a-f]{2})+/gi, decodedBytes).normalize('NFKC');
}

/**
 * The encodings of one byte of ASCII in two to six bytes, of which RFC 3629 allows none. Of the last byte
 * lenient decoders read six bits, whatever the others are.
 */
const overlong =
  /(?:[\xc0\xc1]|\xe0[\x80\x81]|\xf0\x80[\x80\x81]|\xf8\x80\x80[\x80\x81]|\xfc\x80{3}[\x80\x81])[\0-\xff]/g;

function decodedBytes(spelled: string): string {
  const bytes = Buffer.from(spelled.replaceAll('%', ''), 'hex').toString('latin1');
  const shortened = bytes.replace(overlong, (form) => {
    const [high, low] = [form.charCodeAt(form.length - 2), form.charCodeAt(form.length - 1)];
    return String.fromCharCode(((high & 1) << 6) | (low & 0x3f));
  });
  return Buffer.from(shortened, 'latin1').toString('utf8');
}
