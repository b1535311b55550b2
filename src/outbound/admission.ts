/** The guard: which URLs may be called, and which of a name's addresses may be connected to. */
import { isIP, type LookupFunction } from 'node:net';
import { type AllowList, hostAndPort } from './allow-list.ts';
import { OutboundError } from './error.ts';
import { isPublicAddress } from './guard.ts';
import { type Resolve, resolvingPublicNames } from './resolve.ts';

export interface AdmissionOptions {
  /** The operator's own hosts: they may be at any address and may be called without TLS. */
  readonly allow: AllowList;
  /** The port of the database, which is never called. */
  readonly databasePorts?: readonly number[];
  readonly resolve?: Resolve;
}

export interface Admission {
  /** On the allow-list, or anybody's host, of which only public addresses are connected to. */
  readonly decision: 'allowed' | 'public';
  /** As in a URL, with the port that it means. */
  readonly host: string;
  /** What the connection has to look its name up with; `undefined` for the system's own. */
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
   * The addresses are judged here, in the very look-up whose response is connected to: a name that
   * answers differently the next time gains nothing.
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

/** The name or the address that is connected to: IPv6 without the brackets of a URL. */
export function nameOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}
