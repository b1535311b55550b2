/** What is asked of stored reactors. */
import { VaultError } from '../../lib/errors.ts';
import { parseUuid, type ReactorId, type TenantId } from '../../lib/ids.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';

/** @throws VaultError `not_found`, alike for one that is missing and for another tenant's. */
export async function reactorOf(
  store: Store,
  tenant: TenantId,
  id: string,
): Promise<Row<'reactors'>> {
  const reactor_id = parseUuid<ReactorId>(id);
  const row = reactor_id && (await store.get('reactors', { tenant_id: tenant, reactor_id }));
  if (row) return row;
  throw new VaultError('not_found', { public: 'There is no reactor with this id.' });
}
