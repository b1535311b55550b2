/** The caller of a proxy that requires no key: the proxy's application, with its current rules. */
import { type Clock, second } from '../base/clock.ts';
import { ExpiringMap } from '../base/expiring-map.ts';
import { type ApplicationId, noApplication, type ProxyId } from '../base/ids.ts';
import { authenticated, type Caller, type Origin } from '../rules/caller.ts';
import { type Policy, policyOf } from '../rules/policy.ts';
import type { Tenant } from '../rules/tenant.ts';
import type { Store } from '../store/store.ts';
import { authorityLentBy } from './authority.ts';

export interface AnonymousProxy {
  readonly id: ProxyId;
  readonly tenant: Tenant;
  readonly applicationId: ApplicationId | undefined;
}

/**
 * A caller without permissions where the proxy has no application, or one that is deleted.
 * @throws VaultError `integrity` where the application was altered outside the vault.
 */
export type CallerOfProxy = (proxy: AnonymousProxy, origin: Origin) => Promise<Caller>;

/** As for keys: what changes on another server takes effect within a second. */
const staleMsMax = second / 2;
const policiesCached = 1_000;

const nothing = policyOf({ permissions: [], rules: [] });

export function createCallerOfProxy({
  store,
  clock,
}: {
  readonly store: Store;
  readonly clock: Clock;
}): CallerOfProxy {
  const recent = new ExpiringMap<string, Policy>({
    clock,
    ageMsMax: staleMsMax,
    entriesMax: policiesCached,
    epoch: () => store.epochs.now('access'),
  });

  async function policyFor(tenant: Tenant, application: ApplicationId): Promise<Policy> {
    const name = `${tenant.id} ${application}`;
    const known = recent.get(name);
    if (known) return known;
    const reading = recent.reading();
    const policy = (await authorityLentBy(store, tenant, application))?.policy ?? nothing;
    recent.set(name, policy, reading);
    return policy;
  }

  return async ({ id, tenant, applicationId }, origin) =>
    authenticated({
      tenant,
      application: applicationId ?? noApplication,
      key: undefined,
      session: undefined,
      kind: 'private',
      policy: applicationId === undefined ? nothing : await policyFor(tenant, applicationId),
      origin,
      anonymous: id,
    });
}
