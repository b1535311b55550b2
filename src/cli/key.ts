/** `strongroom key …`: keys, for the operator of a vault whose own keys are lost or leaked. */

import { viewKey } from '../access/applications/api-key-row.ts';
import { createKey, deleteKey } from '../access/applications/keys.ts';
import { applicationWithKey, provenKeysOfAll } from '../access/applications/queries.ts';
import { createManagement } from '../access/tenants/bootstrap.ts';
import { formatTimestamp } from '../base/dates.ts';
import type { Operator } from '../rules/caller.ts';
import { perform } from '../rules/operation.ts';
import type { Vault } from '../runtime/open-vault.ts';
import { type Command, type Flags, jsonFlag, print, required } from './terminal/command.ts';
import { operatorOf, tenantFlag, withVault } from './terminal/operator.ts';
import { printList } from './terminal/table.ts';

const applicationFlag = {
  kind: 'string',
  value: 'ID',
  meaning: 'id of the application',
} as const;

export const keyCreate: Command = {
  summary:
    'Create a key, which is shown only once; without --application, the key of a new management application.',
  flags: { tenant: tenantFlag, application: applicationFlag, json: jsonFlag },
  examples: ['--tenant default', '--tenant default --application ID --json'],
  run: (flags, terminal) =>
    withVault(terminal, async (vault) => {
      const operator = await operatorOf(vault, flags);
      const { body } = await perform(
        { store: vault.store, actor: operator },
        creation(vault, operator, flags),
      );
      const { application_id, id, key } = body as Readonly<Record<string, string>>;
      print(terminal, flags, {
        json: { application_id, id, key },
        line: `Created the key ${id} of the application ${application_id}, shown only once: ${key}`,
      });
      return 0;
    }),
};

function creation(vault: Vault, operator: Operator, { application }: Flags) {
  return typeof application === 'string'
    ? createKey(vault, operator, application)
    : createManagement(vault, operator);
}

export const keyList: Command = {
  summary: 'List the keys of a tenant, without their text, and when each was last used.',
  flags: { tenant: tenantFlag, json: jsonFlag },
  examples: ['--tenant default', '--tenant default --json'],
  run: (flags, terminal) =>
    withVault(terminal, async (vault) => {
      const { tenant } = await operatorOf(vault, flags);
      printList(terminal, flags, {
        rows: await provenKeysOfAll(vault.store, tenant),
        json: viewKey,
        columns: {
          id: (row) => row.key_id,
          application: (row) => row.application_id,
          created: (row) => formatTimestamp(row.created_at),
          'last used': (row) =>
            row.last_used_at === null ? 'never' : formatTimestamp(row.last_used_at),
        },
      });
      return 0;
    }),
};

export const keyDelete: Command = {
  summary: 'Delete a key; it stops working within a second.',
  flags: {
    tenant: tenantFlag,
    key: { kind: 'string', value: 'ID', meaning: 'id of the key' },
    json: jsonFlag,
  },
  examples: ['--tenant default --key ID'],
  run: (flags, terminal) => {
    const keyId = required(flags, 'key');
    return withVault(terminal, async (vault) => {
      const operator = await operatorOf(vault, flags);
      const id = await applicationWithKey(vault.store, operator.tenant, keyId);
      await perform(
        { store: vault.store, actor: operator },
        deleteKey(vault, operator, { id, keyId }),
      );
      print(terminal, flags, { json: { id: keyId }, line: `Deleted the key ${keyId}.` });
      return 0;
    });
  },
};
