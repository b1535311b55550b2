/** Changing a webhook: replaced as a whole, given another secret, or deleted. */

import { newWebhookSecret } from '../../crypto/webhook-signatures.ts';
import { day, type Instant } from '../../lib/clock.ts';
import type { Caller } from '../../rules/caller.ts';
import { entryOf, type Fact } from '../../rules/log-entries.ts';
import { openerFor } from '../../rules/openings.ts';
import type { Decide } from '../../rules/operation.ts';
import type { Change } from '../../store/change.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import type { WebhookReading, WebhookWriting } from './create.ts';
import { webhookOf } from './find.ts';
import { parseWebhook, type WebhookUpdate } from './request.ts';
import { openWebhook, type WebhookBody, webhookRow } from './row.ts';
import { viewWebhook, viewWithSecret } from './view.ts';

/** How long the secret before still signs next to the new one. */
export const secretOverlapMs = day;

/**
 * `status` and `ordered` stay where the request does not say them. From the decision `not_found`, or
 * `integrity` when the webhook was altered.
 * @throws VaultError `validation_failed` naming every attribute that is wrong.
 */
export function replaceWebhook(
  tools: WebhookWriting,
  caller: Caller,
  { id, webhook }: { readonly id: string; readonly webhook: WebhookUpdate },
): Decide {
  const settings = parseWebhook(webhook, tools.allowedHosts);
  const { tenant } = caller;
  return async () => {
    const now = tools.clock.now();
    const row = await webhookOf(tools.store, tenant.id, id);
    const opener = openerFor(caller, 'webhook:update');
    const { secrets, ordered } = openWebhook(opener, row).reveal();
    const { name, ...others } = settings;
    const updated = following(tools, caller, {
      row: { ...row, name, status: webhook.status ?? row.status },
      body: { ...others, ordered: settings.ordered ?? ordered, secrets },
      now,
    });
    const isEnabledAgain = row.status === 'disabled' && updated.status === 'enabled';
    const remove = isEnabledAgain ? await failuresOf(tools.store, row) : {};
    const change = changeTo(caller, { updated, now, operation: 'update' });
    return {
      change: { ...change, remove },
      reply: { status: 200, body: viewWebhook(opener, updated) },
    };
  };
}

/**
 * The secret before signs for another day, next to the new one; those before it sign no more. From the
 * decision `not_found`, or `integrity` when the webhook was altered.
 */
export function rotateSecret(tools: WebhookWriting, caller: Caller, id: string): Decide {
  const { tenant } = caller;
  return async () => {
    const now = tools.clock.now();
    const row = await webhookOf(tools.store, tenant.id, id);
    const opener = openerFor(caller, 'webhook:update');
    const { secrets, ...settings } = openWebhook(opener, row).reveal();
    const [newest] = secrets;
    const made = { text: newWebhookSecret(tools.random), ends_at: null };
    const before = newest ? [{ text: newest.text, ends_at: now + secretOverlapMs }] : [];
    const body = { ...settings, secrets: [made, ...before] };
    const updated = following(tools, caller, { row, body, now });
    return {
      change: changeTo(caller, { updated, now, operation: 'rotate secret' }),
      reply: { status: 200, body: viewWithSecret(opener, updated) },
    };
  };
}

/** From the decision `not_found`. A webhook that was altered can be deleted as well. */
export function deleteWebhook(
  { store, clock }: WebhookReading,
  caller: Caller,
  id: string,
): Decide {
  return async () => {
    const { tenant_id, webhook_id, version } = await webhookOf(store, caller.tenant.id, id);
    const fact = { entity: 'webhook', id: webhook_id, operation: 'delete' } as const;
    const now = clock.now();
    return {
      change: {
        remove: { webhooks: [{ tenant_id, webhook_id, version }] },
        insert: { due_work: [{ tenant_id, work: 'deliveries', due_at: now }] },
        entries: [entryOf(caller, now, fact)],
      },
      reply: { status: 204 },
    };
  };
}

interface NextVersion {
  readonly row: Row<'webhooks'>;
  readonly body: WebhookBody;
  readonly now: Instant;
}

function following(
  { random }: Pick<WebhookWriting, 'random'>,
  { tenant, application }: Caller,
  { row, body, now }: NextVersion,
): Row<'webhooks'> {
  const version = row.version + 1;
  const modified = { version, modified_by: application, modified_at: now };
  return webhookRow(tenant, { body, random }, { ...row, ...modified });
}

interface WebhookChange {
  readonly updated: Row<'webhooks'>;
  readonly now: Instant;
  readonly operation: Fact<'webhook'>['operation'];
}

function changeTo(caller: Caller, { updated, now, operation }: WebhookChange): Change {
  const fact = { entity: 'webhook', id: updated.webhook_id, operation } as const;
  return { replace: { webhooks: [updated] }, entries: [entryOf(caller, now, fact)] };
}

/** The days after which a webhook is disabled begin again. */
async function failuresOf(
  store: Store,
  { tenant_id, webhook_id }: Row<'webhooks'>,
): Promise<NonNullable<Change['remove']>> {
  const key = { tenant_id, webhook_id };
  return (await store.get('webhook_failures', key)) ? { webhook_failures: [key] } : {};
}
