/** The tenants that a command about keys is about: one, or all of them. */
import type { Operator } from '../../rules/caller.ts';
import type { Vault } from '../../runtime/open-vault.ts';
import { type Flags, UsageError } from '../terminal/command.ts';
import { operatorOf, tenantFlag } from '../terminal/operator.ts';

export const someTenantFlag = {
  ...tenantFlag,
  meaning: `${tenantFlag.meaning}; without it, every tenant`,
} as const;

/** @throws UsageError when a tenant was altered in the database, outside the vault. */
export async function operatorsOf(vault: Vault, flags: Flags): Promise<readonly Operator[]> {
  if (flags['tenant'] !== undefined) return [await operatorOf(vault, flags)];
  const operators: Operator[] = [];
  for (const { tenant_id } of await vault.tenants.all()) {
    const tenant = await vault.tenants.find(tenant_id);
    if (tenant === undefined) {
      throw new UsageError(
        `the row of the tenant ${tenant_id} was altered in the database, outside the vault; restore it first`,
      );
    }
    operators.push({ tenant, application: null });
  }
  return operators;
}
