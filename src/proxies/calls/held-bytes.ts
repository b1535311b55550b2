/** Limits the memory for bodies that expressions and transforms read. */
import { VaultError } from '../../base/errors.ts';

/** Bytes as received: processing a string may take six times as much. */
export const heldBytesMax = { ofAll: 128 * 1024 * 1024, ofPartition: 32 * 1024 * 1024 };

export interface HeldShare {
  /** @throws VaultError `overloaded` if there is no room for that many more bytes. */
  hold(bytes: number): void;
  /** Releases all bytes, once; none can be held after that. */
  release(): void;
}

/**
 * @param limits in bytes; `ofPartition` applies to each tenant. No tenant holds more than it leaves free, so that some
 * tenants together do not hold everything.
 */
export function createHeldBytes(limits = heldBytesMax): (partition: string) => HeldShare {
  const held = new Map<string, number>();
  let total = 0;

  function count(partition: string, change: number): void {
    total += change;
    const left = (held.get(partition) ?? 0) + change;
    if (left > 0) held.set(partition, left);
    else held.delete(partition);
  }

  return (partition) => {
    let own = 0;
    let isOver = false;
    return {
      hold: (bytes) => {
        const ofPartition = (held.get(partition) ?? 0) + bytes;
        const free = limits.ofAll - total - bytes;
        if (isOver || ofPartition > Math.min(limits.ofPartition, free)) throw noRoom();
        own += bytes;
        count(partition, bytes);
      },
      release: () => {
        if (!isOver) count(partition, -own);
        isOver = true;
      },
    };
  };
}

function noRoom(): VaultError {
  return new VaultError('overloaded', {
    public: 'Too many calls of proxies with large texts are under way.',
    internal: 'the memory for bodies of proxy calls is full',
  });
}
