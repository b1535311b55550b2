/** The application with whose rights a proxy or a reactor acts where its caller has none. */
import { invalid } from '../base/errors.ts';
import { type ApplicationId, parseUuid } from '../base/ids.ts';
import type { ValidationErrors } from '../base/validation-errors.ts';
import type { Store } from '../store/store.ts';
import { provenRow } from './proven-row.ts';
import type { Tenant } from './tenant.ts';

/** What is wrong with it is in the errors. */
export function readLinkedApplication(
  application: { readonly id: string } | null,
  errors: ValidationErrors,
): ApplicationId | null {
  if (application === null) return null;
  const id = parseUuid<ApplicationId>(application.id);
  if (id === undefined) errors.add('application.id', unknownApplication);
  return id ?? null;
}

const unknownApplication = 'must be the id of a public or private application of the tenant';

/** @throws VaultError `validation_failed` unless it is an application of the tenant that tokens can be used with. */
export async function requireLinkedApplication(
  store: Store,
  tenant: Tenant,
  application_id: ApplicationId | null,
): Promise<void> {
  if (application_id === null) return;
  const key = { tenant_id: tenant.id, application_id };
  const row = await provenRow(store, tenant, { table: 'applications', key });
  if (row === undefined || row.type === 'management')
    throw invalid('application.id', unknownApplication);
}
