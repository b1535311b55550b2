/** With which key, and for which vault, a command works for an agent. */
import { readVariable } from '../../runtime/config/config.ts';
import { type Profile, profileFor } from '../resources/profiles.ts';
import { type Flag, type Flags, UsageError } from '../terminal/command.ts';
import { readKeyFile } from '../terminal/sent-key.ts';
import type { Terminal } from '../terminal/terminal.ts';

export const keyFlags: Readonly<Record<'key-file' | 'profile', Flag>> = {
  'key-file': {
    kind: 'string',
    value: 'FILE',
    meaning: 'a file that holds the key, for the vault at STRONGROOM_URL or http://127.0.0.1:8080',
  },
  profile: {
    kind: 'string',
    value: 'NAME',
    ids: 'profile',
    meaning:
      'a vault and a key that strongroom login has stored (default: STRONGROOM_KEY, or the current profile)',
  },
};

/** @throws UsageError for a file that others may read. */
export function profileIn(flags: Flags, { env }: Terminal): Profile {
  const { 'key-file': file, profile } = flags;
  if (typeof file !== 'string') {
    return profileFor(env, typeof profile === 'string' ? profile : undefined);
  }
  if (profile !== undefined) throw new UsageError('give --key-file or --profile, not both');
  const url = readVariable(env, 'STRONGROOM_URL') ?? 'http://127.0.0.1:8080';
  return { url, key: readKeyFile(file) };
}
