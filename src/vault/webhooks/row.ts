/** A webhook as it is stored: its settings sealed, the whole row proven. */

import { type Binding, openText, sealText } from '../../crypto/envelope.ts';
import type { Random } from '../../lib/random.ts';
import { Secret } from '../../lib/secret.ts';
import { namingRow } from '../../rules/bound-row.ts';
import type { Opener } from '../../rules/openings.ts';
import { type Keys, proven, requireProven } from '../../rules/proven-row.ts';
import type { Row } from '../../store/tables.ts';
import type { EventType } from '../events/types.ts';

/** What is sealed. */
export interface WebhookBody {
  readonly url: string;
  readonly notify_email: string | null;
  readonly events: readonly EventType[];
  /** Of one entity, no event is sent before those with a smaller sequence have arrived. */
  readonly ordered: boolean;
  /** The newest first. */
  readonly secrets: readonly WebhookSecret[];
}

export interface WebhookSecret {
  /** `whsec_` and base64 of the key, as Standard Webhooks writes it. */
  readonly text: string;
  /** Milliseconds since 1970, from which on it signs nothing; null for the newest. */
  readonly ends_at: number | null;
}

type UnsealedWebhook = Omit<Row<'webhooks'>, 'body' | 'proof'>;

export function webhookRow(
  { keyring }: Keys,
  { body, random }: { readonly body: WebhookBody; readonly random: Random },
  row: UnsealedWebhook,
): Row<'webhooks'> {
  const keys = keyring.sealing('data');
  const sealed = sealText(keys, bindingOf(row), JSON.stringify(body), random);
  return proven({ keyring }, 'webhooks', { ...row, body: sealed });
}

/**
 * The settings of a webhook, from a row that is as the vault wrote it.
 * @throws VaultError `integrity`, which names the row, when anything of it was altered.
 */
export function openWebhook({ keyring, grant }: Opener, row: Row<'webhooks'>): Secret<WebhookBody> {
  const { body } = requireProven({ keyring }, 'webhooks', row);
  try {
    const text = openText(keyring.opening('data', grant), bindingOf(row), body);
    return new Secret(JSON.parse(text.reveal()) as WebhookBody);
  } catch (error) {
    throw namingRow(error, { entity: 'webhook', id: row.webhook_id });
  }
}

/** A field of its own: what is sealed of a webhook is never taken for the data of a token with the same id. */
function bindingOf({ tenant_id, webhook_id, version }: UnsealedWebhook): Binding {
  return { tenant: tenant_id, id: webhook_id, field: 'webhook.body', row: String(version) };
}
