/** A delivery as it is stored: one event on its way to one webhook, and the attempts so far. */
import type { Instant } from '../../lib/clock.ts';
import type { DeliveryId, WebhookId } from '../../lib/ids.ts';
import type { Row } from '../../store/tables.ts';

export interface Attempt {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Absent where nobody responded. */
  readonly status?: number;
  readonly milliseconds: number;
  /** The kind of failure; absent after a success. */
  readonly error?: string;
}

interface NewDelivery {
  readonly id: DeliveryId;
  readonly webhook: WebhookId;
  readonly sequence: number;
  readonly now: Instant;
}

/** Due at once. */
export function deliveryRow(
  {
    tenant_id,
    event_id,
    type,
    entity_id,
  }: Pick<Row<'events'>, 'tenant_id' | 'event_id' | 'type' | 'entity_id'>,
  { id, webhook, sequence, now }: NewDelivery,
): Row<'deliveries'> {
  return {
    tenant_id,
    webhook_id: webhook,
    delivery_id: id,
    event_id,
    type,
    entity_id,
    sequence,
    created_at: now,
    state: 'waiting',
    due_at: now,
    attempts: '[]',
  };
}

export function attemptsOf({ attempts }: Pick<Row<'deliveries'>, 'attempts'>): readonly Attempt[] {
  const parsed: readonly Attempt[] = JSON.parse(attempts);
  return parsed;
}
