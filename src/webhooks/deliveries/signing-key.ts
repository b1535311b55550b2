/** The key with which the vault signs messages to webhooks: created at its first use, and shared by all servers. */

import { guardedBy, type VaultKeys } from '../../access/keyrings/vault-keys.ts';
import type { Clock } from '../../base/clock.ts';
import { newWebhookKey, type WebhookKey, webhookKeyOf } from '../../keys/webhook-signatures.ts';
import type { Store } from '../../store/store.ts';

/** Receivers see it in `SVC-SIGNATURE-VERSION`, after the dot. */
const name = 'webhooks.v1';

/** The key belongs to no tenant. */
const binding = { tenant: '', id: name, field: 'private_key' };

export interface SigningKeyTools {
  readonly store: Store;
  readonly vaultKeys: VaultKeys;
  readonly clock: Clock;
}

/**
 * Always returns the same key: if several servers create one concurrently, only the first is stored.
 * @throws VaultError `integrity` if it was altered outside the vault.
 */
export function createSigningKey({
  store,
  vaultKeys,
  clock,
}: SigningKeyTools): () => Promise<WebhookKey> {
  let known: Promise<WebhookKey> | undefined;

  async function make(): Promise<void> {
    const text = await newWebhookKey();
    const { bytes: private_key, guard } = await vaultKeys.seal({ binding, text });
    const { remove, insert } = guardedBy(guard);
    // A conflict means that another server has stored a key, which is then the only one, or that the key under which
    // this one is sealed was replaced.
    await store.record({
      remove: { vault_keys: remove },
      insert: { vault_keys: [...insert, { name, private_key, created_at: clock.now() }] },
    });
  }

  async function find(): Promise<WebhookKey> {
    for (;;) {
      const row = await store.get('vault_keys', { name });
      if (row) {
        const sealed = row.private_key;
        return webhookKeyOf(await vaultKeys.open({ job: 'sign deliveries', binding, sealed }));
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
