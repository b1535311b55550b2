/** Queries of stored applications and their keys, always within one tenant. */
import { VaultError } from '../../base/errors.ts';
import { type ApplicationId, type KeyId, parseUuid, type TenantId } from '../../base/ids.ts';
import { provenRows, requireProven } from '../../rules/proven-row.ts';
import type { Tenant } from '../../rules/tenant.ts';
import { applicationKeys, applicationsOf, keyWithId } from '../../store/queries/applications.ts';
import type { Store } from '../../store/store.ts';
import type { Unproven } from '../../store/stored-row.ts';
import type { Row } from '../../store/tables.ts';
import { keyIdsOf } from './row.ts';

/**
 * The applications' own keys, oldest first; those of all applications if none are named. Keys of
 * sessions are not included.
 */
export async function keysOf(
  store: Store,
  tenant: TenantId,
  applications?: readonly ApplicationId[],
): Promise<Unproven<'api_keys'>[]> {
  if (applications?.length === 0) return [];
  return store.select(applicationKeys(tenant, applications));
}

/**
 * The applications' own keys as the vault wrote them, for code that shows them. One that its application does
 * not name was put back after it was deleted: it opens nothing and is left out.
 * @throws VaultError `integrity` when one was altered.
 */
export async function provenKeysOf(
  store: Store,
  tenant: Tenant,
  applications: readonly Row<'applications'>[],
): Promise<Row<'api_keys'>[]> {
  const ids = applications.map(({ application_id }) => application_id);
  const rows = await keysOf(store, tenant.id, ids);
  return namedKeys(
    applications,
    rows.map((row) => requireProven(tenant, 'api_keys', row)),
  );
}

/** The same of all applications. A key of an application that does not exist is left out as well. */
export async function provenKeysOfAll(store: Store, tenant: Tenant): Promise<Row<'api_keys'>[]> {
  const rows = await keysOf(store, tenant.id);
  const applications = await store.select(applicationsOf(tenant.id));
  const proven = applications.map((row) => requireProven(tenant, 'applications', row));
  return namedKeys(
    proven,
    rows.map((row) => requireProven(tenant, 'api_keys', row)),
  );
}

/** The keys that their applications name. */
export function namedKeys(
  applications: readonly Row<'applications'>[],
  keys: readonly Row<'api_keys'>[],
): Row<'api_keys'>[] {
  const named = new Set(applications.flatMap(keyIdsOf));
  return keys.filter(({ key_id }) => named.has(key_id));
}

/**
 * A key of the application itself.
 * @throws VaultError `not_found`, also for the key of another application; `integrity` when it was altered.
 */
export async function keyOf(
  store: Store,
  tenant: Tenant,
  { application, id }: { readonly application: ApplicationId; readonly id: string },
): Promise<Row<'api_keys'>> {
  const row = await keyOfTenant(store, tenant, id);
  if (row.application_id === application && row.session_id === null) return row;
  throw noKey();
}

/**
 * A key of any application, or of a session.
 * @throws VaultError `not_found`, alike for one that is missing and for another tenant's; `integrity` when it was
 * altered.
 */
export async function keyOfTenant(
  store: Store,
  tenant: Tenant,
  id: string,
): Promise<Row<'api_keys'>> {
  return requireProven(tenant, 'api_keys', await unprovenKey(store, tenant.id, id));
}

/**
 * The id of the application that the key belongs to, also where the row of the key was altered: its application, whose
 * row proves itself, names it.
 * @throws VaultError `not_found`; `integrity` when the key was altered and no application names it.
 */
export async function applicationWithKey(
  store: Store,
  tenant: Tenant,
  id: string,
): Promise<ApplicationId> {
  const key = await unprovenKey(store, tenant.id, id);
  const applications = await store.select(applicationsOf(tenant.id));
  const { rows } = provenRows(tenant, 'applications', applications);
  const owner = rows.find((row) => keyIdsOf(row).includes(key.key_id));
  return (owner ?? requireProven(tenant, 'api_keys', key)).application_id;
}

/** The same as {@link keyOfTenant}, whether or not the vault wrote it: for removing it. */
export async function unprovenKey(
  store: Store,
  tenant: TenantId,
  id: string,
): Promise<Unproven<'api_keys'>> {
  const keyId = parseUuid<KeyId>(id);
  if (keyId === undefined) throw noKey();
  const [row] = await store.select(keyWithId(tenant, keyId));
  if (row) return row;
  throw noKey();
}

export function noKey(): VaultError {
  return new VaultError('not_found', { public: 'There is no key with this id.' });
}
