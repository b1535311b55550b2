/** The event types to which a tenant's webhooks subscribe. Every commit reads them. */

import { type Clock, second } from '../base/clock.ts';
import { ExpiringMap } from '../base/expiring-map.ts';
import type { TenantId } from '../base/ids.ts';
import { openerOf } from '../rules/openings.ts';
import { ifProven } from '../rules/proven-row.ts';
import type { Tenant, Tenants } from '../rules/tenant.ts';
import { enabledWebhooks } from '../store/event-queries/webhooks.ts';
import type { Store } from '../store/store.ts';
import type { Unproven } from '../store/stored-row.ts';
import type { SubscribedTypes, Subscriptions } from './events/derive.ts';
import type { EventType } from './events/types.ts';
import { openWebhook } from './resource.ts';

/** Changes on another server take effect within a second; half of it is for the read itself. */
const staleMsMax = second / 2;
const tenantsCached = 10_000;

export interface SubscriptionsOptions {
  readonly store: Store;
  readonly tenants: Pick<Tenants, 'find'>;
  readonly clock: Clock;
}

/** A change of webhooks by this process takes effect with its next commit, on every thread. */
export function createSubscriptions({
  store,
  tenants,
  clock,
}: SubscriptionsOptions): Subscriptions {
  const epoch = () => store.epochs.now('webhooks');
  const recent = new ExpiringMap<TenantId, SubscribedTypes>({
    clock,
    ageMsMax: staleMsMax,
    entriesMax: tenantsCached,
    epoch,
  });
  const reads = new Map<
    TenantId,
    { readonly epoch: number; readonly types: Promise<SubscribedTypes> }
  >();

  async function load(id: TenantId): Promise<SubscribedTypes> {
    const reading = recent.reading();
    const rows = await store.select(enabledWebhooks(id));
    const tenant = rows.length === 0 ? undefined : await tenants.find(id);
    const types = new Set(tenant && rows.flatMap((row) => typesOf(tenant, row)));
    recent.set(id, types, reading);
    return types;
  }

  return {
    known: (id) => recent.get(id),
    read: async (id) => {
      const known = reads.get(id);
      if (known?.epoch === epoch()) return known.types;
      const read = { epoch: epoch(), types: load(id) };
      reads.set(id, read);
      try {
        return await read.types;
      } finally {
        if (reads.get(id) === read) reads.delete(id);
      }
    },
  };
}

/** A webhook that was altered outside the vault gets no events, and blocks no commit. */
function typesOf(tenant: Tenant, stored: Unproven<'webhooks'>): readonly EventType[] {
  const row = ifProven(tenant, 'webhooks', stored);
  const opener = openerOf('match webhooks', tenant);
  const opened = row && tenant.quarantine.read(() => openWebhook(opener, row));
  return opened?.reveal().events ?? [];
}
