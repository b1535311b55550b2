/** `strongroom keys list`: the versions of keys, with how many rows are under each. */
import { type ListedKey, listTenantKeys } from '../../access/key-rotations/key-list.ts';
import { listRootKeys } from '../../access/key-rotations/root-key-list.ts';
import { tenantRowOf } from '../../access/tenants/read.ts';
import { type Command, jsonFlag } from '../terminal/command.ts';
import { withVault } from '../terminal/operator.ts';
import { printList } from '../terminal/table.ts';
import { operatorsOf, someTenantFlag } from './tenants.ts';

export const keysList: Command = {
  summary:
    'List the versions of keys, and how many rows are under each of them. A version without rows, which is not ' +
    'active, can be destroyed. It reads all rows.',
  flags: { tenant: someTenantFlag, json: jsonFlag },
  examples: ['', '--tenant acme --json'],
  run: (flags, terminal) =>
    withVault(terminal, async (vault) => {
      const keys: ListedKey[] =
        flags['tenant'] === undefined ? [...(await listRootKeys(vault))] : [];
      for (const { tenant } of await operatorsOf(vault, flags)) {
        keys.push(...(await listTenantKeys(vault, await tenantRowOf(vault.tenants, tenant))));
      }
      if (flags['json'] === true) {
        terminal.stdout.write(`${JSON.stringify({ keys })}\n`);
        return 0;
      }
      printList(terminal, flags, {
        rows: keys,
        json: (key) => key,
        columns: {
          purpose: ({ purpose }) => purpose,
          tenant: ({ tenant_id }) => tenant_id ?? '',
          version: ({ version }) => String(version),
          state: ({ state }) => state,
          rows: ({ rows }) => (rows === null ? '' : String(rows)),
          created: ({ created_at }) => created_at,
        },
      });
      return 0;
    }),
};
