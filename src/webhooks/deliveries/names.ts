/** The names of applications, which events show next to their ids. */
import { type Clock, minute } from '../../base/clock.ts';
import { ExpiringMap } from '../../base/expiring-map.ts';
import { type ApplicationId, parseUuid } from '../../base/ids.ts';
import { ifProven } from '../../rules/proven-row.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Store } from '../../store/store.ts';
import type { NameOf } from '../events/envelope.ts';

const namesCached = 10_000;

/** Calls `use` with the cached names, and once more if it requested names that had to be read first. */
export type WithNames = <R>(tenant: Tenant, use: (nameOf: NameOf) => R) => Promise<R>;

export function createNames({
  store,
  clock,
}: {
  readonly store: Store;
  readonly clock: Clock;
}): WithNames {
  const recent = new ExpiringMap<string, { readonly name: string | undefined }>({
    clock,
    ageMsMax: minute,
    entriesMax: namesCached,
    epoch: () => store.epochs.now('access'),
  });

  async function read(tenant: Tenant, id: string): Promise<void> {
    const reading = recent.reading();
    const application_id = parseUuid<ApplicationId>(id);
    const row =
      application_id && (await store.get('applications', { tenant_id: tenant.id, application_id }));
    const name = row && ifProven(tenant, 'applications', row)?.name;
    recent.set(`${tenant.id} ${id}`, { name: name || undefined }, reading);
  }

  return async (tenant, use) => {
    const unknown = new Set<string>();
    const nameOf: NameOf = (id) => {
      const known = recent.get(`${tenant.id} ${id}`);
      if (known === undefined) unknown.add(id);
      return known?.name;
    };
    const first = use(nameOf);
    if (unknown.size === 0) return first;
    await Promise.all([...unknown].map((id) => read(tenant, id)));
    return use(nameOf);
  };
}
