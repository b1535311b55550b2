/** Leases: of several servers on one database, one at a time delivers the events of a tenant. */
import { type Clock, type Instant, instantAfter, second } from '../../base/clock.ts';
import type { TenantId } from '../../base/ids.ts';
import type { Quarantine } from '../../rules/quarantine.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';

/** A server that was killed is followed by another one after that. */
export const leaseMs = 20 * second;

/** No server takes a lease for longer, whatever its clock says: then a clock was set back, or the row was altered. */
export const leaseMsMax = 3 * leaseMs;

/** A lease is renewed once less than that is left of it. */
const renewalMs = 12 * second;

const name = 'deliveries';

/** Leases that are remembered whether they have ended or not. */
const leasesKept = 1_000;

export interface Leases {
  /** Whether the tenant's events are this server's to deliver, for some seconds at least. */
  hold(tenant: TenantId): Promise<boolean>;
  /** The same without a look at the database. */
  isHeld(tenant: TenantId): boolean;
  /** Ends all leases, so that another server need not wait. */
  release(): Promise<void>;
}

export interface LeaseTools {
  readonly store: Store;
  readonly clock: Clock;
  /** Of this server, and of no other. */
  readonly holder: string;
  /** For leases that were altered outside the vault. */
  readonly quarantine: Quarantine;
}

export function createLeases({ store, clock, holder, quarantine }: LeaseTools): Leases {
  const own = new Map<TenantId, Row<'leases'>>();
  let roomy = leasesKept;

  /** Of tenants that had events once: what is over is forgotten each time that twice as many are known. */
  function forgetEnded(now: Instant): void {
    if (own.size < roomy) return;
    for (const [tenant, { until }] of own) if (until <= now) own.delete(tenant);
    roomy = Math.max(leasesKept, 2 * own.size);
  }

  /** False when somebody else was faster. */
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

  /** No server can have taken a lease that cannot be read. */
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
      if (left > renewalMs && left <= leaseMs) return true;
      if (known && (await write({ ...known, until: instantAfter(now, leaseMs) }, known)))
        return true;
      own.delete(tenant);
      return take(tenant, now);
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
