/** What became of attempts, recorded by the batch: of those that end while others are recorded, one commit has all. */
import type { TenantId } from '../../base/ids.ts';
import type { Amendment } from '../../store/amendments.ts';
import { byTenant } from '../../store/per-tenant/record.ts';
import type { Store } from '../../store/store.ts';

/** In one transaction: other commits wait for it. */
export const settledTogetherMax = 200;

/**
 * From one batch to the next. A batch costs a write to the disk and four threads their sleep, so at a few hundred
 * deliveries a second it would cost more than what it records.
 */
const batchMs = 10;

/** Resolves once the delivery is recorded, or was changed by somebody else, which then counts. */
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

/** The first one is recorded at once. */
export function createSettlements({ store, pause }: SettlementTools): RecordDelivery {
  const waiting: WaitingSettlement[] = [];
  let isBusy = false;

  /** A conflict says that a delivery of them is gone, or was settled by another server. */
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
