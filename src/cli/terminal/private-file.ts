/** Files that hold values in plaintext: readable only by their owner, also where they existed before. */
import {
  closeSync,
  createWriteStream,
  fchmodSync,
  fstatSync,
  openSync,
  type WriteStream,
} from 'node:fs';

const privateMode = 0o600;

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
