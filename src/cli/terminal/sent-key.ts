/** A key that a command sends: it crosses no network in plaintext, and comes from no file that others may read. */
import { exposedMode } from '../../base/private-file.ts';
import { UsageError } from './command.ts';
import { readGivenFile } from './given-text.ts';

/** @throws UsageError for plain HTTP beyond loopback. @param name what the user gave. */
export function requireEncrypted({ protocol, hostname }: URL, name: string): void {
  const isLocal = /^(?:localhost|127\.0\.0\.1|\[::1\])$/.test(hostname);
  if (protocol !== 'http:' || isLocal) return;
  throw new UsageError(`${name} must be https, because the key is sent there`);
}

/** @throws UsageError where others may read it. */
export function readKeyFile(file: string): string {
  const text = readGivenFile(file, {
    require: (stats) => {
      if (exposedMode(stats) === undefined) return;
      throw new UsageError(`others may read ${file}, which has a key; run chmod 600 on it`);
    },
  });
  return text.trim();
}
