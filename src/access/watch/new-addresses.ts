/** New addresses: from where a server key was never used before. */
import { type Clock, day } from '../../base/clock.ts';
import { ExpiringMap } from '../../base/expiring-map.ts';
import { networkOf } from '../../base/network.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import { addressesOfKey } from '../../store/queries/alert-marks.ts';
import type { Store } from '../../store/store.ts';
import type { ApplicationFacts } from './application-facts.ts';
import type { RaiseAlert } from './raise.ts';

/** Of one key. Beyond that no address of it is new. */
const addressesMax = 200;
const cached = 50_000;

export interface AddressTools {
  readonly store: Pick<Store, 'select' | 'record'>;
  readonly clock: Clock;
  readonly facts: ApplicationFacts;
}

/** Public keys and sessions are used from everywhere, and callers without a key as well. */
export function watchAddresses(
  { store, clock, facts }: AddressTools,
  raise: RaiseAlert,
): (entry: LogEntry) => Promise<void> | undefined {
  const known = new ExpiringMap<string, true>({ clock, ageMsMax: day, entriesMax: cached });

  async function check(entry: LogEntry, key: string, place: string): Promise<void> {
    const { tenant_id, actor_id } = entry;
    const application = actor_id === null ? undefined : await facts.of(tenant_id, actor_id);
    if (application === undefined || application.type === 'public') return;
    const places = await store.select(addressesOfKey(tenant_id, key, addressesMax));
    if (places.length >= addressesMax || places.some((one) => one.place === place)) return;
    const mark = { tenant_id, kind: 'address', subject: key, place } as const;
    const insert = { alert_marks: [{ ...mark, created_at: clock.now() }] };
    const alert = { id: key, detail: place };
    if (places.length > 0) return raise('new_address', entry, { ...alert, insert });
    await store.record({ insert });
    // Another server may have met another first address at the same moment.
    const first = await store.select(addressesOfKey(tenant_id, key, addressesMax));
    if (first.length > 1) raise('new_address', entry, alert);
  }

  return (entry) => {
    const { tenant_id, actor_type, origin, source } = entry;
    const key = source?.key_id ?? null;
    if (actor_type !== 'application' || origin === null || key === null) return undefined;
    const place = networkOf(origin);
    const name = `${tenant_id} ${key} ${place}`;
    if (known.get(name)) return undefined;
    known.set(name, true);
    return check(entry, key, place).catch(() => known.delete(name));
  };
}
