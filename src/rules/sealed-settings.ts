/** The settings of stored resources, sealed in one column of rows that carry a proof. */

import type { TenantId } from '../base/ids.ts';
import type { Random } from '../base/random.ts';
import { Secret } from '../base/secret.ts';
import { type Binding, openText, resealText, type Sealed, sealText } from '../keys/envelope.ts';
import { namingRow } from './bound-row.ts';
import type { Opener, Resealer } from './openings.ts';
import type { Keys } from './proven-row.ts';

/** The row that the settings belong to. */
export interface SettingsOwner {
  readonly entity: 'approval' | 'proxy' | 'reactor' | 'webhook';
  readonly tenant_id: TenantId;
  readonly id: string;
  readonly version: number;
}

/** The settings, to be stored in that version of the row. */
export function sealSettings(
  { keyring, random }: Keys & { readonly random: Random },
  owner: SettingsOwner,
  settings: object,
): Sealed {
  return sealText(keyring.sealing('data'), bindingOf(owner), JSON.stringify(settings), random);
}

/** @throws VaultError `integrity`, which names the row, when what is sealed or its version was altered. */
export function openSettings<Settings>(
  { keyring, grant }: Opener,
  owner: SettingsOwner,
  sealed: Uint8Array,
): Secret<Settings> {
  try {
    const text = openText(keyring.opening('data', grant), bindingOf(owner), sealed);
    return new Secret(JSON.parse(text.reveal()) as Settings);
  } catch (error) {
    throw namingRow(error, { entity: owner.entity, id: owner.id });
  }
}

/**
 * The settings sealed again, to be stored in the next version of the row.
 * @throws VaultError like {@link openSettings}.
 */
export function resealSettings(
  { keyring, grant, random }: Resealer,
  owner: SettingsOwner,
  sealed: Uint8Array,
): Sealed {
  const places = {
    from: bindingOf(owner),
    to: bindingOf({ ...owner, version: owner.version + 1 }),
  };
  try {
    return resealText(keyring.opening('data', grant), places, { sealed, random });
  } catch (error) {
    throw namingRow(error, { entity: owner.entity, id: owner.id });
  }
}

/** Each resource has a field of its own: its settings are never taken for the data of a token with the same id. */
function bindingOf({ entity, tenant_id, id, version }: SettingsOwner): Binding {
  return { tenant: tenant_id, id, field: `${entity}.body`, row: String(version) };
}
