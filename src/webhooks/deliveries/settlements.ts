/** Records outcomes in batches: all attempts that end during one commit share the next commit. */
import type { TenantId } from '../../base/ids.ts';
import type { Amendment } from '../../store/amendments.ts';
import { byTenant } from '../../store/per-tenant/record.ts';
import type { Store } from '../../store/store.ts';

/** The batch size. Other commits wait for the transaction. */
export const settledTogetherMax = 200;

/**
 * The delay between batches. A batch costs a disk write and wakes four threads, so at a few hundred deliveries per
 * second immediate commits would cost more than the rows that they write.
 */
const batchMs = 10;

/** Resolves once the delivery is recorded, or was changed by another writer, whose change takes precedence. */
export type RecordDelivery = (amendment: Amendment<'deliveries'>) => Promise<void>;

export interface SettlementTools {
  readonly store: Pick<Store, 'record'>;
  readonly pause: (ms: number) => Promise<void>;
}

interface WaitingSettlement {
  readonly tenant_id: TenantId;
  readonly amendment: Amendment<'deliveries'>;
  resolve(): void;
  reject(error: unknown): void;
}

/** The first outcome is recorded immediately. */
export function createSettlements({ store, pause }: SettlementTools): RecordDelivery {
  const waiting: WaitingSettlement[] = [];
  let isBusy = false;

  /** On a conflict, one of the deliveries is gone, or another server has recorded it. */
  async function record(deliveries: readonly Amendment<'deliveries'>[]): Promise<void> {
    const { conflict } = await store.record({ amend: { deliveries } });
    if (conflict === undefined || deliveries.length === 1) return;
    await Promise.all(deliveries.map((one) => store.record({ amend: { deliveries: [one] } })));
  }

  async function recordBatch(batch: readonly WaitingSettlement[]): Promise<void> {
    try {
      await record(batch.map(({ amendment }) => amendment));
      for (const { resolve } of batch) resolve();
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  async function recordAll(): Promise<void> {
    isBusy = true;
    while (waiting.length > 0) {
      const paused = pause(batchMs);
      await byTenant(waiting.splice(0, settledTogetherMax), recordBatch);
      if (waiting.length < settledTogetherMax) await paused;
    }
    isBusy = false;
  }

  return (amendment) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    waiting.push({ tenant_id: amendment.tenant_id, amendment, resolve, reject });
    if (!isBusy) void recordAll();
    return promise;
  };
}
