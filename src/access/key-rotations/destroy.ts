/** Destroying a key that nothing needs any more. */
import type { Clock } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import type { Actor } from '../../rules/caller.ts';
import { detailed, entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import type { Tenants } from '../../rules/tenant.ts';
import { rotationsOf } from '../../store/queries/key-rotations.ts';
import type { Store } from '../../store/store.ts';
import { onlyPublicPair } from '../keyrings/signing-pairs.ts';
import type { VaultKeys } from '../keyrings/vault-keys.ts';
import { tenantRowOf } from '../tenants/read.ts';
import { findVersion, type NamedVersion, rowsUnder } from './key-list.ts';
import { keyringStep } from './keyring-step.ts';

export interface KeyDestruction {
  readonly store: Store;
  readonly vaultKeys: VaultKeys;
  readonly tenants: Tenants;
  readonly clock: Clock;
}

/**
 * Destroys a version of a key. From the decision `not_found` for a version that never was, and `conflict` for the
 * active one, one that is destroyed already, one under which there are rows, and while a rotation is under way.
 */
export function destroyKey(
  { store, tenants, vaultKeys, clock }: KeyDestruction,
  actor: Actor,
  { purpose, version }: NamedVersion,
): Decide {
  return async () => {
    const { id } = actor.tenant;
    const row = await tenantRowOf(tenants, actor.tenant);
    const keyring = await tenants.keyringOf(row);
    const found = findVersion(keyring, { purpose, version });
    const name = `Version ${version} of the ${purpose} key`;
    if (found === undefined) {
      throw new VaultError('not_found', {
        public: `The ${purpose} key has no version ${version}.`,
      });
    }
    const { entry } = found;
    if (entry.state === 'active') throw refusal(`${name} is active. Rotate the key first.`);
    if (entry.state === 'destroyed') throw refusal(`${name} is destroyed already.`);
    const rotations = await store.select(rotationsOf(id));
    // A row may say that a rotation is finished, and the keyring proves it.
    const isProvenOver = keyringStep(keyring) === undefined;
    if (!isProvenOver || rotations.some(({ phase }) => phase !== 'finished')) {
      throw refusal('A rotation of keys is under way. Wait until it has finished.');
    }
    const rows = await rowsUnder({ store, tenants }, row, { purpose, version });
    if (rows === null || rows > 0) {
      throw refusal(`${name} still has ${rows} rows. Rotate the key to seal them again.`);
    }
    const now = clock.now();
    const fact = { entity: 'keyring', id, operation: 'destroy' } as const;
    const event = { keyring: { purpose, version } };
    const next = keyring.withDestroyed(found.purpose, entry.version, now);
    // It conflicts with a change of the keyring since the rows were counted.
    const rekeyed = await tenants.rekeyed(row, next);
    const published =
      purpose === 'webhooks' ? await onlyPublicPair({ store, vaultKeys }, version) : undefined;
    return {
      change: {
        ...rekeyed,
        ...(published && {
          remove: { vault_keys: [...(rekeyed.remove?.vault_keys ?? []), published] },
          insert: { vault_keys: [...(rekeyed.insert?.vault_keys ?? []), published] },
        }),
        entries: [detailed(entryOf(actor, now, { ...fact, event }), `${purpose} ${version}`)],
      },
      reply: { status: 204 },
    };
  };
}

function refusal(text: string): VaultError {
  return new VaultError('conflict', { public: text });
}
