/**
 * Looking up names that anybody may choose. The system's own look-up waits in one of four threads that the whole
 * process shares with its files and signatures, and cannot be given up: four names whose server is silent would stop
 * all others.
 */
import { type LookupAddress, Resolver } from 'node:dns';

/** All addresses of a name, or why there is none. */
export type Resolve = (
  name: string,
  give: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** Of one question to one server; the next one is asked with a longer one. */
const responseMsMax = 2_000;
const triesMax = 2;

/** RFC 6761, section 6.3: no server is asked for these. */
const ownName = /(?:^|\.)localhost\.?$/i;

export interface NameServers {
  /** Addresses with ports, in place of the servers of the system as they are now. */
  readonly servers?: readonly string[];
  readonly responseMs?: number;
}

/** Without the system's file of hosts, which is about its own network. */
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
