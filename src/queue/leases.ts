/** Leases: of several servers on one database, only one at a time works on the queue of a tenant. */
import { type Clock, type Instant, instantAfter, second } from '../base/clock.ts';
import type { TenantId } from '../base/ids.ts';
import type { Quarantine } from '../rules/quarantine.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';

/** Another server takes over this long after a server was killed. */
export const leaseMs = 20 * second;

/** The longest valid lease: a longer one means that a clock was set back, or that the row was altered. */
export const leaseMsMax = 3 * leaseMs;

/** A lease is renewed once less than this time remains. */
const renewalMs = 12 * second;

/** Cached leases, including those that have ended. */
const leasesKept = 1_000;

export interface Leases {
  /**
   * Whether this server works on the tenant's queue, for at least several seconds. After `taken`, another server may
   * have worked on it since this one did.
   */
  hold(tenant: TenantId): Promise<'still' | 'taken' | false>;
  /** The same from memory, without a query. */
  isHeld(tenant: TenantId): boolean;
  /** Ends all leases, so that another server need not wait. */
  release(): Promise<void>;
}

export interface LeaseTools {
  /** Of the queue. */
  readonly name: string;
  readonly store: Store;
  readonly clock: Clock;
  /** The unique id of this server. */
  readonly holder: string;
  /** For leases that were altered outside the vault. */
  readonly quarantine: Quarantine;
}

export function createLeases({ name, store, clock, holder, quarantine }: LeaseTools): Leases {
  const own = new Map<TenantId, Row<'leases'>>();
  let roomy = leasesKept;

  /** For tenants that once had events. Each time the cache doubles, ended leases are removed. */
  function forgetEnded(now: Instant): void {
    if (own.size < roomy) return;
    for (const [tenant, { until }] of own) if (until <= now) own.delete(tenant);
    roomy = Math.max(leasesKept, 2 * own.size);
  }

  /** False if another server was faster. */
  async function write(row: Row<'leases'>, before: Row<'leases'> | undefined): Promise<boolean> {
    const outcome = await store.record(
      before
        ? {
            amend: {
              leases: [{ ...row, was_holder: before.holder, was_until: before.until }],
            },
          }
        : { insert: { leases: [row] } },
    );
    if (outcome.conflict !== undefined) return false;
    own.set(row.tenant_id, row);
    forgetEnded(clock.now());
    return true;
  }

  /** Replaces a lease that cannot be read, because no server can have taken it. */
  async function replace(row: Row<'leases'>): Promise<boolean> {
    const { conflict } = await store.record({
      remove: { leases: [row] },
      insert: { leases: [row] },
    });
    if (conflict !== undefined) return false;
    own.set(row.tenant_id, row);
    return true;
  }

  async function take(tenant_id: TenantId, now: Instant): Promise<boolean> {
    const read = await quarantine.fetch(async () => ({
      before: await store.get('leases', { tenant_id, name }),
    }));
    const until = instantAfter(now, leaseMs);
    if (read === undefined) return replace({ tenant_id, name, holder, until });
    const { before } = read;
    const left = before ? before.until - now : 0;
    const isOfAnother = before !== undefined && before.holder !== holder;
    if (isOfAnother && left > 0 && left <= leaseMsMax) return false;
    return write({ tenant_id, name, holder, until }, before);
  }

  return {
    hold: async (tenant) => {
      const now = clock.now();
      const known = own.get(tenant);
      const left = known ? known.until - now : 0;
      if (left > renewalMs && left <= leaseMs) return 'still';
      if (known && (await write({ ...known, until: instantAfter(now, leaseMs) }, known)))
        return 'still';
      own.delete(tenant);
      return (await take(tenant, now)) && 'taken';
    },
    isHeld: (tenant) => {
      const left = (own.get(tenant)?.until ?? 0) - clock.now();
      return left > 0 && left <= leaseMsMax;
    },
    release: async () => {
      const ended = clock.now();
      const rows = [...own.values()];
      own.clear();
      for (const row of rows) {
        const over = { ...row, until: ended, was_holder: row.holder, was_until: row.until };
        await store.record({ amend: { leases: [over] } });
      }
    },
  };
}
