/** `strongroom key find` and `key revoke`: a key that leaked, from its text to its end. */
import { deleteKey } from '../access/applications/keys.ts';
import { applicationWithKey, keyOfTenant } from '../access/applications/queries.ts';
import { formatTimestamp } from '../base/dates.ts';
import { apiKeyPlausible, hashApiKey } from '../keys/api-key.ts';
import type { Operator } from '../rules/caller.ts';
import { entryOf } from '../rules/log-entries.ts';
import { perform } from '../rules/operation.ts';
import { ifProven, requireProven } from '../rules/proven-row.ts';
import type { Vault } from '../runtime/open-vault.ts';
import { sessionsOfKey } from '../store/queries/sessions.ts';
import type { Row } from '../store/tables.ts';
import { keyIdOf } from './logs/read.ts';
import { type Command, jsonFlag, print, UsageError } from './terminal/command.ts';
import { operatorOfOnly, soleTenantFlag, withVault } from './terminal/operator.ts';
import { secretLines } from './terminal/secret-lines.ts';
import type { Terminal } from './terminal/terminal.ts';

export const keyFind: Command = {
  summary:
    'Read a key from standard input and say whose it is. The key is never an argument, which other ' +
    'users of the machine can see.',
  flags: { json: jsonFlag },
  examples: ['< leaked-key.txt', '--json < leaked-key.txt'],
  run: async (flags, terminal) => {
    const text = await keyFrom(terminal);
    return withVault(terminal, async (vault) => {
      const stored = await vault.store.get('api_keys', { key_hash: hashApiKey(text) });
      if (stored === undefined) {
        terminal.stderr.write(
          'strongroom key find: the vault has no such key, or has it no longer\n',
        );
        return 1;
      }
      const tenant = await vault.tenants.find(stored.tenant_id);
      if (!tenant) throw new UsageError('the tenant of the key is deleted, or its row was altered');
      const operator = { tenant, application: null } as const;
      const key = requireProven(tenant, 'api_keys', stored);
      await recordRead(vault, operator, key);
      const application = await applicationOfKey(vault, operator, key);
      const all = await vault.tenants.all();
      const name = all.find(({ tenant_id }) => tenant_id === tenant.id)?.name;
      const found = {
        tenant_id: tenant.id,
        tenant: name,
        application_id: key.application_id,
        application: application?.name,
        type: key.session_id === null ? application?.type : 'session',
        key_id: key.key_id,
        ...(key.session_id !== null && { session_id: key.session_id }),
        created_at: formatTimestamp(key.created_at),
        ...(key.last_used_at !== null && { last_used_at: formatTimestamp(key.last_used_at) }),
      };
      const holder = `${found.type ?? 'unknown'} application ${found.application ?? ''}`;
      print(terminal, flags, {
        json: found,
        line:
          `The key ${key.key_id} of the ${holder} (${key.application_id}) of the tenant ${name} ` +
          `(${tenant.id}), created ${found.created_at}`,
      });
      return 0;
    });
  },
};

async function keyFrom(terminal: Terminal): Promise<string> {
  for await (const line of secretLines(terminal, () => 'Key: ')) {
    const text = line.trim();
    if (apiKeyPlausible(text)) return text;
    throw new UsageError('standard input does not begin with a key; a character may be missing');
  }
  throw new UsageError('give the key on standard input');
}

async function recordRead(
  { store, clock }: Vault,
  operator: Operator,
  { key_id: id }: Row<'api_keys'>,
): Promise<void> {
  const fact = { entity: 'application_key', id, operation: 'read' } as const;
  await store.commit({ entries: [entryOf(operator, clock.now(), fact)] });
}

async function applicationOfKey(
  { store }: Vault,
  { tenant }: Operator,
  { application_id }: Row<'api_keys'>,
): Promise<Row<'applications'> | undefined> {
  const row = await store.get('applications', { tenant_id: tenant.id, application_id });
  return row && ifProven(tenant, 'applications', row);
}

export const keyRevoke: Command = {
  summary:
    'End a key, with every session that it opened or authorized. It stops working within a second. ' +
    'Calls that it began are ended, too.',
  flags: { tenant: soleTenantFlag, json: jsonFlag },
  operand: { name: 'KEY', meaning: 'id of the key; `key find` gives it' },
  examples: ['KEY', 'KEY --tenant default --json'],
  run: (flags, terminal) => {
    const keyId = keyIdOf(flags, 'KEY');
    return withVault(terminal, async (vault) => {
      const operator = await operatorOfOnly(vault, flags);
      const { store, clock } = vault;
      const { tenant } = operator;
      const live = { tenant: tenant.id, key: keyId, now: clock.now() };
      const sessions = (await store.select(sessionsOfKey(live))).map(
        ({ session_id }) => session_id,
      );
      const stored = await keyOfTenant(store, tenant, keyId).catch(() => undefined);
      if (stored?.session_id != null) {
        throw new UsageError(
          `this is the key of session ${stored.session_id}; revoke the key that opened the session, ` +
            'or wait for its end',
        );
      }
      const id = await applicationWithKey(store, tenant, keyId);
      await perform({ store, actor: operator }, deleteKey(vault, operator, { id, keyId }));
      const json = { key_id: keyId, application_id: id, sessions };
      const count = sessions.length === 1 ? '1 session' : `${sessions.length} sessions`;
      print(terminal, flags, {
        json,
        line: `Revoked the key ${keyId} of the application ${id}, and with it ${count}.`,
      });
      return 0;
    });
  },
};
