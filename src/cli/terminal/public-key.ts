/** Public keys that the caller trusts, for commands that verify what the vault has signed. */
import { readPublicKey } from '../../keys/signing.ts';
import { type Flag, UsageError } from './command.ts';
import { readGivenFile } from './given-text.ts';

export const publicKeyFlag: Flag = {
  kind: 'string',
  value: 'KEY',
  repeated: true,
  meaning: 'a trusted public key: base64, or a file with PEM or base64',
};

/** @throws UsageError for anything but an Ed25519 key. */
export function readTrustedKey(given: string): string {
  const key = readPublicKey(given) ?? readPublicKey(readGivenFile(given));
  if (key !== undefined) return key;
  throw new UsageError('--public-key must be an Ed25519 key, or a file that contains one');
}
