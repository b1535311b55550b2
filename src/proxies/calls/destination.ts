/** The destination of a call: a path below the base of the proxy, spelled as the caller spelled it. */
import { type CalledProxy, invalidCall } from './called-proxy.ts';

export interface CallPath {
  /** The part after `/proxy`, or the whole path if the host names the proxy. Empty, or begins with a slash. */
  readonly path: string;
  /** Without the question mark; `undefined` if there is none. */
  readonly query: string | undefined;
}

export interface Destination {
  readonly url: URL;
  /** The path and query as the vault sends them. */
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

/** No known server decodes a path more often. */
const decodingsMax = 5;

/**
 * No path may lead out of the base, regardless of how the destination decodes it. Empty segments are allowed: they
 * are harmless as long as no segment leads upwards.
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
 * For a path that contains inserted values, which may include any encoded character.
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
/** Characters that decoders drop or trim: control characters, white space, and bytes that are not UTF-8. */
const dropped = /[\p{C}\s\ufffd]/gu;
/** Servlet containers end a segment at its parameters, C programs at a null byte or line break, others at ? or #. */
const segmentEnd = /[;?#\0\r\n]/;

/** True for a segment that some server treats as "." or "..". */
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
 * Decodes one level as the most lenient servers do: `%u002e` as in IIS, overlong UTF-8, and characters that Windows
 * replaces with similar ASCII characters.
 */
function decodedOnce(text: string): string {
  if (!text.includes('%')) return text;
  const wide = text.replace(/%u([0-9a-f]{4})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return wide.replace(/(?:%[0-9a-f]{2})+/gi, decodedBytes).normalize('NFKC');
}

/**
 * Encodings of one ASCII byte in two to six bytes, which RFC 3629 forbids. Lenient decoders read six bits of the last
 * byte and ignore its other bits.
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
