/** Webhooks as a stored resource, their secrets, and the types of events to which they can subscribe. */

import { type Clock, day } from '../base/clock.ts';
import { newUuid, type WebhookId } from '../base/ids.ts';
import type { Random } from '../base/random.ts';
import type { Secret } from '../base/secret.ts';
import { newWebhookSecret } from '../keys/webhook-signatures.ts';
import type { AllowList } from '../outbound/allow-list.ts';
import { newNote } from '../queue/notes.ts';
import type { Caller } from '../rules/caller.ts';
import { entryOf } from '../rules/log-entries.ts';
import { type Opener, openerFor, type Resealer } from '../rules/openings.ts';
import type { Decide } from '../rules/operation.ts';
import { type Keys, proven, requireProven } from '../rules/proven-row.ts';
import { openSettings, resealSettings, sealSettings } from '../rules/sealed-settings.ts';
import { requireRoom } from '../rules/settings.ts';
import {
  type ListTools,
  listed,
  nextVersion,
  type ReplacedResource,
  rowOf,
  viewHistory,
} from '../rules/stored-resource.ts';
import { allWebhooks, webhookCount } from '../store/event-queries/webhooks.ts';
import type { Store } from '../store/store.ts';
import type { Unproven } from '../store/stored-row.ts';
import type { Row } from '../store/tables.ts';
import {
  parseWebhook,
  type WebhookBody,
  type WebhookRequest,
  type WebhookSettings,
} from './definition.ts';
import { waitingOf } from './events/delivery-row.ts';
import { eventTypeNames } from './events/types.ts';

export interface WebhookReading {
  readonly store: Store;
  readonly clock: Clock;
}

export interface WebhookWriting extends WebhookReading {
  readonly random: Random;
  /** The operator's own hosts, to which events may also be sent. */
  readonly allowedHosts: AllowList;
}

type WebhookRow = Row<'webhooks'>;
type WebhookResource = ReplacedResource<'webhooks', WebhookRequest, WebhookSettings, WebhookBody>;

/** If a request that replaces a webhook omits `status` or `ordered`, they stay unchanged. */
export function webhookResource(tools: WebhookWriting): WebhookResource {
  const { store, clock, random, allowedHosts } = tools;
  return {
    store,
    clock,
    table: 'webhooks',
    path: '/webhooks',
    open: (caller, row) => openWebhook(openerFor(caller, 'webhook:update'), row).reveal(),
    show: (caller, row, operation) =>
      viewWebhook(row, openWebhook(openerFor(caller, `webhook:${operation}`), row).reveal()),
    parse: (request) => parseWebhook(request, allowedHosts),

    requireRoom: async ({ id, quotas }) =>
      requireRoom(quotas, 'webhook_limit', await store.select(webhookCount(id))),

    async make({ tenant }, columns, { name, status: _status, ordered = false, ...settings }) {
      const secrets = [{ text: newWebhookSecret(random), ends_at: null }];
      const body = { ...settings, ordered, secrets };
      const webhook_id = newUuid<WebhookId>(random);
      const unsealed = { ...columns, webhook_id, name, status: 'enabled' } as const;
      const row = webhookRow(tenant, { body, random }, unsealed);
      return { row, reply: { body: viewWithSecret(row, body) } };
    },

    async revise({ tenant }, next, { settings: { name, ...settings }, before }) {
      const { status = next.status, ordered = before.ordered, ...rest } = settings;
      const body = { ...rest, ordered, secrets: before.secrets };
      const row = webhookRow(tenant, { body, random }, { ...next, name, status });
      const isEnabledAgain = next.status === 'disabled' && status === 'enabled';
      if (!isEnabledAgain) return { row };
      // Its deliveries have waited meanwhile.
      const due_work = [await newNote(store, waitingOf(row.tenant_id), clock.now())];
      return { row, insert: { due_work }, remove: await failuresOf(store, row) };
    },

    removal: (_caller, { tenant_id }, now) => ({
      insert: { due_work: [{ tenant_id, work: 'deliveries', due_at: now }] },
    }),
  };
}

type UnsealedWebhook = Omit<WebhookRow, 'body' | 'proof'>;

export function webhookRow(
  { keyring }: Keys,
  { body, random }: { readonly body: WebhookBody; readonly random: Random },
  row: UnsealedWebhook,
): WebhookRow {
  const sealed = sealSettings({ keyring, random }, sealedAs(row), body);
  return proven({ keyring }, 'webhooks', { ...row, body: sealed });
}

/**
 * Returns the settings of a webhook.
 * @throws VaultError `integrity`, which names the row, if what is sealed in it was altered.
 */
export function openWebhook(opener: Opener, row: WebhookRow): Secret<WebhookBody> {
  return openSettings<WebhookBody>(opener, sealedAs(row), row.body);
}

/** The row in its next version, with its settings sealed again. @throws VaultError `integrity` when it was altered. */
export function resealedWebhook(resealer: Resealer, stored: Unproven<'webhooks'>): WebhookRow {
  const { proof: _proof, ...row } = requireProven(resealer, 'webhooks', stored);
  const body = resealSettings(resealer, sealedAs(row), row.body);
  return proven(resealer, 'webhooks', { ...row, version: row.version + 1, body });
}

function sealedAs({ tenant_id, webhook_id: id, version }: UnsealedWebhook) {
  return { entity: 'webhook', tenant_id, id, version } as const;
}

/** Restarts the period after which a failing webhook is disabled. */
async function failuresOf(store: Store, { tenant_id, webhook_id }: WebhookRow) {
  const key = { tenant_id, webhook_id };
  return (await store.get('webhook_failures', key)) ? { webhook_failures: [key] } : {};
}

/** How long the previous secret still signs, in addition to the new one. */
export const secretOverlapMs = day;

/**
 * The previous secret signs for another day, in addition to the new one; older secrets stop signing. The decision
 * throws `not_found`, or `integrity` if the webhook was altered.
 */
export function rotateSecret(
  { store, clock, random }: WebhookWriting,
  caller: Caller,
  id: string,
): Decide {
  const { tenant } = caller;
  return async () => {
    const now = clock.now();
    const found = await rowOf(store, 'webhooks', { tenant, id });
    const before = openWebhook(openerFor(caller, 'webhook:update'), found).reveal();
    const [newest] = before.secrets;
    const made = { text: newWebhookSecret(random), ends_at: null };
    const ending = newest ? [{ text: newest.text, ends_at: now + secretOverlapMs }] : [];
    const body = { ...before, secrets: [made, ...ending] };
    const row = webhookRow(tenant, { body, random }, nextVersion(caller, found, now));
    const fact = { entity: 'webhook', id: row.webhook_id, operation: 'rotate secret' } as const;
    return {
      change: { replace: { webhooks: [row] }, entries: [entryOf(caller, now, fact)] },
      reply: { status: 200, body: viewWithSecret(row, body) },
    };
  };
}

export interface WebhookListing extends WebhookReading, ListTools {}

/**
 * One page, newest first: a quota limits the number. A webhook that was altered outside the vault is left out, and an
 * entry records that it was altered.
 */
export function listWebhooks(tools: WebhookListing, caller: Caller): Decide {
  const { tenant } = caller;
  return async () => {
    const found = await tools.store.select(allWebhooks(tenant.id));
    const opener = openerFor(caller, 'webhook:read');
    const { data, entries } = await listed(tools, caller, {
      table: 'webhooks',
      found,
      show: (row) => viewWebhook(row, openWebhook(opener, row).reveal()),
    });
    const page_size = Math.max(tenant.quotas.webhook_limit, data.length);
    return {
      change: { entries },
      reply: { status: 200, body: { pagination: { page_size }, data } },
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

/** Omits the secrets. */
function viewWebhook(row: WebhookRow, { url, notify_email, events, ordered }: WebhookBody): object {
  return {
    id: row.webhook_id,
    tenant_id: row.tenant_id,
    status: row.status,
    name: row.name,
    url,
    ...(notify_email !== null && { notify_email }),
    events,
    ordered,
    ...viewHistory(row),
  };
}

/** Includes the current secret. No other response shows it. */
function viewWithSecret(row: WebhookRow, body: WebhookBody): object {
  return { ...viewWebhook(row, body), secret: body.secrets[0]?.text };
}
