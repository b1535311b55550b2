/** The operator's way into a vault, beside a server that may be running on the same data. */
import { openVault, type Vault } from '../app.ts';
import { readConfig } from '../config.ts';
import { parseUuid, type TenantId } from '../lib/ids.ts';
import type { Operator } from '../vault/access/caller.ts';
import { nameOf } from '../vault/tenants/tenants.ts';
import { type Flag, type Flags, required, UsageError } from './command.ts';

/** Opens the configured vault for one command. */
export async function withVault(run: (vault: Vault) => Promise<number>): Promise<number> {
  const vault = await openVault(readConfig());
  try {
    return await run(vault);
  } finally {
    await vault.close();
  }
}

export const tenantFlag: Flag = { kind: 'string', meaning: 'id or name of the tenant' };

/** @throws UsageError when there is no such tenant. */
export async function operatorOf(vault: Vault, flags: Flags): Promise<Operator> {
  const asked = required(flags, 'tenant');
  const named = (await vault.tenants.all()).find(
    (row) => row.name === asked || nameOf(row) === asked,
  );
  const id = named?.tenant_id ?? parseUuid<TenantId>(asked);
  const tenant = id && (await vault.tenants.find(id));
  if (!tenant) throw new UsageError('there is no tenant of that id or name');
  return { tenant, application: null };
}
