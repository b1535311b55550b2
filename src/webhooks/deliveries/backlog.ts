/** The number of waiting deliveries, for the operator: in the whole database, and by webhook. */
import { type Clock, type Instant, second } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import {
  deliveriesWaiting,
  type EventBacklog,
  eventsWaiting,
} from '../../store/event-queries/deliveries.ts';
import type { Store } from '../../store/store.ts';

/** The webhooks with the most waiting deliveries have their own label. */
export const webhooksLabeledMax = 500;
const otherLabel = 'other';

export interface WaitingDeliveries {
  readonly count: number;
  /** The age of the oldest. */
  readonly oldestSeconds: number;
}

export interface WaitingOfAll extends WaitingDeliveries {
  /** Keyed by webhook id. Webhooks beyond {@link webhooksLabeledMax} share one entry. */
  readonly byWebhook: ReadonlyMap<string, WaitingDeliveries>;
}

/** Error codes of a store that is temporarily unavailable. */
const inTrouble: ReadonlySet<string> = new Set(['unavailable', 'overloaded']);

/**
 * Concurrent callers share one read. `undefined` while the store is not available, because then the operator needs
 * all other metrics immediately.
 */
export function createBacklog({
  store,
  clock,
}: {
  readonly store: Pick<Store, 'scan' | 'hosts'>;
  readonly clock: Clock;
}): () => Promise<WaitingOfAll | undefined> {
  let reading: Promise<WaitingOfAll | undefined> | undefined;

  async function readIfAvailable(): Promise<WaitingOfAll | undefined> {
    const hosts = await store.hosts?.();
    if (hosts?.every(({ isWritable }) => !isWritable)) return undefined;
    try {
      return await read();
    } catch (error) {
      if (error instanceof VaultError && inTrouble.has(error.code)) return undefined;
      throw error;
    }
  }

  async function read(): Promise<WaitingOfAll> {
    const [events, deliveries] = await Promise.all([
      store.scan(eventsWaiting, 'vault'),
      store.scan(deliveriesWaiting, 'vault'),
    ]);
    const now = clock.now();
    const byCount = deliveries.toSorted((one, other) => other.waiting - one.waiting);
    const labeled = byCount.slice(0, webhooksLabeledMax);
    const others = byCount.slice(webhooksLabeledMax);
    const byWebhook = new Map(labeled.map((one) => [one.webhook_id as string, sumOf([one], now)]));
    if (others.length > 0) byWebhook.set(otherLabel, sumOf(others, now));
    return { ...sumOf([...events, ...deliveries], now), byWebhook };
  }

  return () => {
    reading ??= readIfAvailable().finally(() => {
      reading = undefined;
    });
    return reading;
  };
}

function sumOf(parts: readonly EventBacklog[], now: Instant): WaitingDeliveries {
  let count = 0;
  let since: number = now;
  for (const { waiting, oldest } of parts) {
    count += waiting;
    since = Math.min(since, oldest ?? now);
  }
  return { count, oldestSeconds: (now - since) / second };
}
