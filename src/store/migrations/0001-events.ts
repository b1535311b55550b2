/** The part of migration 1 that is about webhooks, events and their deliveries. */
import type { ColumnTypes } from './column-types.ts';

export function events({
  text,
  integer,
  bytes,
  tenant,
  rowid,
  byRowid,
  strict,
}: ColumnTypes): string[] {
  return [
    `create table vault_keys (
      name ${text} not null,
      private_key ${bytes} not null,
      created_at ${integer} not null,
      constraint vault_keys_key primary key (name)
    ) ${strict}`,
    `create table webhooks (
      tenant_id ${text} not null,
      webhook_id ${text} not null,
      version ${integer} not null,
      name ${text} not null,
      status ${text} not null,
      body ${bytes} not null,
      created_by ${text} not null,
      created_at ${integer} not null,
      modified_by ${text},
      modified_at ${integer},
      proof ${text} not null,
      constraint webhooks_key primary key (tenant_id, webhook_id)
    ) ${strict}`,
    `create table webhook_failures (
      tenant_id ${text} not null,
      webhook_id ${text} not null,
      since ${integer} not null,
      constraint webhook_failures_key primary key (tenant_id, webhook_id)
    ) ${strict}`,
    'create index webhook_failures_by_owner on webhook_failures (tenant_id, webhook_id)',
    `create table events (
      ${rowid}
      tenant_id ${tenant} not null,
      event_id ${bytes} not null,
      type ${text} not null,
      entity_id ${bytes} not null,
      created_at ${integer} not null,
      sequence ${integer},
      proof ${text},
      body ${bytes} not null,
      constraint events_key primary key (tenant_id, event_id)
    ) ${strict}`,
    // What waits to be dispatched, as it was inserted. An event leaves it within a second.
    `create index events_waiting on events (tenant_id${byRowid}) where sequence is null`,
    `create table event_sequences (
      tenant_id ${tenant} not null,
      entity ${text} not null,
      entity_id ${bytes} not null,
      last ${integer} not null,
      ended_at ${integer},
      constraint event_sequences_key primary key (tenant_id, entity, entity_id)
    ) ${strict}`,
    'create index event_sequences_by_end on event_sequences (tenant_id, ended_at) where ended_at is not null',
    `create table deliveries (
      tenant_id ${tenant} not null,
      webhook_id ${bytes} not null,
      delivery_id ${bytes} not null,
      event_id ${bytes} not null,
      type ${text} not null,
      entity_id ${bytes} not null,
      sequence ${integer} not null,
      created_at ${integer} not null,
      state ${text} not null,
      due_at ${integer} not null,
      attempts ${text} not null,
      constraint deliveries_key primary key (tenant_id, webhook_id, delivery_id)
    ) ${strict}`,
    "create index deliveries_due on deliveries (tenant_id, webhook_id, due_at) where state = 'waiting'",
    // For webhooks that receive the events of an entity in order.
    `create index deliveries_in_order on deliveries (tenant_id, webhook_id, entity_id, sequence)
      where state = 'waiting'`,
    `create table leases (
      tenant_id ${text} not null,
      name ${text} not null,
      holder ${text} not null,
      until ${integer} not null,
      constraint leases_key primary key (tenant_id, name)
    ) ${strict}`,
  ];
}
