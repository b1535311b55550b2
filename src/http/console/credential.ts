/**
 * How a request of the console says who sends it: by a cookie that no script can read, and by headers that no page of
 * another origin can send. Together they stand where other requests have an API key.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { isLoopback } from '../../base/network.ts';
import type { ServiceHeaders } from '../protocol/headers.ts';

/** With this prefix browsers store a cookie only with `Secure`, for this host alone and for all of its paths. */
export const cookieName = '__Host-strongroom';
/** What a sign-in began with. */
export const flowCookieName = `${cookieName}-sign-in`;
const cookieNames: readonly string[] = [cookieName, flowCookieName];

/** No header can contain it, so no API key can pretend to be a credential of the console. */
const separator = '\n';
const beginning = `console${separator}`;

export interface ConsoleCredential {
  readonly secret: string;
  readonly forgeryToken: string;
  /** The id of the application as which the person acts. */
  readonly application: string;
}

/** The credential as one string, in the place of an API key; `undefined` for a request that is not the console's. */
export function consoleKeyOf(
  headers: IncomingHttpHeaders,
  own: ServiceHeaders,
): string | undefined {
  const forgeryToken = own.read(headers, 'console');
  if (forgeryToken === undefined) return undefined;
  const secret = cookieOf(headers, cookieName);
  const application = own.read(headers, 'console-application');
  if (secret === undefined || application === undefined || !isSameOrigin(headers)) return undefined;
  return [beginning.trimEnd(), secret, forgeryToken, application].join(separator);
}

/** Reads {@link consoleKeyOf}. */
export function readConsoleKey(key: string): ConsoleCredential | undefined {
  if (!key.startsWith(beginning)) return undefined;
  const [, secret = '', forgeryToken = '', application = ''] = key.split(separator);
  return { secret, forgeryToken, application };
}

/** What the cookie of that name holds. */
export function cookieOf({ cookie }: IncomingHttpHeaders, wanted: string): string | undefined {
  for (const pair of cookie?.split(';') ?? []) {
    const [name = '', value] = pair.trim().split('=', 2);
    if (name === wanted) return value;
  }
  return undefined;
}

/** The other cookies: no destination of a proxy receives those of the console. */
export function withoutConsoleCookie(cookies: string): string {
  return cookies
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => !isOwnCookie(pair))
    .join('; ');
}

/** Whether a pair, or the value of `Set-Cookie`, has the name of a cookie of the console. */
export function isOwnCookie(text: string): boolean {
  return cookieNames.includes(text.split('=', 1)[0]?.trim() ?? '');
}

/** Browsers say from which origin a request comes. One that does not is judged by its other headers. */
export function isSameOrigin(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin') return false;
  const { origin, host } = headers;
  return origin === undefined || URL.parse(origin)?.host === host;
}

const passedOnHeaders = [
  'forwarded',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-real-ip',
] as const;

/**
 * True for a browser on the machine of the vault that also names this machine. Otherwise a name that an attacker
 * controls could lead here. A request that a server in front passed on comes from elsewhere, whatever it names.
 */
export function isLocal({ headers }: IncomingMessage, address: string): boolean {
  const name = URL.parse(`http://${headers.host ?? ''}`)?.hostname ?? '';
  if (passedOnHeaders.some((header) => headers[header] !== undefined)) return false;
  return isLoopback(address) && (name === 'localhost' || isLoopback(name.replace(/^\[|\]$/g, '')));
}
