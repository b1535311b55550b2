/** The receipt of a deleted tenant, for which only the process that deleted it still has the key. */
import {
  erasedKey,
  findErasure,
  type IssuedReceipt,
  issueReceipt,
  wrappedBy,
} from '../../audit/erasure.ts';
import type { Clock } from '../../base/clock.ts';
import { purposes } from '../../keys/keyring.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';

/** No key of the tenant is left that could become due. */
const never = Number.POSITIVE_INFINITY;

export interface TenantErasure {
  /** As it was. */
  readonly tenant: Tenant;
  /** As it was stored. */
  readonly row: Row<'tenants'>;
}

/** All keys of the tenant were destroyed. `undefined` when the log does not say that the tenant was deleted. */
export async function receiptOfTenant(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  { tenant, row }: TenantErasure,
): Promise<IssuedReceipt | undefined> {
  const now = clock.now();
  const erased = { entity: 'tenant', id: tenant.id } as const;
  const found = await findErasure(store, tenant, erased, now);
  if (found === undefined) return undefined;
  const { entry } = found;
  const keys = purposes.flatMap((purpose) =>
    tenant.keyring.versions[purpose].map(({ version }) => {
      const key = erasedKey(row, tenant, { purpose, version, keyMaxAgeMs: never });
      const destroyed_at = key.destroyed_at ?? entry.created_at;
      return { ...key, state: 'destroyed', destroyed_at, due_at: null };
    }),
  );
  return issueReceipt(store, tenant, { ...erased, entry, keys, rootKey: wrappedBy(row), now });
}
