/** A webhook as callers see it. */
import { formatTimestamp } from '../../lib/dates.ts';
import type { Opener } from '../../rules/openings.ts';
import type { Row } from '../../store/tables.ts';
import { openWebhook } from './row.ts';

/**
 * Without its secrets.
 * @throws VaultError `integrity` when the row was altered.
 */
export function viewWebhook(opener: Opener, row: Row<'webhooks'>): object {
  const { url, notify_email, events, ordered } = openWebhook(opener, row).reveal();
  return {
    id: row.webhook_id,
    tenant_id: row.tenant_id,
    status: row.status,
    name: row.name,
    url,
    ...(notify_email !== null && { notify_email }),
    events,
    ordered,
    created_by: row.created_by,
    created_at: formatTimestamp(row.created_at),
    ...(row.modified_by !== null && { modified_by: row.modified_by }),
    ...(row.modified_at !== null && { modified_at: formatTimestamp(row.modified_at) }),
  };
}

/** With the secret that signs from now on: the one time that it is shown. */
export function viewWithSecret(opener: Opener, row: Row<'webhooks'>): object {
  const [newest] = openWebhook(opener, row).reveal().secrets;
  return { ...viewWebhook(opener, row), secret: newest?.text };
}
