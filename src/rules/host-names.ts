/** The host names of proxies: which of them the operator can assign, and which belong to the vault itself. */
import type { ValidationErrors } from '../base/validation-errors.ts';

export const hostLengthMax = 253;

/** A DNS name with a dot whose last label no resolver takes for a part of an address. */
const hostForm = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** RFC 6761, section 6.3, and the names that systems give to it. */
const loopback = /(?:^|\.)localhost6?(?:\.localdomain6?)?$/;

/** Plain data, which can cross to a thread. */
export interface VaultNames {
  /** The vault's own names, in lower case: no request with such a Host is for a proxy. */
  readonly own: readonly string[];
  /** Below which every proxy has a name that begins with its key; `undefined` where proxies have none. */
  readonly proxyDomain: string | undefined;
}

/** As names are compared: DNS tells neither case nor the dot at the end apart. */
export function comparedName(name: string): string {
  return name.toLowerCase().replace(/\.$/, '');
}

/** @param name in lower case. */
export function isDnsName(name: string): boolean {
  return name.length <= hostLengthMax && hostForm.test(name);
}

/**
 * Why the operator cannot give this name to a tenant; `undefined` where that is possible.
 * @param name in lower case.
 */
export function flawOfHost(name: string, { own, proxyDomain }: VaultNames): string | undefined {
  if (!isDnsName(name)) return 'must be a DNS name with at least one dot, without a port';
  if (loopback.test(name)) return 'must not be a name of the loopback interface';
  if (own.includes(name)) return "must not be one of the vault's own names";
  if (proxyDomain !== undefined && name.endsWith(`.${proxyDomain}`)) {
    return 'must not be below STRONGROOM_PROXY_DOMAIN, where every proxy has the name that begins with its key';
  }
  return undefined;
}

/** The name that the proxy with this key has by itself. */
export function hostOfKey(key: string, { proxyDomain }: VaultNames): string | undefined {
  return proxyDomain === undefined ? undefined : `${key.toLowerCase()}.${proxyDomain}`;
}

/** The first label of a host below the domain of proxies, spelled as it was sent. */
export function keyInHost(host: string, { proxyDomain }: VaultNames): string | undefined {
  if (proxyDomain === undefined) return undefined;
  const end = host.length - proxyDomain.length - 1;
  if (end <= 0 || host.slice(end).toLowerCase() !== `.${proxyDomain}`) return undefined;
  const label = host.slice(0, end);
  return label.includes('.') ? undefined : label;
}

/**
 * The `proxy_host` of a request, in lower case. Whether it was given to the tenant is not looked at.
 * @param names the vault's.
 */
export function readHost(
  given: string | null,
  { names, errors }: { readonly names: VaultNames; readonly errors: ValidationErrors },
): string | null {
  if (given === null) return null;
  const host = given.toLowerCase();
  // A client may send back what it was shown.
  const flaw = keyInHost(host, names) === undefined ? flawOfHost(host, names) : undefined;
  if (flaw !== undefined) errors.add('proxy_host', flaw);
  return host;
}
