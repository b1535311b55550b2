/** Which logs have grown: noted in the database before the entries are, so that no crash hides one. */
import { type Clock, minute } from '../base/clock.ts';
import { ExpiringMap } from '../base/expiring-map.ts';
import type { TenantId } from '../base/ids.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';

/** A note covers all commits within this time, by any server. */
const noteMs = 10 * minute;

/** After which nothing is under way any more that a note covers. */
export const noteEndsMs = noteMs + minute;

/** Tenants whose notes a thread caches. An evicted tenant costs another note. */
const notesMax = 50_000;

export interface Growth {
  /** Whether a note covers a commit for the tenant now. */
  isNoted(tenant: TenantId): boolean;
  /** Resolves once it is. */
  note(tenant: TenantId): Promise<void>;
}

export interface GrowthTools {
  readonly store: Pick<Store, 'record'>;
  readonly clock: Clock;
  /** Called with each note that is stored. */
  readonly onNoted: (note: Row<'due_work'>) => void;
}

export function createGrowth({ store, clock, onNoted }: GrowthTools): Growth {
  const noted = new ExpiringMap<TenantId, true>({
    clock,
    ageMsMax: noteMs,
    entriesMax: notesMax,
  });
  const underWay = new Map<TenantId, Promise<void>>();

  async function write(tenant_id: TenantId): Promise<void> {
    const reading = noted.reading();
    const note = { tenant_id, work: 'checkpoint', due_at: clock.now() } as const;
    // On a conflict, another thread wrote the same note in the same millisecond.
    await store.record({ insert: { due_work: [note] } });
    onNoted(note);
    noted.set(tenant_id, true, reading);
  }

  return {
    isNoted: (tenant) => noted.get(tenant) !== undefined,
    note: (tenant) => {
      const known = underWay.get(tenant);
      if (known) return known;
      const written = write(tenant).finally(() => underWay.delete(tenant));
      underWay.set(tenant, written);
      return written;
    },
  };
}
