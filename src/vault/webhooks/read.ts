/** Reading webhooks: one, all of the tenant, and the types of events that they can ask for. */

import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import { openerFor } from '../../rules/openings.ts';
import type { Decide } from '../../rules/operation.ts';
import { allWebhooks } from '../../store/event-queries/webhooks.ts';
import { eventTypeNames } from '../events/types.ts';
import type { WebhookReading } from './create.ts';
import { webhookOf } from './find.ts';
import { viewWebhook } from './view.ts';

/** From the decision `not_found`, or `integrity` when the webhook was altered. */
export function readWebhook({ store, clock }: WebhookReading, caller: Caller, id: string): Decide {
  return async () => {
    const row = await webhookOf(store, caller.tenant.id, id);
    const fact = { entity: 'webhook', id: row.webhook_id, operation: 'read' } as const;
    return {
      change: { entries: [entryOf(caller, clock.now(), fact)] },
      reply: { status: 200, body: viewWebhook(openerFor(caller, 'webhook:read'), row) },
    };
  };
}

/** All on one page, newest first: a quota bounds them. From the decision `integrity` when one was altered. */
export function listWebhooks({ store, clock }: WebhookReading, caller: Caller): Decide {
  const { tenant } = caller;
  return async () => {
    const rows = await store.select(allWebhooks(tenant.id));
    const fact = { entity: 'webhook', id: tenant.id, operation: 'list' } as const;
    const opener = openerFor(caller, 'webhook:read');
    const page_size = Math.max(tenant.quotas.webhook_limit, rows.length);
    return {
      change: { entries: [entryOf(caller, clock.now(), fact)] },
      reply: {
        status: 200,
        body: { pagination: { page_size }, data: rows.map((row) => viewWebhook(opener, row)) },
      },
    };
  };
}

export function listEventTypes({ clock }: WebhookReading, caller: Caller): Decide {
  const fact = { entity: 'webhook', id: caller.tenant.id, operation: 'list event types' } as const;
  return async () => ({
    change: { entries: [entryOf(caller, clock.now(), fact)] },
    reply: { status: 200, body: eventTypeNames },
  });
}
