/** `strongroom tenant …`: tenants, from the operator's side. */
import { perform } from '../rules/operation.ts';
import { parseQuota, quotaRows, quotasOf } from '../rules/settings.ts';
import { createTenantWithKey } from '../vault/tenants/bootstrap.ts';
import { deleteTenant, purgeDeletedTenants } from '../vault/tenants/delete.ts';
import { parseHandle } from '../vault/tenants/handle.ts';
import { nameOf } from '../vault/tenants/tenants.ts';
import { setQuotas } from '../vault/tenants/update.ts';
import {
  type Command,
  jsonFlag,
  print,
  repeated,
  required,
  UsageError,
} from './terminal/command.ts';
import { operatorOf, tenantFlag, withVault } from './terminal/operator.ts';

const types = { test: 'test', production: 'production' } as const;

/** Rows that the removal of a tenant takes in one commit. */
const rowsMax = 500;

export const tenantCreate: Command = {
  summary: 'Create a tenant and its management key, which is shown only once.',
  flags: {
    name: { kind: 'string', meaning: 'your name for the tenant, unique on this vault' },
    type: { kind: 'string', meaning: 'test or production (default production)' },
    json: jsonFlag,
  },
  run: (flags) => {
    const name = parseHandle(required(flags, 'name'));
    const type = types[String(flags['type'] ?? 'production') as keyof typeof types];
    if (type === undefined) throw new UsageError('--type must be test or production');
    return withVault(async (vault) => {
      const { tenant, newKey } = await createTenantWithKey(vault, {
        tenant: name,
        type,
        key: undefined,
      });
      print(flags, {
        json: { id: tenant.id, name: tenant.name, type: tenant.type, key: newKey },
        line:
          `Created the tenant "${tenant.name}" (${tenant.id}).\n` +
          `Its management key, shown only once: ${newKey}`,
      });
      return 0;
    });
  },
};

export const tenantList: Command = {
  summary: 'List the tenants, with the quotas in force.',
  flags: { json: jsonFlag },
  run: (flags) =>
    withVault(async ({ tenants }) => {
      for (const row of await tenants.all()) {
        const { tenant_id: id, name, type } = row;
        const own = nameOf(row);
        print(flags, {
          json: { id, name, display_name: own, type, quotas: quotasOf(row.quotas) },
          line: `${id}  ${type.padEnd(10)}  ${name}${own === name ? '' : `  (display name ${own})`}`,
        });
      }
      return 0;
    }),
};

const quotaNames = Object.entries(quotaRows)
  .map(([name, { meaning }]) => `${name} (${meaning})`)
  .join(', ');

export const tenantQuota: Command = {
  summary: 'Show the quotas of a tenant, or set some; they take effect within a second.',
  flags: {
    tenant: tenantFlag,
    set: {
      kind: 'string',
      repeated: true,
      meaning: `name=value, may be repeated; durations such as 90s, 15m, 2h, 7d: ${quotaNames}`,
    },
    json: jsonFlag,
  },
  run: (flags) => {
    const set = Object.assign({}, ...repeated(flags, 'set').map(readQuota));
    return withVault(async (vault) => {
      const operator = await operatorOf(vault, flags);
      const { id } = operator.tenant;
      if (Object.keys(set).length > 0) await perform(vault.store, setQuotas(vault, operator, set));
      const quotas = quotasOf((await vault.tenants.row(id))?.quotas ?? '{}');
      print(flags, {
        json: { id, quotas },
        line: Object.entries(quotas)
          .map(([name, value]) => `${name} ${value}`)
          .join('\n'),
      });
      return 0;
    });
  },
};

function readQuota(text: string): object {
  const [, name = '', value = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === '') throw new UsageError('--set takes name=value');
  return parseQuota(name, value);
}

export const tenantDelete: Command = {
  summary:
    'Destroy the keys of a tenant, so that its data can never be read again, and delete its rows.',
  flags: {
    tenant: tenantFlag,
    yes: { kind: 'boolean', meaning: 'confirm; this cannot be undone' },
    json: jsonFlag,
  },
  run: (flags) => {
    if (flags['yes'] !== true) throw new UsageError('add --yes to confirm: this cannot be undone');
    return withVault(async (vault) => {
      const operator = await operatorOf(vault, flags);
      const { id, name } = operator.tenant;
      await perform(vault.store, deleteTenant(vault, operator));
      const removed = await purge(vault);
      print(flags, {
        json: { id, removed_rows: removed },
        line: `Deleted the tenant "${name}" (${id}) and ${removed} rows of it.`,
      });
      return 0;
    });
  },
};

/** Also of tenants that were deleted before and are not removed yet. */
async function purge(vault: Parameters<typeof purgeDeletedTenants>[0]): Promise<number> {
  let removed = 0;
  for (;;) {
    const count = await purgeDeletedTenants(vault, rowsMax);
    removed += count;
    if (process.stderr.isTTY) process.stderr.write(`\r${removed} rows removed`);
    if (count === 0) break;
  }
  if (process.stderr.isTTY) process.stderr.write('\n');
  return removed;
}
