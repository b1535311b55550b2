/** The root key of a backup that people hold in shares: no server has it yet that could lend it. */
import { pooledRandom } from '../../base/random.ts';
import { RootKeyError, type SharedKeys } from '../../keys/root/root-key.ts';
import { createHeldKeys } from '../../keys/root/shamir.ts';
import { ShareCollection, thresholdOf } from '../../keys/root/shares.ts';
import { sharedKeyIds } from '../../runtime/open-vault.ts';
import { RestoreError } from '../../store/restore-error.ts';
import type { Store } from '../../store/store.ts';
import { secretLines } from '../terminal/secret-lines.ts';
import type { Terminal } from '../terminal/terminal.ts';

/**
 * Reads shares from standard input until they give the key. One that is wrong is named, and the others stay.
 * @throws RestoreError when there are not enough of them.
 */
export async function readSharedKeys(
  terminal: Terminal,
  store: Pick<Store, 'select'>,
): Promise<SharedKeys> {
  const keyIds = await sharedKeyIds(store);
  let needed = thresholdOf(keyIds[0] ?? '') ?? 0;
  const collection = new ShareCollection();
  const prompt = () => `Share ${collection.given + 1} of ${needed}: `;
  for await (const line of secretLines(terminal, prompt)) {
    try {
      const { key, threshold } = await collection.add(line, keyIds);
      needed = threshold;
      if (key === undefined) continue;
      const held = createHeldKeys(pooledRandom());
      held.add(key, threshold);
      return held;
    } catch (error) {
      if (!(error instanceof RootKeyError)) throw error;
      terminal.stderr.write(`${error.message}\n`);
    }
  }
  throw new RestoreError(
    `The root key of the backup is in shares, and ${collection.given} of ${needed} were given. Give them on standard ` +
      'input, one a line. Nothing was changed.',
  );
}
