/** `strongroom unseal`: gives one share of the root key to the server that waits for it. */
import { readConfig } from '../runtime/config/config.ts';
import { askServer } from '../runtime/root-key-socket.ts';
import { type Command, jsonFlag, print, UsageError } from './terminal/command.ts';

const lineBytesMax = 1024;

/** Ctrl-C and Ctrl-D, which a terminal in raw mode gives as characters. */
const endings = [3, 4].map((code) => String.fromCharCode(code));

export const unsealCommand: Command = {
  summary:
    'Give one share of the root key to the server of this data directory, and print how many are still missing. ' +
    'The share is read from standard input. With the last one the server opens the vault.',
  flags: { json: jsonFlag },
  examples: ['', '--json < share.txt'],
  run: async (flags) => {
    const { dataDir } = readConfig();
    const share = await readShare();
    if (share === '') throw new UsageError('there is no share on standard input');
    const response = await askServer(dataDir, { operation: 'share', share });
    const sealed = response['sealed'] !== false;
    const given = Number(response['given']);
    const needed = Number(response['needed']);
    print(flags, {
      json: { sealed, given, needed },
      line: sealed
        ? `Share ${given} of ${needed} was accepted. ${needed - given} more unseal the vault.`
        : `Share ${given} of ${needed} was accepted. The vault is unsealed.`,
    });
    return 0;
  },
};

/** The first line. On a terminal it is not shown. */
async function readShare(): Promise<string> {
  const { stdin, stderr } = process;
  const isTerminal = stdin.isTTY === true;
  if (isTerminal) {
    stderr.write('Share: ');
    stdin.setRawMode(true);
  }
  let text = '';
  try {
    for await (const chunk of stdin) {
      text += String(chunk);
      if (isTerminal && endings.some((one) => text.includes(one))) return '';
      if (/[\r\n]/.test(text.trimStart()) || text.length > lineBytesMax) break;
    }
  } finally {
    if (isTerminal) {
      stdin.setRawMode(false);
      stderr.write('\n');
    }
  }
  return text.trimStart().split(/[\r\n]/, 1)[0] ?? '';
}
