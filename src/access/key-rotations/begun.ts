/**
 * Whether the vault itself began a rotation. Rows of rotations carry no proof, so new keys are only introduced where
 * the log, which has one, says that a rotation began and has not introduced keys yet.
 */
import { findLogs } from '../../audit/find.ts';
import { isOwnBlock } from '../../audit/proving.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Store } from '../../store/store.ts';
import type { Rotation } from './rotation.ts';

const beginnings: ReadonlySet<string> = new Set(['rotate', 'introduce']);

/** False for a row that an attacker inserted, or set back to its beginning. */
export async function isBegun(
  store: Pick<Store, 'select' | 'scan'>,
  tenant: Tenant,
  { purpose, started_at }: Pick<Rotation, 'purpose' | 'started_at'>,
): Promise<boolean> {
  const [newest] = await findLogs(store, {
    tenant: tenant.id,
    entity_type: 'keyring',
    entity_id: tenant.id,
    oldest: started_at,
    until: undefined,
    after: undefined,
    skip: 0,
    limit: 1,
    isOwn: (block) => isOwnBlock(tenant, block),
    where: ({ operation, message, result }) =>
      result === 'success' && beginnings.has(operation) && message.endsWith(`: ${purpose}`),
  });
  return newest?.operation === 'rotate' && newest.created_at === started_at;
}
