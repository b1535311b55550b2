/** Opens a vault for the operator's commands, also while a server runs on the same data. */

import { type Ambiguous, tenantMeant } from '../../access/tenants/handle.ts';
import type { TenantId } from '../../base/ids.ts';
import type { SharedKeys } from '../../keys/root/root-key.ts';
import type { Operator } from '../../rules/caller.ts';
import { type Config, readConfig } from '../../runtime/config/config.ts';
import { openVault, type Vault } from '../../runtime/open-vault.ts';
import { tenantNamed } from '../../store/queries/tenants.ts';
import { type Flag, type Flags, required, UsageError } from './command.ts';
import type { Terminal } from './terminal.ts';

/**
 * Opens the configured vault for one command.
 * @param sharedKeys keys of the source `shamir`, where they are not those of a running server alone.
 */
export async function withVault(
  { env }: Terminal,
  run: (vault: Vault, config: Config) => Promise<number>,
  sharedKeys?: (config: Config) => SharedKeys,
): Promise<number> {
  const config = readConfig(env);
  const vault = await openVault(config, sharedKeys && { sharedKeys: sharedKeys(config) });
  try {
    return await run(vault, config);
  } finally {
    await vault.close();
  }
}

export const tenantFlag: Flag = {
  kind: 'string',
  value: 'TENANT',
  meaning: 'id of the tenant, or its name in `tenant list`',
};

/** @throws UsageError when there is no such tenant, or when the text could mean two. */
export async function operatorOf(vault: Vault, flags: Flags): Promise<Operator> {
  const asked = required(flags, 'tenant');
  const id = requireOne(tenantMeant(await vault.store.select(tenantNamed(asked)), asked));
  const tenant = await vault.tenants.find(id);
  if (!tenant && (await vault.tenants.row(id))) {
    throw new UsageError(
      'the row of this tenant was altered in the database, outside the vault; restore it first',
    );
  }
  if (!tenant) throw new UsageError(noTenant);
  return { tenant, application: null };
}

export const soleTenantFlag: Flag = {
  ...tenantFlag,
  meaning: `${tenantFlag.meaning}; not needed where there is only one`,
};

/** The same, or for the only tenant of the vault where none was named. */
export async function operatorOfOnly(vault: Vault, flags: Flags): Promise<Operator> {
  if (flags['tenant'] !== undefined) return operatorOf(vault, flags);
  const [only, ...others] = await vault.tenants.all();
  if (only === undefined || others.length > 0) {
    throw new UsageError('--tenant is required, because the vault has several tenants');
  }
  return operatorOf(vault, { ...flags, tenant: only.tenant_id });
}

const noTenant = 'there is no tenant with that id or name; a display name is not accepted';

/** @throws UsageError unless the operator's words mean one tenant. */
export function requireOne(meant: TenantId | Ambiguous | undefined): TenantId {
  if (meant === undefined) throw new UsageError(noTenant);
  if (meant === 'ambiguous') {
    throw new UsageError('that is the id of one tenant and the name of another');
  }
  return meant;
}
