/** Webhooks for tests: requests of the tenant's management key, and what the outbox holds. */

import assert from 'node:assert/strict';
import { sql } from 'kysely';
import type { TenantId } from '../../src/base/ids.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { storedIn } from '../../src/store/queries/stored.ts';
import type { Row } from '../../src/store/tables.ts';
import { type EventBody, openEvent } from '../../src/webhooks/events/event-row.ts';
import { eventTypeNames } from '../../src/webhooks/events/types.ts';
import { testOpener } from './openings.ts';
import type { Given, TestTenant } from './tenant.ts';
import type { Received, Sent } from './vault.ts';

export const leastWebhook: Given = {
  name: 'Orders',
  url: 'https://receiver.example.com/events',
  events: ['token.created'],
};

/** One that asks for everything. */
export const wholeWebhook: Given = { ...leastWebhook, events: eventTypeNames };

/** Of the key that manages the tenant, unless the request has another. */
export function sendWebhook(
  tenant: TestTenant,
  method: string,
  path: string,
  sent: Sent = {},
): Promise<Received> {
  return tenant.send(method, `/webhooks${path}`, { key: tenant.managementKey, ...sent });
}

/** Creates a webhook and fails unless it was created. */
export async function createWebhook(tenant: TestTenant, given: Given = {}) {
  const created = await sendWebhook(tenant, 'POST', '', { body: { ...leastWebhook, ...given } });
  assert.equal(created.status, 201, created.text);
  return created.body;
}

export interface StoredEvent
  extends Pick<Row<'events'>, 'event_id' | 'type' | 'entity_id' | 'created_at'> {
  readonly body: EventBody;
}

/** All events of the tenant, opened, in the order in which their changes were committed. */
export async function eventsOf({ vault, id }: TestTenant): Promise<readonly StoredEvent[]> {
  const { store, tenants } = vault.running.vault;
  const tenant = await tenants.find(id);
  assert.ok(tenant);
  const rows = await store.select((db) =>
    db
      .selectFrom('events')
      .select(['event_id', 'type', 'entity_id', 'created_at', 'body'])
      .where('tenant_id', '=', storedIn<TenantId>('events', 'tenant_id', id))
      .orderBy(sql`rowid`)
      .orderBy('event_id'),
  );
  return rows.map((row) => ({ ...row, body: openEvent(testOpener(tenant), row) }));
}

/** What the newest event of a type says. */
export async function newestOf(tenant: TestTenant, type: string): Promise<JsonObject> {
  const event = (await eventsOf(tenant)).findLast((one) => one.type === type);
  assert.ok(event, type);
  return event.body.data;
}
