/** Finding a stored webhook, always within one tenant. */
import { VaultError } from '../../lib/errors.ts';
import { parseUuid, type TenantId, type WebhookId } from '../../lib/ids.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';

/** @throws VaultError `not_found`, alike for one that is missing and for another tenant's. */
export async function webhookOf(
  store: Store,
  tenant: TenantId,
  id: string,
): Promise<Row<'webhooks'>> {
  const webhook_id = parseUuid<WebhookId>(id);
  const row = webhook_id && (await store.get('webhooks', { tenant_id: tenant, webhook_id }));
  if (row) return row;
  throw new VaultError('not_found', { public: 'There is no webhook with this id.' });
}

/** @throws VaultError `unprocessable` for a webhook to which nothing is sent. */
export function requireEnabled({ status }: Row<'webhooks'>): void {
  if (status === 'enabled') return;
  throw new VaultError('unprocessable', {
    public: 'The webhook is disabled; PUT it with the status enabled first.',
  });
}
