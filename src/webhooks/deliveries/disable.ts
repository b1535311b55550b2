/** Disables a webhook whose receiver has been unreachable for too long. */

import { type Clock, day } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import { systemEntry } from '../../rules/log-entries.ts';
import { openerOf } from '../../rules/openings.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Store } from '../../store/store.ts';
import { openWebhook, webhookRow } from '../resource.ts';
import type { Webhook } from './webhooks-of.ts';

/** A webhook is disabled after failing for this long without a success. */
export const failingMsMax = 5 * day;

export interface DisableTools {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * Disables the webhook, unless it changed since it was read: a later change takes precedence. Waiting deliveries
 * stay.
 */
export async function disable(
  { store, clock, random }: DisableTools,
  tenant: Tenant,
  { row }: Webhook,
): Promise<void> {
  const version = row.version + 1;
  const body = openWebhook(openerOf('deliver events', tenant), row).reveal();
  const disabled = webhookRow(tenant, { body, random }, { ...row, version, status: 'disabled' });
  const fact = { entity: 'webhook', id: row.webhook_id, operation: 'disable' } as const;
  await store.commit({
    replace: { webhooks: [disabled] },
    entries: [systemEntry({ tenant: tenant.id, at: clock.now(), ...fact })],
  });
}
