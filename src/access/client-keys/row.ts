/** A client's encryption key as it is stored: its private half sealed, the whole row proven. */

import type { Instant } from '../../base/clock.ts';
import { type ClientKeyId, parseUuid } from '../../base/ids.ts';
import type { Random } from '../../base/random.ts';
import { type ClientKey, readClientKey } from '../../keys/client-key.ts';
import { type Binding, openText, resealText, sealText } from '../../keys/envelope.ts';
import type { Opener, Resealer } from '../../rules/openings.ts';
import { proven, provenRow, requireProven } from '../../rules/proven-row.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Store } from '../../store/store.ts';
import type { Unproven } from '../../store/stored-row.ts';
import type { Row } from '../../store/tables.ts';

export interface ClientKeySealing {
  readonly tenant: Tenant;
  /** PEM. */
  readonly privateKey: string;
  readonly random: Random;
}

type UnsealedClientKey = Omit<Row<'client_keys'>, 'private_key' | 'proof'>;

export function clientKeyRow(
  { tenant, privateKey, random }: ClientKeySealing,
  row: UnsealedClientKey,
): Row<'client_keys'> {
  const keys = tenant.keyring.sealing('data');
  const private_key = sealText(keys, bindingOf(row), privateKey, random);
  return proven(tenant, 'client_keys', { ...row, private_key });
}

/** @throws VaultError `integrity` when what is sealed in the row was altered. */
export function openClientKey({ keyring, grant }: Opener, row: Row<'client_keys'>): ClientKey {
  const text = openText(keyring.opening('data', grant), bindingOf(row), row.private_key);
  return readClientKey(text.reveal());
}

/** The row in its next version, with its key sealed again. @throws VaultError `integrity` when it was altered. */
export function resealedClientKey(
  resealer: Resealer,
  stored: Unproven<'client_keys'>,
): Row<'client_keys'> {
  const { keyring, grant, random } = resealer;
  const { proof: _proof, ...row } = requireProven(resealer, 'client_keys', stored);
  const place = bindingOf(row);
  const places = { from: place, to: place };
  const sealed = { sealed: row.private_key, random };
  const private_key = resealText(keyring.opening('data', grant), places, sealed);
  return proven(resealer, 'client_keys', { ...row, version: row.version + 1, private_key });
}

function bindingOf({ tenant_id, client_key_id }: UnsealedClientKey): Binding {
  return { tenant: tenant_id, id: client_key_id, field: 'client_key.private_key' };
}

/**
 * The key, unless it has expired; `undefined` also for a string that is not an id.
 * @throws VaultError `integrity` when it was altered.
 */
export async function findClientKey(
  store: Store,
  tenant: Tenant,
  { id, now }: { readonly id: string; readonly now: Instant },
): Promise<Row<'client_keys'> | undefined> {
  const client_key_id = parseUuid<ClientKeyId>(id);
  if (client_key_id === undefined) return undefined;
  const key = { tenant_id: tenant.id, client_key_id };
  const row = await provenRow(store, tenant, { table: 'client_keys', key });
  return row && row.expires_at > now ? row : undefined;
}
