/** The tables of webhooks: what happened, and what is sent of it to whom. */
import type { Instant } from '../base/clock.ts';
import type { ApplicationId, DeliveryId, EventId, TenantId, WebhookId } from '../base/ids.ts';
import { bytes, id, integer, optional, proof, type TableSpec, tenant, text } from './columns.ts';

export const eventTables = {
  /** Keys of the vault itself, whatever the tenant, and the note of a rotation that is under way. */
  vault_keys: {
    key: ['name'],
    unique: {},
    columns: {
      /** What it is for, for example `webhooks.v1`, or `root.2` for the key that seals the others. */
      name: text(),
      /** Sealed; of `root.2`, wrapped by the root key. `access/keyrings/vault-key-rows.ts` lists the names. */
      private_key: bytes(),
      created_at: integer<Instant>(),
    },
  },
  webhooks: {
    key: ['tenant_id', 'webhook_id'],
    unique: {},
    columns: {
      tenant_id: text<TenantId>(),
      webhook_id: text<WebhookId>(),
      version: integer(),
      name: text(),
      status: text<'enabled' | 'disabled'>(),
      /** Sealed JSON of everything else, the address and the secrets among it. */
      body: bytes(),
      created_by: text<ApplicationId>(),
      created_at: integer<Instant>(),
      modified_by: optional(text<ApplicationId>()),
      modified_at: optional(integer<Instant>()),
      proof: proof(),
    },
  },
  /** Since when nothing has reached a webhook; no row while deliveries succeed. */
  webhook_failures: {
    key: ['tenant_id', 'webhook_id'],
    unique: {},
    owner: 'webhooks',
    columns: {
      tenant_id: text<TenantId>(),
      webhook_id: text<WebhookId>(),
      since: integer<Instant>(),
    },
  },
  /**
   * What happened, for webhooks: committed with the change, then dispatched, and stored for replays. The
   * database orders the rows as they are inserted, by a column `rowid` that only queries know.
   */
  events: {
    key: ['tenant_id', 'event_id'],
    unique: {},
    columns: {
      tenant_id: tenant(),
      /** A version 7 UUID of the time in `created_at`. */
      event_id: id<EventId>(),
      type: text(),
      entity_id: id(),
      created_at: integer<Instant>(),
      /** Its number among the events of the entity, from 1; null until it is dispatched. */
      sequence: optional(integer()),
      /** Over the id and the sequence; null until it is dispatched. */
      proof: optional(proof()),
      /** The application whose stored bytes it counts as; null where the event does not count. */
      charged_to: optional(id<ApplicationId>()),
      /** Sealed JSON of the data, the actor and the trace, bound to the columns before `sequence`. */
      body: bytes(),
    },
  },
  /** The sequence of each entity's latest event. */
  event_sequences: {
    key: ['tenant_id', 'entity', 'entity_id'],
    unique: {},
    columns: {
      tenant_id: tenant(),
      entity: text(),
      entity_id: id(),
      last: integer(),
      /** When the entity was deleted or expired; null while it exists. */
      ended_at: optional(integer<Instant>()),
    },
  },
  deliveries: {
    key: ['tenant_id', 'webhook_id', 'delivery_id'],
    unique: {},
    columns: {
      tenant_id: tenant(),
      webhook_id: id<WebhookId>(),
      /** A version 7 UUID of the time in `created_at`. */
      delivery_id: id<DeliveryId>(),
      event_id: id<EventId>(),
      /** Of the event. */
      type: text(),
      entity_id: id(),
      /** Of the event, by which deliveries are ordered; what is sent is read from the event. */
      sequence: integer(),
      created_at: integer<Instant>(),
      state: text<'waiting' | 'delivered' | 'failed'>(),
      /** Of the next attempt. */
      due_at: integer<Instant>(),
      /** JSON array of `{at, status, milliseconds, error}`. */
      attempts: text(),
    },
  },
  /** Which server holds which job of a tenant, and until when. */
  leases: {
    key: ['tenant_id', 'name'],
    unique: {},
    columns: {
      tenant_id: text<TenantId>(),
      name: text(),
      /** Of a server, made at its start. */
      holder: text(),
      until: integer<Instant>(),
    },
  },
} as const satisfies Record<string, TableSpec>;
