/** The free and total space of a directory's file system. */
import { statfs } from 'node:fs/promises';

export interface DiskSpace {
  readonly sizeBytes: number;
  /** Bytes that an unprivileged process may still use. */
  readonly freeBytes: number;
}

/** `undefined` if the system does not provide it. */
export async function diskSpaceOf(directory: string): Promise<DiskSpace | undefined> {
  try {
    const { bsize, blocks, bavail } = await statfs(directory);
    return { sizeBytes: bsize * blocks, freeBytes: bsize * bavail };
  } catch {
    return undefined;
  }
}
