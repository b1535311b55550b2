/** Creating a webhook, with the secret that signs what is sent to it. */

import { newWebhookSecret } from '../../crypto/webhook-signatures.ts';
import type { Clock } from '../../lib/clock.ts';
import { newUuid, type WebhookId } from '../../lib/ids.ts';
import type { Random } from '../../lib/random.ts';
import type { AllowList } from '../../outbound/allow-list.ts';
import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import { openerFor } from '../../rules/openings.ts';
import type { Decide } from '../../rules/operation.ts';
import { requireRoom } from '../../rules/settings.ts';
import { webhookCount } from '../../store/event-queries/webhooks.ts';
import type { Store } from '../../store/store.ts';
import { parseWebhook, type WebhookRequest } from './request.ts';
import { webhookRow } from './row.ts';
import { viewWithSecret } from './view.ts';

export interface WebhookReading {
  readonly store: Store;
  readonly clock: Clock;
}

export interface WebhookWriting extends WebhookReading {
  readonly random: Random;
  /** The operator's own hosts, to which events may be sent as well. */
  readonly allowedHosts: AllowList;
}

/**
 * From the decision `unprocessable` where the tenant has all the webhooks that it may have.
 * @throws VaultError `validation_failed` naming every attribute that is wrong.
 */
export function createWebhook(
  { store, clock, random, allowedHosts }: WebhookWriting,
  caller: Caller,
  request: WebhookRequest,
): Decide {
  const { name, ordered = false, ...settings } = parseWebhook(request, allowedHosts);
  const { tenant, application } = caller;
  return async () => {
    const now = clock.now();
    requireRoom(tenant.quotas, 'webhook_limit', await store.select(webhookCount(tenant.id)));
    const id = newUuid<WebhookId>(random);
    const secrets = [{ text: newWebhookSecret(random), ends_at: null }];
    const row = webhookRow(
      tenant,
      { body: { ...settings, ordered, secrets }, random },
      {
        tenant_id: tenant.id,
        webhook_id: id,
        version: 1,
        name,
        status: 'enabled',
        created_by: application,
        created_at: now,
        modified_by: null,
        modified_at: null,
      },
    );
    return {
      change: {
        insert: { webhooks: [row] },
        entries: [entryOf(caller, now, { entity: 'webhook', id, operation: 'create' })],
      },
      reply: {
        status: 201,
        location: `/webhooks/${id}`,
        body: viewWithSecret(openerFor(caller, 'webhook:create'), row),
      },
    };
  };
}
