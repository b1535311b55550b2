/** How many bytes applications have stored, as the database counts them. */
import type { ApplicationId, TenantId } from '../../base/ids.ts';
import type { Query } from '../store.ts';
import { storedTenant } from './stored.ts';

export interface ApplicationBytes {
  readonly application_id: ApplicationId;
  /** PostgreSQL gives sums as text. */
  readonly bytes: number | string;
}

/** Of each application of the tenant that has ever stored any. */
export function storedBytesOf(tenant: TenantId): Query<ApplicationBytes> {
  return (db) =>
    db
      .selectFrom('stored_bytes')
      .select(({ fn }) => ['application_id', fn.sum<number | string>('bytes').as('bytes')])
      .where('tenant_id', '=', storedTenant(tenant))
      .groupBy('application_id');
}
