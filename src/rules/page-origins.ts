/** The origins of the pages that may use the keys of a public application (RFC 6454), and show its fields. */
import { createValidationErrors } from '../base/validation-errors.ts';
import { comparedName, isDnsName } from './host-names.ts';
import type { ApplicationKind } from './permissions.ts';

export const originsMax = 100;

const originForm =
  /^(?<scheme>https?):\/\/(?<wild>\*\.)?(?<host>\[::1\]|[^/:*@?#[\]\s]+)(?::(?<port>[1-9]\d{0,4}))?$/;
const loopbackHosts: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);
const defaultPorts: Readonly<Record<string, string>> = { https: '443', http: '80' };
const portMax = 65_535;

/**
 * Exact origins such as `https://shop.example.com`, or one with a wildcard in place of its first label. Null and
 * `undefined` are an application that lists none.
 * @throws VaultError `validation_failed` naming each that is wrong.
 */
export function parseOrigins(
  given: readonly string[] | null | undefined,
  kind: ApplicationKind,
): readonly string[] | undefined {
  if (given === null || given === undefined) return undefined;
  const errors = createValidationErrors();
  if (kind !== 'public') errors.add('origins', 'can be given to public applications only');
  if (given.length > originsMax)
    errors.add('origins', `must contain at most ${originsMax} origins`);
  else {
    for (const [at, origin] of given.entries()) {
      const flaw = flawOf(origin);
      if (flaw !== undefined) errors.add(`origins[${at}]`, flaw);
    }
  }
  errors.settle();
  return [...new Set(given)];
}

function flawOf(origin: string): string | undefined {
  const { scheme = '', wild, host = '', port } = originForm.exec(origin)?.groups ?? {};
  if (host === '' || host !== comparedName(host)) {
    return 'must be an origin such as https://shop.example.com or https://*.example.com, in lower case, without a path';
  }
  if (port !== undefined && (port === defaultPorts[scheme] || Number(port) > portMax)) {
    return 'must leave out the default port, as browsers do, and have no port above 65535';
  }
  if (loopbackHosts.has(host)) {
    return wild === undefined ? undefined : 'must not have a wildcard before a loopback host';
  }
  if (!isDnsName(host)) return 'must name a host by its DNS name';
  return scheme === 'https' ? undefined : 'must begin with https://, except on a loopback host';
}

/** The source of a regular expression for exactly these origins, which browsers also understand. */
export function patternOf(origins: readonly string[]): string {
  const sources = origins.map((origin) =>
    origin.replace(/[.[\]]/g, '\\$&').replace('*', '[a-z0-9-]+'),
  );
  return sources.length === 0 ? '(?!)' : `^(?:${sources.join('|')})$`;
}

export interface RequestOrigin {
  /** The headers `Origin`, `Host` and `Sec-Fetch-Site`, which no page can set. */
  readonly origin?: string | undefined;
  readonly host?: string | undefined;
  readonly site?: string | undefined;
}

/**
 * Whether a request with a key of the application may come from there. Frames of the vault's own origin may always
 * send it: a listed page shows them. Programs that are no browsers send no origin, and could send any.
 */
export function permitsOrigin(
  origins: readonly string[] | undefined,
  { origin, host, site }: RequestOrigin,
): boolean {
  if (origins === undefined || origin === undefined) return true;
  if (site === 'same-origin' || (host !== undefined && origin.split('://')[1] === host))
    return true;
  return new RegExp(patternOf(origins)).test(origin);
}
