/** `strongroom unseal`: gives one share of the root key to the server that waits for it. */
import { readConfig } from '../runtime/config/config.ts';
import { askServer } from '../runtime/root-key-socket.ts';
import { type Command, jsonFlag, print, UsageError } from './terminal/command.ts';
import { secretLines } from './terminal/secret-lines.ts';
import type { Terminal } from './terminal/terminal.ts';

export const unsealCommand: Command = {
  summary:
    'Give one share of the root key to the server of this data directory, and print how many are still missing. ' +
    'The share is read from standard input. With the last one the server opens the vault.',
  flags: { json: jsonFlag },
  examples: ['', '--json < share.txt'],
  run: async (flags, terminal) => {
    const { dataDir } = readConfig(terminal.env);
    const share = await readShare(terminal);
    if (share === '') throw new UsageError('there is no share on standard input');
    const response = await askServer(dataDir, { operation: 'share', share });
    const sealed = response['sealed'] !== false;
    const given = Number(response['given']);
    const needed = Number(response['needed']);
    print(terminal, flags, {
      json: { sealed, given, needed },
      line: sealed
        ? `Share ${given} of ${needed} was accepted. ${needed - given} more unseal the vault.`
        : `Share ${given} of ${needed} was accepted. The vault is unsealed.`,
    });
    return 0;
  },
};

/** The first line; empty if there is none. */
async function readShare(terminal: Terminal): Promise<string> {
  for await (const line of secretLines(terminal, () => 'Share: ')) return line.trim();
  return '';
}
