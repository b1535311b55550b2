/** The shares of a new root key, which a command prints before the key is used for the first time. */
import { pooledRandom } from '../../base/random.ts';
import { newWrappingKey, RootKeyError, type SharedKeys } from '../../keys/root/root-key.ts';
import { createHeldKeys } from '../../keys/root/shamir.ts';
import { requireShareCount, type ShareCount, splitRootKey } from '../../keys/root/shares.ts';
import { lentKeys } from '../../runtime/lent-keys.ts';
import { askServer, NoServerError } from '../../runtime/root-key-socket.ts';
import { type Flags, UsageError } from '../terminal/command.ts';

/** @throws UsageError for one flag without the other, RootKeyError for numbers that cannot be. */
export function shareCountOf(flags: Flags): ShareCount | undefined {
  const { shares, threshold } = flags;
  if (shares === undefined && threshold === undefined) return undefined;
  if (shares === undefined || threshold === undefined) {
    throw new UsageError('--shares and --threshold must be given together');
  }
  const count = { shares: Number(shares), threshold: Number(threshold) };
  requireShareCount(count);
  return count;
}

/** The keys of a command that may make a new one. */
export interface NewShares extends SharedKeys {
  /** Whether it has printed shares. */
  readonly isPrinted: boolean;
}

/** The running server with the data directory gets the new key as soon as its shares are printed. */
export function newShares(
  dataDir: string,
  {
    count,
    print,
  }: {
    readonly count: ShareCount | undefined;
    /** Resolves when the shares have reached their reader. */
    readonly print: (shares: readonly string[]) => Promise<void>;
  },
): NewShares {
  const random = pooledRandom();
  const own = createHeldKeys(random);
  const lent = lentKeys(dataDir);
  let isPrinted = false;
  return {
    get isPrinted() {
      return isPrinted;
    },
    find: async (keyId) => (await own.find(keyId)) ?? lent.find(keyId),
    newest: async () => (await own.newest()) ?? lent.newest(),
    renew: async () => {
      if (await own.newest()) return;
      if (count === undefined) {
        throw new RootKeyError('say how many shares there are: --shares 5 --threshold 3');
      }
      const key = newWrappingKey(random);
      const shares = await splitRootKey(key, count);
      await print(shares);
      isPrinted = true;
      await handOver(dataDir, shares.slice(0, count.threshold));
      own.add(key, count.threshold);
    },
  };
}

async function handOver(dataDir: string, shares: readonly string[]): Promise<void> {
  try {
    await askServer(dataDir, { operation: 'take', shares });
  } catch (error) {
    if (error instanceof NoServerError) return;
    throw error;
  }
}
