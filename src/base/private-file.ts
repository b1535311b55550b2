/** Files with secrets: only their owner reads them, and a crash leaves such a file whole or absent. */
import {
  closeSync,
  createWriteStream,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  type Stats,
  type WriteStream,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { systemCodeOf } from './errors.ts';
import type { Random } from './random.ts';

const privateMode = 0o600;

/**
 * The mode of a file that users besides its owner have access to, such as `0644`; `undefined` for a private file. In a
 * file of root, the group of another user may read: systemd and Kubernetes give a service its secrets so.
 * @param reader the user who reads it.
 */
export function exposedMode(
  { uid, mode }: Pick<Stats, 'uid' | 'mode'>,
  reader = process.getuid?.(),
): string | undefined {
  if (process.platform === 'win32') return undefined;
  const isLent = uid === 0 && reader !== 0;
  if ((mode & (isLent ? 0o037 : 0o077)) === 0) return undefined;
  return (mode & 0o777).toString(8).padStart(4, '0');
}

/**
 * Empties or creates the file, and removes all other users' access before the first byte is written: the mode passed
 * to `open` applies only to new files. Devices and pipes keep their mode.
 */
export function createPrivateFile(file: string): WriteStream {
  const fd = openSync(file, 'w', privateMode);
  try {
    if (fstatSync(fd).isFile()) fchmodSync(fd, privateMode);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  return createWriteStream(file, { fd });
}

/**
 * Creates the file unless it exists already, and returns whether it did. The text is written to another file first and
 * then linked into place: a link never overwrites, and a crash leaves either no file or a complete one. If two
 * processes create it, one wins, and both read what the winner wrote.
 */
export function createDurably(file: string, text: string, random: Random): boolean {
  const draft = draftOf(file, random);
  try {
    writeDurably(draft, text);
    return linkUnlessPresent(draft, file);
  } finally {
    rmSync(draft, { force: true });
    // The process that lost also syncs: it must not use a secret whose file could still vanish.
    syncDirectory(dirname(file));
  }
}

/**
 * Replaces the file in one step: a crash leaves the old content or the new one, whole.
 * @param like whose owner and mode the file gets.
 */
export function replaceDurably(file: string, text: string, random: Random, like?: Stats): void {
  const draft = draftOf(file, random);
  try {
    writeDurably(draft, text, like);
    renameSync(draft, file);
  } finally {
    rmSync(draft, { force: true });
  }
  syncDirectory(dirname(file));
}

/** The name of a file next to it, which takes its place when it is complete. */
function draftOf(file: string, random: Random): string {
  return `${file}.${random(8).toString('hex')}.draft`;
}

function linkUnlessPresent(draft: string, file: string): boolean {
  try {
    linkSync(draft, file);
    return true;
  } catch (error) {
    if (systemCodeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

function writeDurably(file: string, text: string, like?: Stats): void {
  const descriptor = openSync(file, 'wx', privateMode);
  try {
    const own = fstatSync(descriptor);
    if (like && (like.uid !== own.uid || like.gid !== own.gid)) {
      fchownSync(descriptor, like.uid, like.gid);
    }
    // The umask of the process may have removed even the owner's permissions.
    fchmodSync(descriptor, like ? like.mode & 0o700 : privateMode);
    writeSync(descriptor, text);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function syncDirectory(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
