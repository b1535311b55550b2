/** Alerts about what has stopped without a request: the export of the log, and backups. */
import { type Clock, day, type Instant, minute, second } from '../../base/clock.ts';
import { ExpiringMap } from '../../base/expiring-map.ts';
import type { TenantId } from '../../base/ids.ts';
import { systemEntry } from '../../rules/log-entries.ts';
import { quotaRows } from '../../rules/settings.ts';
import type { Tenant, Tenants } from '../../rules/tenant.ts';
import { nextTenantWithLogs } from '../../store/queries/tenants.ts';
import type { Store } from '../../store/store.ts';
import type { RaiseAlert } from './raise.ts';

export interface Stoppable {
  readonly name: 'log export' | 'backup';
  /** How long it may stand still, as each tenant chooses. */
  readonly quota: 'alert_backup_age' | 'alert_export_lag';
  /** Since when nothing came of it; `undefined` while it goes on, and where there is none. */
  readonly since: () => Instant | undefined;
}

/** A stop is one alert a day for each tenant. */
const ageMsMax = day;
const alertsRemembered = 50_000;
/** Of one look. Where there are more, the next look goes on behind them, and all are looked at once a minute. */
const tenantsPerLook = 100;
const passMs = { few: 2 * second, many: minute } as const;

export interface StopTools {
  readonly store: Pick<Store, 'select'>;
  readonly tenants: Pick<Tenants, 'find'>;
  readonly clock: Clock;
}

/** @returns a look, which resolves to how many alerts it raised. It reads nothing while all goes on. */
export function watchStopped(
  { store, tenants, clock }: StopTools,
  raise: RaiseAlert,
  all: readonly Stoppable[],
): () => Promise<number> {
  const raised = new ExpiringMap<string, true>({ clock, ageMsMax, entriesMax: alertsRemembered });
  let after: TenantId | undefined;
  let passAt = 0;

  async function nextTenant(): Promise<Tenant | undefined> {
    const [next] = await store.select(nextTenantWithLogs('logs', after));
    after = next?.tenant_id;
    return after && tenants.find(after);
  }

  return async () => {
    const now = clock.now();
    const stopped = all.flatMap(({ since, ...one }) => {
      const at = since();
      return at === undefined ? [] : [{ ...one, at }];
    });
    // Every tenant could choose the least of all limits.
    const waits = after === undefined && now < passAt && passAt - now <= passMs.many;
    if (waits || stopped.every(({ quota, at }) => now - at < quotaRows[quota].min)) return 0;
    let count = 0;
    const isWhole = after === undefined;
    for (let looked = 0; looked < tenantsPerLook; looked++) {
      const tenant = await nextTenant();
      if (after === undefined) {
        passAt = now + (isWhole ? passMs.few : passMs.many);
        break;
      }
      if (tenant === undefined) continue;
      for (const { name, quota, at } of stopped) {
        const key = `${tenant.id} ${name} ${at}`;
        if (now - at < tenant.quotas[quota] || raised.get(key)) continue;
        raised.set(key, true);
        count++;
        const fact = { entity: 'alert', id: name, operation: 'stalled' } as const;
        const cause = systemEntry({ tenant: tenant.id, at: now, ...fact });
        raise('stalled', cause, { id: name, detail: `since ${new Date(at).toISOString()}` });
      }
    }
    return count;
  };
}
