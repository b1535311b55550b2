/** Serves requests of the threads with the parts that the process has once. */
import assert from 'node:assert/strict';
import type { Limit, Limiter } from '../store/limiter.ts';
import type { LookUp, ProcessCalls } from './messages.ts';
import type { Process } from './process.ts';
import { vaultKeyCalls } from './remote-vault-keys.ts';

/** Makes the calls of one thread. What it holds, such as its turn to look a key up, it loses with its end. */
export function createSharedCalls(process: Process): (ended: Promise<unknown>) => ProcessCalls {
  const { store, log, metrics, shared, ownNotes } = process;
  // The thread has watched them.
  const counted = process.storeWith({ watchUse: undefined });
  const keyCalls = vaultKeyCalls(process.vaultKeys);
  const limiters = new Map<string, Limiter>();

  const limiterOf = (limit: Limit): Limiter => {
    const limiter = limiters.get(limit.name) ?? store.limiter(limit);
    limiters.set(limit.name, limiter);
    return limiter;
  };

  return (ended) => {
    const lookUps = new Map<LookUp, () => void>();
    let latest: LookUp = 0;
    void ended.then(() => {
      for (const finish of lookUps.values()) finish();
    });
    return {
      ...keyCalls,
      writerPort: () => {
        assert(store.writerPort, 'only the embedded engine has a writer');
        return store.writerPort();
      },
      ping: () => store.ping(),
      countRequests: ({ limit, key, times }) => limiterOf(limit).count(key, times),
      takeRequests: ({ limit, key, wanted }) => limiterOf(limit).take(key, wanted),
      giveRequestsBack: ({ limit, key, given }) => limiterOf(limit).giveBack(key, given),
      logRefusals: async (entries) => {
        await counted.commit({ entries });
      },
      logFailedAuthentication: (failed) => shared.onFailedAuthentication(...failed),
      countFailedAttempt: (address) => shared.attempts.count(address),
      beginLookUp: (address) =>
        new Promise((resolve, reject) => {
          const id = ++latest;
          const lookUp = () =>
            new Promise<void>((finish) => {
              lookUps.set(id, finish);
              resolve(id);
            });
          shared.attempts.lookUp(address, lookUp).catch(reject);
        }),
      endLookUp: (id) => {
        lookUps.get(id)?.();
        lookUps.delete(id);
      },
      pageEnd: (page) => shared.pageEnds.get(page),
      setPageEnd: ({ page, position }) => shared.pageEnds.set(page, position),
      exposeMetrics: () => metrics.expose(),
      log: ({ level, message, fields }) => log[level](message, fields),
      takeEntries: (entries) => shared.takeEntries?.(entries),
      takeCheckpoints: (checkpoints) => shared.takeCheckpoints?.({ insert: { checkpoints } }),
      takeActivity: process.activity.add,
      takeNote: ownNotes.add,
    };
  };
}
