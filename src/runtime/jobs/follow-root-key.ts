/** Following the root key: a rotation that was interrupted goes on, and a key that was rotated out is forgotten. */
import { rotateRoot } from '../../access/keyrings/rotate-root.ts';
import { isAbandoned, storedRotation } from '../../access/keyrings/rotation-lock.ts';
import type { ProcessVaultKeys } from '../../access/keyrings/vault-keys.ts';
import { minute, second } from '../../base/clock.ts';
import { createGrowingPause } from '../../base/pauses.ts';
import type { RootKeys } from '../../keys/root/sources.ts';
import type { JobTools } from './batches.ts';
import type { Job } from './runner.ts';

export interface RootKeyTools extends JobTools {
  readonly roots: RootKeys;
  readonly vaultKeys: ProcessVaultKeys;
}

/** Between attempts to continue a rotation that this server cannot finish, for example for lack of permissions. */
const attemptPauses = { firstMs: 10 * second, maxMs: 10 * minute };

export function followRootKey(tools: RootKeyTools): Job {
  const { clock, vaultKeys, roots } = tools;
  const growing = createGrowingPause(attemptPauses);
  let nextAttemptAt = Number.NEGATIVE_INFINITY;
  let generation: number | undefined;

  async function follow(): Promise<void> {
    const { current } = await vaultKeys.refresh();
    if (current?.stored.generation === generation) return;
    await roots.reload();
    generation = current?.stored.generation;
  }

  async function goOn(): Promise<number> {
    if (clock.now() < nextAttemptAt) return 0;
    nextAttemptAt = clock.now() + growing.next();
    const { tenants } = await rotateRoot(tools);
    growing.reset();
    nextAttemptAt = Number.NEGATIVE_INFINITY;
    return tenants;
  }

  return {
    name: 'follow the root key',
    everyMs: 5 * second,
    run: async () => {
      const rotation = await storedRotation(tools);
      if (rotation) return isAbandoned(rotation, clock) ? goOn() : 0;
      await follow();
      return 0;
    },
  };
}
