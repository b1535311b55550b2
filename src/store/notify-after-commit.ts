/** A store that notifies caches of what it has committed. */
import type { Change } from './change.ts';
import type { Store } from './store.ts';

export function notifyAfterCommit(store: Store, notify: (change: Change) => void): Store {
  return {
    ...store,
    commit: async (change) => {
      const outcome = await store.commit(change);
      if (outcome.conflict === undefined) notify(change);
      return outcome;
    },
  };
}
