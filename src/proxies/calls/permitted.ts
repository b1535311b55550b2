/** The methods, paths, and destinations that a proxy and its tenant allow. */
import type { Clock } from '../../base/clock.ts';
import type { Caller } from '../../rules/caller.ts';
import { allowsDestination, matchesWildcard } from '../../rules/destinations.ts';
import type { Refused } from '../../rules/operation.ts';
import { forbid } from '../../rules/refusal.ts';
import { type CalledProxy, ephemeralId } from './called-proxy.ts';

export interface AttemptedCall {
  readonly caller: Caller;
  readonly proxy: CalledProxy;
  readonly method: string;
  /** As the caller sent it. */
  readonly path: string;
}

/** The refusal of a call that is not allowed, for the log. */
export function refusalOfCall(
  { clock }: { readonly clock: Clock },
  { caller, proxy, method, path }: AttemptedCall,
): Refused | undefined {
  const message = flawOf({ caller, proxy, method, path });
  if (message === undefined) return undefined;
  const denial = { entity: 'proxy', id: proxy.id, operation: 'invoke', message };
  return forbid(caller, clock.now(), denial);
}

function flawOf({ caller, proxy, method, path }: AttemptedCall): string | undefined {
  const { tenant, allowedMethods, allowedPaths, destinationUrl } = proxy;
  const { disable_ephemeral_proxy: disabled, proxy_destinations: destinations } = tenant.settings;
  if (proxy.id === ephemeralId && disabled === 'true') {
    return 'The tenant does not allow ephemeral proxies (setting disable_ephemeral_proxy).';
  }
  // Its programs have its key, and would otherwise choose where values go.
  if (proxy.id === ephemeralId && caller.egress) {
    return 'An application with egress policies calls no ephemeral proxies.';
  }
  if (!allowsDestination(destinations, new URL(destinationUrl).hostname)) {
    return 'The tenant does not allow this destination (setting proxy_destinations).';
  }
  if (allowedMethods && !allowedMethods.includes(method)) {
    return 'The proxy does not allow this method (allowed_methods).';
  }
  const sent = path === '' ? '/' : path;
  if (allowedPaths && !allowedPaths.some((pattern) => matchesWildcard(pattern, sent))) {
    return 'The proxy does not allow this path (allowed_paths).';
  }
  return undefined;
}
