/** The space on the disk that growing writes leave free for reading and deleting. */
import type { DiskSpace } from '../../base/telemetry/disk.ts';

const gibibyte = 2 ** 30;

/** The default if the operator sets none: this many bytes, and on a small disk this part of it. */
const freeBytesMinDefault = { most: gibibyte, ofDisk: 0.05 } as const;

/**
 * Below this many free bytes, changes that would store more are refused.
 * @param given what the operator configured, in bytes.
 */
export function freeBytesFloor(
  { sizeBytes }: Pick<DiskSpace, 'sizeBytes'>,
  given: number | undefined,
): number {
  return given ?? Math.min(freeBytesMinDefault.most, freeBytesMinDefault.ofDisk * sizeBytes);
}
