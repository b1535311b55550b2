/** The webhooks of a tenant as deliveries need them: opened, and remembered until one of them changes. */

import { type Clock, second } from '../../base/clock.ts';
import { ExpiringMap } from '../../base/expiring-map.ts';
import type { WebhookId } from '../../base/ids.ts';
import { Secret } from '../../base/secret.ts';
import { type WebhookSecretKey, webhookSecretKey } from '../../keys/webhook-signatures.ts';
import { openerOf } from '../../rules/openings.ts';
import type { Quarantine } from '../../rules/quarantine.ts';
import type { Tenant } from '../../rules/tenant.ts';
import { allWebhooks } from '../../store/event-queries/webhooks.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { openWebhook } from '../resource.ts';

export interface Webhook {
  readonly id: WebhookId;
  readonly row: Row<'webhooks'>;
  readonly ordered: boolean;
  /** Where its events are sent. */
  readonly url: Secret<URL>;
  /** Of its secrets: of the one that signs, which has no end, and of the one before a rotation. */
  readonly keys: readonly { readonly key: WebhookSecretKey; readonly ends_at: number | null }[];
  /** Whether it is enabled and asks for events of the type. */
  wants(type: string): boolean;
}

/** What another server changed takes effect within that. */
const staleMsMax = second;
const tenantsCached = 1_000;

export interface WebhooksTools {
  readonly store: Store;
  readonly clock: Clock;
  /** For webhooks that were altered outside the vault, which get nothing. */
  readonly quarantine: Quarantine;
}

/** Webhooks that were altered are left out. */
export interface Webhooks {
  /** As they were a moment ago. */
  of(tenant: Tenant): Promise<readonly Webhook[]>;
  /** Also what another server committed before this was called. */
  now(tenant: Tenant): Promise<readonly Webhook[]>;
}

export function createWebhooks({ store, clock, quarantine }: WebhooksTools): Webhooks {
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
    const rows = await store.select(allWebhooks(tenant.id));
    const webhooks = rows.flatMap((row) => quarantine.read(() => open(tenant, row)) ?? []);
    recent.set(tenant.id, webhooks, reading);
    return webhooks;
  }

  const of = async (tenant: Tenant) => recent.get(tenant.id) ?? (await read(tenant));
  // An embedded database has one server, which notices at once whatever is committed.
  return { of, now: store.engine === 'sqlite' ? of : read };
}
