/** `strongroom tenant …`: tenants, from the operator's side. */
import { openVault } from '../app.ts';
import { readConfig } from '../config.ts';
import { createTenantWithKey } from '../vault/bootstrap.ts';
import { type Command, required, UsageError } from './command.ts';

const types = { test: 'test', production: 'production' } as const;

export const tenantCreate: Command = {
  name: 'tenant create',
  summary: 'Create a tenant and its management key, which is shown this once.',
  flags: {
    name: { kind: 'string', meaning: 'name of the tenant, unique on this vault' },
    type: { kind: 'string', meaning: 'test or production (default production)' },
    json: { kind: 'boolean', meaning: 'print one JSON object' },
  },
  run: async (flags) => {
    const name = required(flags, 'name');
    const type = types[String(flags['type'] ?? 'production') as keyof typeof types];
    if (type === undefined) throw new UsageError('--type must be test or production');
    const vault = await openVault(readConfig());
    try {
      const { tenant, newKey } = await createTenantWithKey(vault, {
        tenant: name,
        type,
        key: undefined,
      });
      process.stdout.write(
        flags['json'] === true
          ? `${JSON.stringify({ id: tenant.id, name: tenant.name, type: tenant.type, key: newKey })}\n`
          : `Created the tenant "${tenant.name}" (${tenant.id}).\nIts management key, shown this once: ${newKey}\n`,
      );
      return 0;
    } finally {
      await vault.close();
    }
  },
};
