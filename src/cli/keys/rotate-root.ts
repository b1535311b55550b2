/** `strongroom keys rotate root`: a new root key, while servers run. */
import { rotateRoot } from '../../access/keyrings/rotate-root.ts';
import { type Command, jsonFlag, print } from '../terminal/command.ts';
import { withVault } from '../terminal/operator.ts';
import { grouped, startProgress } from '../terminal/progress.ts';

export const keysRotateRoot: Command = {
  summary:
    'Replace the root key. With the source "file" it makes a new key and replaces the file; running servers follow. ' +
    'Every tenant gets a new key-encryption key. Run it again to continue a rotation that was interrupted.',
  flags: {
    to: {
      kind: 'string',
      value: 'SOURCE',
      meaning: 'move to this source, whose variables are set next to those of the present one',
    },
    json: jsonFlag,
  },
  examples: ['', '--to environment', '--to command --json'],
  run: (flags) =>
    withVault(async (vault) => {
      const { to } = flags;
      const progress = startProgress('tenants', undefined);
      try {
        const result = await rotateRoot(vault, {
          to: typeof to === 'string' ? to : undefined,
          onProgress: progress.report,
        });
        const { source, keyId, version, generation, tenants, unreadable } = result;
        progress.finish();
        print(flags, {
          json: { source, key_id: keyId, version, generation, tenants, unreadable },
          line: [
            `The root key is now ${keyId} of the source ${source}, and nothing opens with the one before.`,
            `Keys of ${grouped(tenants)} tenants were sealed again.`,
            ...(unreadable > 0
              ? [`The keys of ${grouped(unreadable)} tenants were altered outside the vault.`]
              : []),
            'Back it up separately from the database, and destroy copies of the one before.',
          ].join('\n'),
        });
        return 0;
      } finally {
        progress.finish();
      }
    }),
};
