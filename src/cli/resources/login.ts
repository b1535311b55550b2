/** `strongroom login` and `logout`: the vault and the key that commands for resources use. */
import { type Command, type Flags, jsonFlag, print, UsageError } from '../terminal/command.ts';
import { secretLines } from '../terminal/secret-lines.ts';
import { readKeyFile, requireEncrypted } from '../terminal/sent-key.ts';
import { printList } from '../terminal/table.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { profileDefault, readProfiles, writeProfiles } from './profiles.ts';
import { requestVault } from './request.ts';

const profileFlag = {
  kind: 'string',
  value: 'NAME',
  meaning: `the name of the profile (default: ${profileDefault})`,
} as const;

export const login: Command = {
  summary:
    'Store the address of a vault and a key for it, and use them in further commands. The key comes from a prompt, ' +
    'standard input or a file, never from an argument.',
  operand: { name: 'URL', meaning: 'the address of the vault, such as https://vault.example.com' },
  flags: {
    profile: profileFlag,
    'key-file': { kind: 'string', value: 'FILE', meaning: 'a file that holds the key' },
    json: jsonFlag,
  },
  examples: [
    'http://127.0.0.1:8080',
    'https://vault.example.com --profile production --key-file key.txt',
  ],
  run: async (flags, terminal) => {
    const url = addressIn(flags);
    const name = nameIn(flags) ?? profileDefault;
    const stored = readProfiles(terminal.env);
    const key = await keyIn(flags, terminal);
    // Any key may ask that: it shows that the address is a vault's and that the key is known there.
    await requestVault({ url, key }, { method: 'GET', path: '/permissions' });
    const file = writeProfiles(terminal.env, {
      current: name,
      profiles: { ...stored.profiles, [name]: { url, key } },
    });
    print(terminal, flags, {
      json: { profile: name, url },
      line: `The profile ${name} is stored in ${file} and in use.`,
    });
    return 0;
  },
};

export const logout: Command = {
  summary: 'Remove a stored profile with its key. The key itself stays valid.',
  flags: { profile: profileFlag, json: jsonFlag },
  examples: ['', '--profile production'],
  run: async (flags, terminal) => {
    const stored = readProfiles(terminal.env);
    const name = nameIn(flags) ?? stored.current;
    const { [name]: removed, ...others } = stored.profiles;
    if (!removed) throw new UsageError('there is no profile of that name');
    const current =
      name === stored.current ? (Object.keys(others)[0] ?? profileDefault) : stored.current;
    writeProfiles(terminal.env, { current, profiles: others });
    print(terminal, flags, { json: { profile: name }, line: `The profile ${name} is removed.` });
    return 0;
  },
};

export const profileList: Command = {
  summary: 'List the stored profiles, without their keys.',
  flags: { json: jsonFlag },
  examples: [''],
  run: async (flags, terminal) => {
    const { current, profiles } = readProfiles(terminal.env);
    const rows = Object.entries(profiles).map(([name, { url }]) => ({
      name,
      url,
      current: name === current,
    }));
    printList(terminal, flags, {
      rows,
      json: (row) => row,
      columns: {
        name: (row) => row.name,
        url: (row) => row.url,
        current: (row) => (row.current ? 'yes' : ''),
      },
    });
    return 0;
  },
};

export const profileUse: Command = {
  summary: 'Use another stored profile in further commands.',
  operand: { name: 'NAME', meaning: 'the name of the profile' },
  flags: { json: jsonFlag },
  examples: ['production'],
  run: async (flags, terminal) => {
    const stored = readProfiles(terminal.env);
    const name = flags['NAME'];
    if (typeof name !== 'string' || !Object.hasOwn(stored.profiles, name)) {
      throw new UsageError(`the NAME must be one of: ${Object.keys(stored.profiles).join(', ')}`);
    }
    writeProfiles(terminal.env, { ...stored, current: name });
    print(terminal, flags, { json: { profile: name }, line: `The profile ${name} is in use.` });
    return 0;
  },
};

function addressIn({ URL: given }: Flags): string {
  if (typeof given !== 'string') throw new UsageError('the URL of the vault is missing');
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (
    url === undefined ||
    !/^https?:$/.test(url.protocol) ||
    url.username !== '' ||
    url.search !== ''
  ) {
    throw new UsageError('the URL must be an http or https address without a user and a query');
  }
  requireEncrypted(url, 'the URL');
  return url.href.replace(/\/$/, '');
}

const nameForm = /^[\w.-]{1,64}$/;

function nameIn({ profile }: Flags): string | undefined {
  if (profile === undefined) return undefined;
  if (typeof profile === 'string' && nameForm.test(profile) && profile !== '__proto__')
    return profile;
  throw new UsageError(
    '--profile must have 1 to 64 letters, digits, dots, hyphens and underscores',
  );
}

async function keyIn(flags: Flags, terminal: Terminal): Promise<string> {
  const file = flags['key-file'];
  if (typeof file === 'string') return readKeyFile(file);
  for await (const line of secretLines(terminal, () => 'Key (not shown): ')) return line.trim();
  throw new UsageError('there is no key on standard input');
}
