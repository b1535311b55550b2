/** Which requests are for a proxy by their Host alone. */
import { type Clock, second } from '../../base/clock.ts';
import { ExpiringMap } from '../../base/expiring-map.ts';
import type { FoundProxy, ProxyFinder } from '../../proxies/find.ts';
import type { VaultNames } from '../../rules/host-names.ts';
import type { Store } from '../../store/store.ts';
import { originOf, type RequestContext } from '../protocol/request-context.ts';

export interface ProxyHosts {
  /**
   * The name, as it was sent; `undefined` where the Host cannot be a proxy's, is the vault's own, or was not a
   * proxy's a moment ago.
   */
  candidateOf(context: RequestContext): string | undefined;
  find(host: string, context: RequestContext): Promise<FoundProxy | undefined>;
}

export interface ProxyHostsOptions {
  readonly proxies: ProxyFinder;
  readonly store: Store;
  readonly clock: Clock;
  readonly names: VaultNames;
}

const staleMsMax = second / 2;
const hostsCached = 1_000;

/** A DNS name with a dot and without a port; an address ends in digits or a bracket. */
const hostForm = /^((?:[a-z0-9_-]+\.)+[a-z][a-z0-9-]*)\.?(?::[0-9]+)?$/i;

/** Every request looks a host up, so hosts of no proxy are cached; of invented hosts, the latest. */
export function createProxyHosts(options: ProxyHostsOptions): ProxyHosts {
  const { proxies, store, clock, names } = options;
  const own = new Set(names.own);
  const others = new ExpiringMap<string, true>({
    clock,
    ageMsMax: staleMsMax,
    entriesMax: hostsCached,
    epoch: () => store.epochs.now('proxies'),
  });
  // Nearly every request names the host of the one before.
  let last: { readonly host: string; readonly name: string | undefined } | undefined;
  function nameOf(host: string): string | undefined {
    const name = hostForm.exec(host)?.[1];
    return name === undefined || own.has(name.toLowerCase()) ? undefined : name;
  }

  return {
    candidateOf: ({ headers }) => {
      const { host } = headers;
      if (host === undefined) return undefined;
      if (last?.host !== host) last = { host, name: nameOf(host) };
      const { name } = last;
      return name === undefined || others.get(host) ? undefined : name;
    },
    find: async (name, context) => {
      const reading = others.reading();
      const found = await proxies.byHost(name, originOf(context));
      const { host } = context.headers;
      if (found === undefined && host !== undefined) others.set(host, true, reading);
      return found;
    },
  };
}
