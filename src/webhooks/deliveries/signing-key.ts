/** The key with which the vault signs messages to webhooks: created at its first use, and shared by all servers. */

import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import { openingKeys, openText, sealText } from '../../keys/envelope.ts';
import { rootKeys } from '../../keys/keyring.ts';
import type { LocalRootKey } from '../../keys/root-key.ts';
import { newWebhookKey, type WebhookKey, webhookKeyOf } from '../../keys/webhook-signatures.ts';
import { grantOf } from '../../rules/openings.ts';
import type { Store } from '../../store/store.ts';

/** Receivers see it in `SVC-SIGNATURE-VERSION`, after the dot. */
const name = 'webhooks.v1';

/** The key belongs to no tenant. */
const binding = { tenant: '', id: name, field: 'private_key' };

export interface SigningKeyTools {
  readonly store: Store;
  readonly rootKey: LocalRootKey;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * Always returns the same key: if several servers create one concurrently, only the first is stored.
 * @throws VaultError `integrity` if it was altered outside the vault.
 */
export function createSigningKey({
  store,
  rootKey,
  clock,
  random,
}: SigningKeyTools): () => Promise<WebhookKey> {
  const keys = rootKeys(rootKey.key);
  let known: Promise<WebhookKey> | undefined;

  async function make(): Promise<void> {
    const private_key = sealText(keys, binding, await newWebhookKey(), random);
    // A conflict means that another server has stored a key, which is then the only one.
    await store.record({
      insert: { vault_keys: [{ name, private_key, created_at: clock.now() }] },
    });
  }

  async function find(): Promise<WebhookKey> {
    for (;;) {
      const row = await store.get('vault_keys', { name });
      if (row) {
        const opening = openingKeys(keys, grantOf('sign deliveries'));
        return webhookKeyOf(openText(opening, binding, row.private_key).reveal());
      }
      await make();
    }
  }

  return () => {
    known ??= find().catch((error: unknown) => {
      known = undefined;
      throw error;
    });
    return known;
  };
}
