/** What is decided by an application after its request was: its type, and its egress budget. */
import { type Clock, second } from '../../base/clock.ts';
import { ExpiringMap } from '../../base/expiring-map.ts';
import { type ApplicationId, parseUuid, type TenantId } from '../../base/ids.ts';
import { ifProven } from '../../rules/proven-row.ts';
import type { Tenants } from '../../rules/tenant.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { type EgressBudget, storedBudget } from '../applications/row.ts';

export interface KnownApplication {
  readonly type: Row<'applications'>['type'];
  readonly budget: EgressBudget | undefined;
}

export interface ApplicationFacts {
  /** `undefined` where it must be read; null where there is no such application, or it was altered. */
  known(tenant: TenantId, application: string): KnownApplication | null | undefined;
  of(tenant: TenantId, application: string): Promise<KnownApplication | undefined>;
}

const applicationsCached = 10_000;

export function createApplicationFacts({
  store,
  tenants,
  clock,
}: {
  readonly store: Store;
  readonly tenants: Pick<Tenants, 'find'>;
  readonly clock: Clock;
}): ApplicationFacts {
  const cache = new ExpiringMap<string, KnownApplication | null>({
    clock,
    ageMsMax: second / 2,
    entriesMax: applicationsCached,
    epoch: () => store.epochs.now('access'),
  });
  const known = (tenant: TenantId, id: string) => cache.get(`${tenant} ${id}`);

  async function read(tenant_id: TenantId, id: string) {
    const reading = cache.reading();
    const application_id = parseUuid<ApplicationId>(id);
    const [tenant, stored] = await Promise.all([
      tenants.find(tenant_id),
      application_id && store.get('applications', { tenant_id, application_id }),
    ]);
    const row = tenant && stored && ifProven(tenant, 'applications', stored);
    const found = row ? { type: row.type, budget: storedBudget(row) } : null;
    cache.set(`${tenant_id} ${id}`, found, reading);
    return found;
  }

  return {
    known,
    of: async (tenant, id) => {
      const cached = known(tenant, id);
      return (cached === undefined ? await read(tenant, id) : cached) ?? undefined;
    },
  };
}
