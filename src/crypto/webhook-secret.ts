/** The secret of a webhook, as Standard Webhooks writes it. */
import type { Random } from '../lib/random.ts';

const secretBytes = 32;

/** `whsec_` and base64 of the key of an HMAC. */
export function newWebhookSecret(random: Random): string {
  return `whsec_${random(secretBytes).toString('base64')}`;
}
