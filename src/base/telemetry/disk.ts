/** How much room the file system of a directory has. */
import { statfs } from 'node:fs/promises';

export interface DiskSpace {
  readonly sizeBytes: number;
  /** What a process without privileges may still use. */
  readonly freeBytes: number;
}

/** `undefined` where the system does not say. */
export async function diskSpaceOf(directory: string): Promise<DiskSpace | undefined> {
  try {
    const { bsize, blocks, bavail } = await statfs(directory);
    return { sizeBytes: bsize * blocks, freeBytes: bsize * bavail };
  } catch {
    return undefined;
  }
}
