/** `strongroom tenant …`: tenants, from the operator's side. */

import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createTenantWithKey } from '../access/tenants/bootstrap.ts';
import { deleteTenant, purgeDeletedTenants } from '../access/tenants/delete.ts';
import { receiptOfTenant } from '../access/tenants/erasure.ts';
import { parseHandle } from '../access/tenants/handle.ts';
import { tenantRowOf } from '../access/tenants/read.ts';
import { nameOf } from '../access/tenants/tenants.ts';
import { setQuotas } from '../access/tenants/update.ts';
import { viewReceipt } from '../audit/erasure.ts';
import { systemCodeOf } from '../base/errors.ts';
import { perform } from '../rules/operation.ts';
import { formatQuota, parseQuota, type QuotaName, quotaRows, quotasOf } from '../rules/settings.ts';
import { readConfig } from '../runtime/config/config.ts';
import { tenantsMoving } from '../store/copying/unfinished-moves.ts';
import { awayForGood } from '../store/outgoing-copy.ts';
import { makePrivateDirectory } from '../store/private-directory.ts';
import { addressOf } from './copy/places.ts';
import { forgetTenant } from './copy/tenant.ts';
import {
  type Command,
  jsonFlag,
  print,
  repeated,
  required,
  UsageError,
} from './terminal/command.ts';
import { operatorOf, tenantFlag, withVault } from './terminal/operator.ts';
import { redraw } from './terminal/progress.ts';
import { printList } from './terminal/table.ts';
import type { Terminal } from './terminal/terminal.ts';

const types = { test: 'test', production: 'production' } as const;

const quotaNames = Object.keys(quotaRows) as QuotaName[];
const quotaMeanings = quotaNames.map((name) => `${name} (${quotaRows[name].meaning})`).join(', ');

/** Rows that the removal of a tenant takes in one commit. */
const rowsMax = 500;

export const tenantCreate: Command = {
  summary: 'Create a tenant and its management key, which is shown only once.',
  flags: {
    name: {
      kind: 'string',
      value: 'NAME',
      meaning: 'your name for the tenant, unique on this vault',
    },
    type: {
      kind: 'string',
      value: 'TYPE',
      meaning: 'test or production (default test, as at the first start)',
    },
    json: jsonFlag,
  },
  examples: ['--name sandbox', '--name acme --type production --json'],
  run: (flags, terminal) => {
    const name = parseHandle(required(flags, 'name'));
    const type = types[String(flags['type'] ?? 'test') as keyof typeof types];
    if (type === undefined) throw new UsageError('--type must be test or production');
    return withVault(terminal, async (vault) => {
      const { tenant, newKey } = await createTenantWithKey(vault, {
        tenant: name,
        type,
        key: undefined,
      });
      print(terminal, flags, {
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
  summary: 'List the tenants, with the quotas that were set.',
  flags: { json: jsonFlag },
  examples: ['', '--json'],
  run: (flags, terminal) =>
    withVault(terminal, async ({ tenants }, config) => {
      const all = await tenants.all();
      const isAnyAway = all.some(({ away_until }) => away_until !== null);
      const moving = isAnyAway ? await tenantsMoving(addressOf(config)) : undefined;
      const rows = all.map((row) => {
        const { tenant_id: id, name, type, away_until } = row;
        const isMoving = away_until !== null && moving?.has(id);
        return {
          id,
          name,
          display_name: nameOf(row),
          type,
          ...(isMoving && { moving: true }),
          ...(away_until === awayForGood && !isMoving && { moved: true }),
          quotas: quotasOf(row.quotas),
        };
      });
      printList(terminal, flags, {
        rows,
        json: (row) => row,
        columns: {
          id: ({ id }) => id,
          name: ({ name }) => name,
          'display name': ({ name, display_name: own }) => (own === name ? '' : own),
          type: ({ type, moved, moving }) =>
            [type, moved && 'moved', moving && 'moving'].filter(Boolean).join(', '),
          quotas: ({ quotas }) => changedQuotas(quotas),
        },
      });
      return 0;
    }),
};

/** Those that differ from the defaults, which `tenant quota` shows as well. */
function changedQuotas(quotas: ReturnType<typeof quotasOf>): string {
  return quotaNames
    .filter((name) => quotas[name] !== quotaRows[name].default)
    .map((name) => `${name}=${formatQuota(name, quotas[name])}`)
    .join(' ');
}

export const tenantQuota: Command = {
  summary: 'Show the quotas of a tenant, or set some; they take effect within a second.',
  flags: {
    tenant: tenantFlag,
    set: {
      kind: 'string',
      value: 'NAME=VALUE',
      repeated: true,
      meaning: `may be repeated; durations such as 90s, 15m, 2h, 7d: ${quotaMeanings}`,
    },
    json: jsonFlag,
  },
  examples: ['--tenant acme', '--tenant acme --set cvc_retention=30m --set detokenize_limit=5000'],
  run: (flags, terminal) => {
    const set = Object.assign({}, ...repeated(flags, 'set').map(readQuota));
    return withVault(terminal, async (vault) => {
      const operator = await operatorOf(vault, flags);
      const { id } = operator.tenant;
      const by = { store: vault.store, actor: operator };
      if (Object.keys(set).length > 0) await perform(by, setQuotas(vault, operator, set));
      const quotas = quotasOf((await tenantRowOf(vault.tenants, operator.tenant)).quotas);
      print(terminal, flags, {
        json: { id, quotas },
        line: quotaNames.map((name) => `${name} ${formatQuota(name, quotas[name])}`).join('\n'),
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
    'Destroy the keys of a tenant, so that its data can never be read again, and delete its rows. Of a tenant that ' +
    'moved to another vault, only the rows that it left here are deleted.',
  flags: {
    tenant: tenantFlag,
    yes: { kind: 'boolean', meaning: 'confirm; this cannot be undone' },
    json: jsonFlag,
  },
  examples: ['--tenant acme --yes'],
  run: async (flags, terminal) => {
    if (flags['yes'] !== true) throw new UsageError('add --yes to confirm: this cannot be undone');
    const forgotten = await forgetTenant(readConfig(terminal.env), required(flags, 'tenant'));
    if (forgotten !== undefined) {
      print(terminal, flags, {
        json: { moved: true, removed_rows: forgotten },
        line: `Removed ${forgotten} rows that the tenant left here when it moved to another vault, which has its keys.`,
      });
      return 0;
    }
    return withVault(terminal, async (vault, { dataDir }) => {
      const operator = await operatorOf(vault, flags);
      const { tenant } = operator;
      const { id, name } = tenant;
      const row = await tenantRowOf(vault.tenants, tenant);
      await perform({ store: vault.store, actor: operator }, deleteTenant(vault, operator));
      const signed = await receiptOfTenant(vault, { tenant, row });
      const receipt = signed ? viewReceipt(signed, tenant) : null;
      // Only this process has the key that signs, and the removal of the rows may be interrupted.
      const file = receipt && keepReceipt(terminal, join(dataDir, `erasure-${id}.json`), receipt);
      const removed = await purge(terminal, vault);
      print(terminal, flags, {
        json: { id, removed_rows: removed, receipt },
        line:
          `Deleted the tenant "${name}" (${id}) and ${removed} rows of it.\n` +
          'Keep this receipt: its key is destroyed, so it cannot be issued again.\n' +
          (file ? `It is in ${file} as well.\n` : '') +
          JSON.stringify(receipt),
      });
      return 0;
    });
  },
};

/** Returns the file with the receipt; `undefined` where it cannot be written, which must not end the deletion. */
function keepReceipt({ stderr }: Terminal, file: string, receipt: object): string | undefined {
  try {
    makePrivateDirectory(dirname(file));
    writeFileSync(file, `${JSON.stringify(receipt)}\n`, { mode: 0o600, flush: true });
    return file;
  } catch (error) {
    stderr.write(`the receipt cannot be written to ${file}: ${systemCodeOf(error) ?? 'unknown'}\n`);
    return undefined;
  }
}

/** Also of tenants that were deleted before and are not removed yet. */
async function purge(
  { stderr }: Terminal,
  vault: Parameters<typeof purgeDeletedTenants>[0],
): Promise<number> {
  let removed = 0;
  for (;;) {
    const count = await purgeDeletedTenants(vault, rowsMax);
    removed += count;
    if (stderr.isTTY) redraw(stderr, `${removed} rows removed`);
    if (count === 0) break;
  }
  if (stderr.isTTY) stderr.write('\n');
  return removed;
}
