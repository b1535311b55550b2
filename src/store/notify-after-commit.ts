/** A store that notifies of what it has committed, for those who cache what they once read. */
import type { CommitListener, Store, StoreEngine } from './store.ts';

export function notifyAfterCommit(engine: StoreEngine): Store {
  const listeners: CommitListener[] = [];
  return {
    ...engine,
    subscribe: (listener) => {
      listeners.push(listener);
    },
    commit: async (change) => {
      const outcome = await engine.commit(change);
      if (outcome.conflict === undefined) for (const notify of listeners) notify(change);
      return outcome;
    },
  };
}
