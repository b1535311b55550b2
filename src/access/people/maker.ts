/** Who made a sign-in link: the link, and the session that it begins, stand only while they do. */
import type { ApplicationId, PersonId } from '../../base/ids.ts';
import { provenRow } from '../../rules/proven-row.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { keyIdsOf } from '../applications/row.ts';
import { rolesOf } from './row.ts';

export type LinkMaker = Pick<
  Row<'console_links'>,
  'created_by' | 'created_by_key' | 'created_by_person'
>;

/**
 * Whether those still stand who made a sign-in link. Nobody lasts who was let in with a leaked key, once the key is
 * deleted. The operator, who makes links on the command line, always stands.
 * @throws VaultError `integrity` when one of the rows was altered outside the vault.
 */
export async function makerStands(
  store: Pick<Store, 'get'>,
  tenant: Tenant,
  { created_by, created_by_key, created_by_person }: LinkMaker,
): Promise<boolean> {
  if (created_by === null) return true;
  const key = { tenant_id: tenant.id, application_id: created_by };
  const application = await provenRow(store, tenant, { table: 'applications', key });
  if (application === undefined) return false;
  if (created_by_key !== null && !keyIdsOf(application).includes(created_by_key)) return false;
  if (created_by_person === null) return true;
  return hasRole(store, tenant, { person: created_by_person, application: created_by });
}

interface RoleOfPerson {
  readonly person: PersonId;
  readonly application: ApplicationId;
}

/** Whether the person exists, and may act as the application. */
export async function hasRole(
  store: Pick<Store, 'get'>,
  tenant: Tenant,
  { person, application }: RoleOfPerson,
): Promise<boolean> {
  const key = { tenant_id: tenant.id, person_id: person };
  const stored = await provenRow(store, tenant, { table: 'people', key });
  return stored !== undefined && rolesOf(stored).includes(application);
}
