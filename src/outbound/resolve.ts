/**
 * Resolves names that any caller may choose. The system's look-up blocks one of the four threads that the whole
 * process shares with its files and signatures, and cannot be cancelled. Four names whose servers do not respond
 * would block everything else.
 */
import { type LookupAddress, Resolver } from 'node:dns';

/** Returns all addresses of a name, or the error. */
export type Resolve = (
  name: string,
  give: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** The timeout of one query to one server. The next server gets a longer one. */
const responseMsMax = 2_000;
const triesMax = 2;

/** RFC 6761, section 6.3: these names are never sent to a server. */
const ownName = /(?:^|\.)localhost\.?$/i;

export interface NameServers {
  /** Addresses with ports that replace the current servers of the system. */
  readonly servers?: readonly string[];
  readonly responseMs?: number;
}

/** Ignores the hosts file of the system, which describes its own network. */
export function resolvingPublicNames({
  servers,
  responseMs = responseMsMax,
}: NameServers = {}): Resolve {
  return (name, give) => {
    if (ownName.test(name)) {
      give(null, [{ address: '127.0.0.1', family: 4 }]);
      return;
    }
    const resolver = new Resolver({ timeout: responseMs, tries: triesMax });
    if (servers) resolver.setServers(servers);
    const found: LookupAddress[] = [];
    let failure: NodeJS.ErrnoException | null = null;
    let open = 2;
    const take = (family: 4 | 6) => (error: NodeJS.ErrnoException | null, addresses: string[]) => {
      if (error) failure ??= error;
      else found.push(...addresses.map((address) => ({ address, family })));
      open -= 1;
      if (open === 0) give(found.length === 0 ? failure : null, found);
    };
    resolver.resolve4(name, take(4));
    resolver.resolve6(name, take(6));
  };
}
