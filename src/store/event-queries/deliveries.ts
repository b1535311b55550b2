/** Queries about what is to be delivered: which tenants and webhooks something waits for, and what is due. */
import { sql } from 'kysely';
import type { Instant } from '../../base/clock.ts';
import type { DeliveryId, EventId, TenantId, WebhookId } from '../../base/ids.ts';
import type { TenantOrNumber } from '../queries/due.ts';
import { storedId, storedIn, storedTenant } from '../queries/stored.ts';
import { hasTenant, safeInteger } from '../safe-integers.ts';
import type { Query } from '../store.ts';
import type { Key, Row } from '../tables.ts';

/** Whether there is any webhook. */
export const anyWebhook: Query<{ readonly webhook_id: WebhookId }> = (db) =>
  db.selectFrom('webhooks').select('webhook_id').limit(1);

/** The tenants of events that wait to be dispatched. */
export const tenantsWithEvents: Query<{ readonly owner: TenantOrNumber }> = (db) =>
  db
    .selectFrom('events')
    .select(sql<TenantOrNumber>`tenant_id`.as('owner'))
    .where(sql<boolean>`sequence is null`)
    .where(hasTenant)
    .groupBy('tenant_id');

/** The next tenant with a delivery that waits, in the order of the column: one step in an index. */
export function nextTenantWaiting(
  after: TenantOrNumber | undefined,
): Query<{ readonly owner: TenantOrNumber }> {
  return (db) => {
    const next = db
      .selectFrom('deliveries')
      .select(sql<TenantOrNumber>`tenant_id`.as('owner'))
      .where(sql<boolean>`state = 'waiting'`)
      .where(hasTenant)
      .orderBy('tenant_id')
      .limit(1);
    return after === undefined ? next : next.where(sql<boolean>`tenant_id > ${after}`);
  };
}

/** When the first of a webhook's waiting deliveries is due; null for a time that the vault cannot have written. */
export function firstWaiting({
  tenant,
  webhook,
}: Pick<DueDeliveries, 'tenant' | 'webhook'>): Query<{ readonly due_at: Instant | null }> {
  return (db) =>
    db
      .selectFrom('deliveries')
      .select(safeInteger<Instant>('due_at').as('due_at'))
      .where('tenant_id', '=', storedTenant(tenant))
      .where('webhook_id', '=', storedId(webhook))
      // A literal rather than a parameter: otherwise neither engine uses the partial index.
      .where(sql<boolean>`state = 'waiting'`)
      .orderBy(sql`deliveries.due_at`)
      .limit(1);
}

export interface DueDeliveries {
  readonly tenant: TenantId;
  readonly webhook: WebhookId;
  readonly now: Instant;
  /** Of one entity none is given before those with a smaller sequence are over. */
  readonly ordered: boolean;
  readonly limit: number;
}

/** A row as it is stored, with null for integers that the vault cannot have written. */
export type DueDelivery = Row<'deliveries'> | (DeliveryTexts & ImpossibleIntegers);
type DeliveryTexts = Omit<Row<'deliveries'>, keyof ImpossibleIntegers>;
interface ImpossibleIntegers {
  readonly sequence: number | null;
  readonly created_at: Instant | null;
  readonly due_at: Instant | null;
}

/** What is due, those first that were due first. */
export function dueDeliveries({
  tenant,
  webhook,
  now,
  ordered,
  limit,
}: DueDeliveries): Query<DueDelivery> {
  return (db) => {
    const due = db
      .selectFrom('deliveries as d')
      .select(['d.tenant_id', 'd.webhook_id', 'd.delivery_id', 'd.event_id', 'd.type'])
      .select(['d.entity_id', 'd.state', 'd.attempts'])
      .select(safeInteger<number>('d.sequence').as('sequence'))
      .select(safeInteger<Instant>('d.created_at').as('created_at'))
      .select(safeInteger<Instant>('d.due_at').as('due_at'))
      .where('d.tenant_id', '=', storedTenant(tenant))
      .where('d.webhook_id', '=', storedIn<WebhookId>('deliveries', 'webhook_id', webhook))
      // A literal rather than a parameter: otherwise neither engine uses the partial index.
      .where(sql<boolean>`d.state = 'waiting'`)
      .where('d.due_at', '<=', now)
      .orderBy('d.due_at')
      .limit(limit);
    if (!ordered) return due;
    return due.where(
      sql<boolean>`not exists (select 1 from deliveries e where e.tenant_id = d.tenant_id
        and e.webhook_id = d.webhook_id and e.entity_id = d.entity_id and e.state = 'waiting'
        and e.sequence < d.sequence)`,
    );
  };
}

export interface EventBacklog {
  readonly waiting: number;
  readonly oldest: Instant | null;
}

/** Of all tenants, by webhook: deliveries that wait, for their first attempt or for another. */
export const deliveriesWaiting: Query<EventBacklog & { readonly webhook_id: WebhookId }> = (db) =>
  db
    .selectFrom('deliveries')
    .select('webhook_id')
    .select(sql<number>`count(*)`.as('waiting'))
    .select(sql<Instant | null>`min(${safeInteger('created_at')})`.as('oldest'))
    .where(sql<boolean>`state = 'waiting'`)
    .groupBy(['tenant_id', 'webhook_id']);

/** Events that were not dispatched. */
export const eventsWaiting: Query<EventBacklog> = (db) =>
  db
    .selectFrom('events')
    .select(sql<number>`count(*)`.as('waiting'))
    .select(sql<Instant | null>`min(${safeInteger('created_at')})`.as('oldest'))
    .where(sql<boolean>`sequence is null`);

interface PastDeliveries<I> {
  readonly tenant: TenantId;
  /** Exclusive. */
  readonly until: I;
  readonly limit: number;
}

/** Made before that, whatever became of them. */
export function deliveriesBefore({
  tenant,
  until,
  limit,
}: PastDeliveries<DeliveryId>): Query<Key<'deliveries'>> {
  return (db) =>
    db
      .selectFrom('deliveries')
      .select(['tenant_id', 'webhook_id', 'delivery_id'])
      .where('tenant_id', '=', storedTenant(tenant))
      .where('delivery_id', '<', storedId(until))
      .limit(limit);
}

export function eventsBefore({
  tenant,
  until,
  limit,
}: PastDeliveries<EventId>): Query<Key<'events'>> {
  return (db) =>
    db
      .selectFrom('events')
      .select(['tenant_id', 'event_id'])
      .where('tenant_id', '=', storedTenant(tenant))
      .where('event_id', '<', storedId(until))
      .limit(limit);
}

/** Of entities that are gone since. */
export function sequencesEndedBefore({
  tenant,
  until,
  limit,
}: PastDeliveries<Instant>): Query<Key<'event_sequences'>> {
  return (db) =>
    db
      .selectFrom('event_sequences')
      .select(['tenant_id', 'entity', 'entity_id'])
      .where('tenant_id', '=', storedTenant(tenant))
      .where('ended_at', '<', until)
      .limit(limit);
}

/** The webhooks that have deliveries, also those that are gone. */
export function webhooksWithDeliveries(
  tenant: TenantId,
): Query<{ readonly webhook_id: WebhookId }> {
  return (db) =>
    db
      .selectFrom('deliveries')
      .select('webhook_id')
      .distinct()
      .where('tenant_id', '=', storedTenant(tenant));
}

export function deliveriesOf(
  { tenant, webhook }: Pick<DueDeliveries, 'tenant' | 'webhook'>,
  limit: number,
): Query<Key<'deliveries'>> {
  return (db) =>
    db
      .selectFrom('deliveries')
      .select(['tenant_id', 'webhook_id', 'delivery_id'])
      .where('tenant_id', '=', storedTenant(tenant))
      .where('webhook_id', '=', storedId(webhook))
      .limit(limit);
}
