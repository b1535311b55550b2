/** The webhooks of a tenant for deliveries: opened, and cached until one of them changes. */

import { type Clock, second } from '../../base/clock.ts';
import { ExpiringMap } from '../../base/expiring-map.ts';
import type { WebhookId } from '../../base/ids.ts';
import { Secret } from '../../base/secret.ts';
import { type WebhookSecretKey, webhookSecretKey } from '../../keys/webhook-signatures.ts';
import { openerOf } from '../../rules/openings.ts';
import { provenRows } from '../../rules/proven-row.ts';
import type { Tenant } from '../../rules/tenant.ts';
import { allWebhooks } from '../../store/event-queries/webhooks.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { openWebhook } from '../resource.ts';

export interface Webhook {
  readonly id: WebhookId;
  readonly row: Row<'webhooks'>;
  readonly ordered: boolean;
  /** The destination of its events. */
  readonly url: Secret<URL>;
  /** Signing keys: the current one, which has no end, and the previous one after a rotation. */
  readonly keys: readonly { readonly key: WebhookSecretKey; readonly ends_at: number | null }[];
  /** Whether the webhook is enabled and subscribes to the type. */
  wants(type: string): boolean;
}

/** Changes on another server take effect within this time. */
const staleMsMax = second;
const tenantsCached = 1_000;

export interface WebhooksTools {
  readonly store: Store;
  readonly clock: Clock;
}

/** Webhooks that were altered outside the vault are left out, and get no events. */
export interface Webhooks {
  /** May be slightly out of date. */
  of(tenant: Tenant): Promise<readonly Webhook[]>;
  /** Includes everything that another server committed before this call. */
  now(tenant: Tenant): Promise<readonly Webhook[]>;
}

export function createWebhooks({ store, clock }: WebhooksTools): Webhooks {
  const recent = new ExpiringMap<string, readonly Webhook[]>({
    clock,
    ageMsMax: staleMsMax,
    entriesMax: tenantsCached,
    epoch: () => store.epochs.now('webhooks'),
  });

  function open(tenant: Tenant, row: Row<'webhooks'>): Webhook {
    const opener = openerOf('deliver events', tenant);
    const { events, ordered, url, secrets } = openWebhook(opener, row).reveal();
    const types = new Set<string>(row.status === 'enabled' ? events : []);
    return {
      ...{ id: row.webhook_id, row, ordered },
      url: new Secret(new URL(url)),
      keys: secrets.map(({ text, ends_at }) => ({ key: webhookSecretKey(text), ends_at })),
      wants: (type) => types.has(type),
    };
  }

  async function read(tenant: Tenant): Promise<readonly Webhook[]> {
    const reading = recent.reading();
    const found = await store.select(allWebhooks(tenant.id));
    const { rows } = provenRows(tenant, 'webhooks', found);
    const webhooks = rows.flatMap((row) => tenant.quarantine.read(() => open(tenant, row)) ?? []);
    recent.set(tenant.id, webhooks, reading);
    return webhooks;
  }

  const of = async (tenant: Tenant) => recent.get(tenant.id) ?? (await read(tenant));
  // An embedded database has one server, which notices every commit immediately.
  return { of, now: store.engine === 'sqlite' ? of : read };
}
