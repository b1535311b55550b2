/** `strongroom keys rotate root`: a new root key, while servers run. */
import { rotateRoot } from '../../access/keyrings/rotate-root.ts';
import { storedRotation } from '../../access/keyrings/rotation-lock.ts';
import { RootKeyError } from '../../keys/root/root-key.ts';
import { shamirName } from '../../keys/root/shamir.ts';
import type { Vault } from '../../runtime/open-vault.ts';
import { type Command, type Flags, jsonFlag, print, UsageError } from '../terminal/command.ts';
import { withVault } from '../terminal/operator.ts';
import { counted, startProgress } from '../terminal/progress.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { type NewShares, newShares, shareCountOf } from './new-shares.ts';

export const keysRotateRoot: Command = {
  summary:
    'Replace the root key. With the source "file" it makes a new key and replaces the file; running servers follow. ' +
    'With "shamir" it makes a new key and prints its shares, once. ' +
    'Every tenant gets a new key-encryption key. Run it again to continue a rotation that was interrupted.',
  flags: {
    to: {
      kind: 'string',
      value: 'SOURCE',
      meaning: 'move to this source, whose variables are set next to those of the present one',
    },
    shares: { kind: 'string', value: 'COUNT', meaning: 'with "shamir": how many shares are made' },
    threshold: {
      kind: 'string',
      value: 'COUNT',
      meaning: 'with "shamir": how many of them give the root key',
    },
    json: jsonFlag,
  },
  examples: ['', '--to vault-transit', '--to shamir --shares 5 --threshold 3 --json'],
  run: async (flags, terminal) => {
    const { to } = flags;
    const count = shareCountOf(flags);
    let made: NewShares | undefined;
    return withVault(
      terminal,
      async (vault) => {
        if (count === undefined) await refuseWithoutCount(vault, to);
        const progress = startProgress(terminal, 'tenants', undefined);
        try {
          const result = await rotateRoot(vault, {
            to: typeof to === 'string' ? to : undefined,
            onProgress: progress.report,
          });
          const { source, keyId, version, generation, tenants, unreadable } = result;
          progress.finish();
          // Then its one object are the shares.
          if (made?.isPrinted && flags['json'] === true) return 0;
          print(terminal, flags, {
            json: { source, key_id: keyId, version, generation, tenants, unreadable },
            line: [
              `The root key is now ${keyId} of the source ${source}, and nothing opens with the one before.`,
              `The keys of ${counted(tenants, 'tenant')} were sealed again.`,
              ...(unreadable > 0
                ? [`The keys of ${counted(unreadable, 'tenant')} were altered outside the vault.`]
                : []),
              made?.isPrinted
                ? 'Hand out the shares, set STRONGROOM_ROOT_KEY_SOURCE=shamir, and destroy copies of the key before.'
                : 'Back it up separately from the database, and destroy copies of the one before.',
            ].join('\n'),
          });
          return 0;
        } finally {
          progress.finish();
        }
      },
      ({ dataDir }) => {
        made = newShares(dataDir, {
          count,
          print: (shares) => printShares(terminal, shares, flags['json'] === true),
        });
        return made;
      },
    );
  },
};

/** Before anything begins. What was interrupted may have its shares already. */
async function refuseWithoutCount(vault: Vault, to: Flags[string]): Promise<void> {
  if (await storedRotation(vault)) return;
  const { current } = await vault.vaultKeys.refresh();
  if ((to ?? current?.stored.header?.source) !== shamirName) return;
  throw new UsageError('say how many shares there are: --shares 5 --threshold 3');
}

/** The rotation goes on when they are printed: a key whose shares are lost would be lost. */
async function printShares(
  { stdout }: Terminal,
  shares: readonly string[],
  isJson: boolean,
): Promise<void> {
  const text = isJson
    ? JSON.stringify({ shares })
    : [
        `The ${shares.length} shares of the new root key, shown only once. Give each to another person:`,
        ...shares,
      ].join('\n');
  await new Promise<void>((resolve, reject) => {
    stdout.write(`${text}\n`, (error) => {
      if (!error) resolve();
      else reject(new RootKeyError('the shares could not be printed, so nothing was changed'));
    });
  });
}
