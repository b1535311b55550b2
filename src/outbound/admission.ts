/** The address guard of calls: which URLs may be called, and which addresses of a name may be connected to. */
import { isIP, type LookupFunction } from 'node:net';
import { type AllowList, hostAndPort } from './allow-list.ts';
import { OutboundError } from './error.ts';
import { isPublicAddress } from './guard.ts';
import { type Resolve, resolvingPublicNames } from './resolve.ts';

export interface AdmissionOptions {
  /** The operator's own hosts. They may be at any address and may be called without TLS. */
  readonly allow: AllowList;
  /** The ports of the database, which are never called. */
  readonly databasePorts?: readonly number[];
  readonly resolve?: Resolve;
}

export interface Admission {
  /** `allowed`: the host is on the allow-list. `public`: any other host, which is called only at public addresses. */
  readonly decision: 'allowed' | 'public';
  /** The host as in a URL, with its explicit or default port. */
  readonly host: string;
  /** The look-up that the connection has to use; `undefined` for that of the system. */
  readonly lookup: LookupFunction | undefined;
}

/** @throws OutboundError `forbidden_url` or `forbidden_address`. */
export type Admit = (url: URL) => Admission;

export function createAdmission({
  allow,
  databasePorts = [],
  resolve = resolvingPublicNames(),
}: AdmissionOptions) {
  /**
   * The guard checks addresses in the same look-up that the connection uses, so a name that later resolves to another
   * address (DNS rebinding) cannot bypass it.
   */
  const publicLookup: LookupFunction = (name, { all }, give) =>
    resolve(name, (error, addresses) => {
      const open = error ? [] : addresses.filter(({ address }) => isPublicAddress(address));
      const [first] = open;
      if (error) give(new OutboundError('dns', error), '');
      else if (first === undefined) give(new OutboundError('forbidden_address'), '');
      else if (all === true) give(null, open);
      else give(null, first.address, first.family);
    });

  const admit: Admit = (url) => {
    const host = hostAndPort(url);
    const allowed = allow.has(host);
    if (!allowed) refuseForeign(url, databasePorts);
    if (!/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
      throw new OutboundError('forbidden_url');
    }
    if (allowed) return { decision: 'allowed', host, lookup: undefined };
    return { decision: 'public', host, lookup: publicLookup };
  };
  return admit;
}

/** An address in the URL itself is never looked up, so it is checked here. */
function refuseForeign(url: URL, databasePorts: readonly number[]): void {
  if (url.protocol !== 'https:' || databasePorts.includes(Number(url.port || 443))) {
    throw new OutboundError('forbidden_url');
  }
  const name = nameOf(url);
  if (isIP(name) !== 0 && !isPublicAddress(name)) throw new OutboundError('forbidden_address');
}

/** The name or the address of the connection: IPv6 without the brackets of a URL. */
export function nameOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}
