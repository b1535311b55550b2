/** Honey tokens: nobody has a reason to use them, so whoever does raises an alert. */
import { type Clock, second } from '../../base/clock.ts';
import { ExpiringMap } from '../../base/expiring-map.ts';
import type { TenantId } from '../../base/ids.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import { honeyTokens } from '../../store/queries/alert-marks.ts';
import type { Store } from '../../store/store.ts';
import type { RaiseAlert } from './raise.ts';

/** Within the five seconds in which an alert must be raised. */
const ageMsMax = 2 * second;
const tenantsCached = 10_000;

type Ids = ReadonlySet<string>;

export function watchHoneyTokens(
  { store, clock }: { readonly store: Pick<Store, 'select'>; readonly clock: Clock },
  raise: RaiseAlert,
): (entry: LogEntry) => Promise<void> | undefined {
  const cache = new ExpiringMap<TenantId, Ids>({ clock, ageMsMax, entriesMax: tenantsCached });
  const reading = new Map<TenantId, Promise<Ids>>();

  async function read(tenant: TenantId): Promise<Ids> {
    try {
      const moment = cache.reading();
      const marks = await store.select(honeyTokens(tenant));
      const ids = new Set(marks.map(({ subject }) => subject));
      cache.set(tenant, ids, moment);
      return ids;
    } finally {
      reading.delete(tenant);
    }
  }

  function idsOf(tenant: TenantId): Promise<Ids> {
    const underWay = reading.get(tenant) ?? read(tenant);
    reading.set(tenant, underWay);
    return underWay;
  }

  function check(entry: LogEntry, ids: Ids): void {
    const { entity_id: id, operation, result } = entry;
    if (ids.has(id)) raise('honey_token', entry, { id, detail: `${operation} ${result}` });
  }

  return (entry) => {
    const { tenant_id, entity_type, actor_type } = entry;
    const isCaller = actor_type !== 'operator' && actor_type !== 'system';
    if (entity_type !== 'token' || !isCaller) return undefined;
    const known = cache.get(tenant_id);
    if (known === undefined) return idsOf(tenant_id).then((ids) => check(entry, ids));
    check(entry, known);
    return undefined;
  };
}
