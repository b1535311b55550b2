/** `strongroom keys destroy`: removes the key of a version that has no rows any more. */
import { destroyKey } from '../../access/key-rotations/destroy.ts';
import { keyPurposes, parseKeyPurpose } from '../../access/key-rotations/key-list.ts';
import { VaultError } from '../../base/errors.ts';
import { perform } from '../../rules/operation.ts';
import { type Command, jsonFlag, print, UsageError } from '../terminal/command.ts';
import { withVault } from '../terminal/operator.ts';
import { counted } from '../terminal/progress.ts';
import { operatorsOf, someTenantFlag } from './tenants.ts';

export const keysDestroy: Command = {
  summary:
    'Destroy a version of a key. The active version, and one that has rows, are refused. Backups keep the key that ' +
    'they were made with.',
  operand: [
    { name: 'PURPOSE', meaning: 'what the key is for', choices: keyPurposes },
    { name: 'VERSION', meaning: 'number of the version, as in `keys list`' },
  ],
  flags: {
    tenant: someTenantFlag,
    yes: { kind: 'boolean', meaning: 'confirm; this cannot be undone' },
    json: jsonFlag,
  },
  examples: ['data 1 --tenant acme --yes', 'webhooks 1 --yes --json'],
  run: (flags, terminal) => {
    const purpose = parseKeyPurpose(String(flags['PURPOSE']));
    if (purpose === undefined) {
      throw new UsageError(`PURPOSE must be one of ${keyPurposes.join(', ')}`);
    }
    const version = Number(flags['VERSION']);
    if (!Number.isSafeInteger(version) || version < 1) {
      throw new UsageError('VERSION must be a number from 1');
    }
    if (flags['yes'] !== true) throw new UsageError('add --yes to confirm: this cannot be undone');
    return withVault(terminal, async (vault) => {
      const destroyed: string[] = [];
      let refusal: unknown;
      for (const actor of await operatorsOf(vault, flags)) {
        try {
          const by = { store: vault.store, actor };
          await perform(by, destroyKey(vault, actor, { purpose, version }));
          destroyed.push(actor.tenant.id);
        } catch (error) {
          if (!(error instanceof VaultError)) throw error;
          refusal ??= error;
        }
      }
      if (refusal !== undefined) throw refusal;
      print(terminal, flags, {
        json: { purpose, version, tenants: destroyed },
        line: `Destroyed version ${version} of the ${purpose} key of ${counted(destroyed.length, 'tenant')}.`,
      });
      return 0;
    });
  },
};
