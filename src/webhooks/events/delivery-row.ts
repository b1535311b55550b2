/** The stored form of a delivery: one event for one webhook, and the attempts so far. */
import type { Instant } from '../../base/clock.ts';
import type { DeliveryId, TenantId, WebhookId } from '../../base/ids.ts';
import { isObject, type Json } from '../../base/json.ts';
import type { QueueOfTenant } from '../../queue/notes.ts';
import type { Row } from '../../store/tables.ts';

/** The queue of a tenant's deliveries, as notes name it. */
export const waitingOf = (tenant: TenantId): QueueOfTenant => ({
  tenant,
  work: 'waiting deliveries',
});

export interface Attempt {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Absent if there was no response. */
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

/** Due immediately. */
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

/** Only attempts in the form that the vault writes: an attacker with write access may have stored anything. */
export function attemptsOf({ attempts }: Pick<Row<'deliveries'>, 'attempts'>): readonly Attempt[] {
  const parsed = parsedOf(attempts);
  return Array.isArray(parsed) ? parsed.filter(isAttempt) : [];
}

function parsedOf(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

function isAttempt(value: unknown): value is Attempt {
  if (!isObject(value)) return false;
  const { at, status, milliseconds, error } = value;
  return (
    isTime(at) &&
    Number.isFinite(milliseconds) &&
    (status === undefined || Number.isInteger(status)) &&
    (error === undefined || typeof error === 'string')
  );
}

function isTime(at: unknown): boolean {
  return Number.isSafeInteger(at) && !Number.isNaN(new Date(at as number).getTime());
}
