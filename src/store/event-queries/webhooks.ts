/** Queries about webhooks and their deliveries. */
import { sql } from 'kysely';
import type { DeliveryId, TenantId, WebhookId } from '../../base/ids.ts';
import { storedId, storedTenant } from '../queries/stored.ts';
import type { Query } from '../store.ts';
import type { Unproven } from '../stored-row.ts';
import type { Row } from '../tables.ts';

/** Those that events are sent to. There are few of a tenant. */
export function enabledWebhooks(tenant: TenantId): Query<Unproven<'webhooks'>> {
  return (db) =>
    db
      .selectFrom('webhooks')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where('status', '=', 'enabled');
}

/** Newest first. */
export function allWebhooks(tenant: TenantId): Query<Unproven<'webhooks'>> {
  return (db) =>
    db
      .selectFrom('webhooks')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .orderBy('created_at', 'desc')
      .orderBy('webhook_id', 'desc');
}

export function webhookCount(tenant: TenantId): Query<{ readonly count: number }> {
  return (db) =>
    db
      .selectFrom('webhooks')
      .where('tenant_id', '=', tenant)
      .select((eb) => eb.fn.countAll<number>().as('count'));
}

/** Deliveries of a webhook that wait, counted up to that many. */
export function waitingUpTo(
  { tenant, webhook }: Pick<DeliveryPage, 'tenant' | 'webhook'>,
  max: number,
): Query<{ readonly count: number }> {
  return (db) =>
    db
      .selectFrom(
        db
          .selectFrom('deliveries')
          .select('delivery_id')
          .where('tenant_id', '=', storedTenant(tenant))
          .where('webhook_id', '=', storedId(webhook))
          // A literal rather than a parameter: otherwise neither engine uses the partial index.
          .where(sql<boolean>`state = 'waiting'`)
          .limit(max)
          .as('waiting'),
      )
      .select((eb) => eb.fn.countAll<number>().as('count'));
}

export interface DeliveryPage {
  readonly tenant: TenantId;
  readonly webhook: WebhookId;
  readonly state: Row<'deliveries'>['state'] | undefined;
  /** Continues after this delivery. */
  readonly before: DeliveryId | undefined;
  readonly limit: number;
}

/** Newest first. */
export function deliveryPage(page: DeliveryPage): Query<Row<'deliveries'>> {
  const { tenant, webhook, state, before, limit } = page;
  return (db) => {
    let select = db
      .selectFrom('deliveries')
      .selectAll()
      .where('tenant_id', '=', storedTenant(tenant))
      .where('webhook_id', '=', storedId(webhook))
      .orderBy('delivery_id', 'desc')
      .limit(limit);
    if (state) select = select.where('state', '=', state);
    return before ? select.where('delivery_id', '<', storedId(before)) : select;
  };
}
