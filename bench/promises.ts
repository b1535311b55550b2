/** Promises that can be taken back for as long as it takes to measure what they cost: one row each. */
import type { Change, Outcome } from '../src/store/change.ts';
import { openStore } from '../src/store/open/open.ts';
import type { Store, StoreOptions } from '../src/store/store.ts';

type Open = (options: StoreOptions) => Promise<Store>;

/** How a vault opens its store when it does not keep the promise of that name. */
export const promises = {
  'the audit log': async (options) => withoutEntries(await openStore(options)),
  // Not waiting for the disk is a matter of where the store is: see `durable` in storage.ts.
  fsync: openStore,
} as const satisfies Record<string, Open>;

export type PromiseName = keyof typeof promises;

/** Commits what changes something, and says nothing of it in the log. */
function withoutEntries(store: Store): Store {
  const nothing = [] as unknown as Change['entries'];
  const commit = (change: Change): Promise<Outcome> => {
    const { insert, replace, remove } = change;
    if (!insert && !replace && !remove) return Promise.resolve({});
    return store.commit({ ...change, entries: nothing });
  };
  return { ...store, commit };
}
