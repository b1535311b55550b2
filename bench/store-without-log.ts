/** In place of src/store/open/open.ts: a store that commits what changes something, and no log entry. */
import type { Change, CommitOutcome } from '../src/store/change.ts';
import { openStore as openProduct } from '../src/store/open/open.ts';
import type { Store, StoreOptions } from '../src/store/store.ts';

/** What further threads open; one thread is measured here. */
export { attachStore } from '../src/store/open/open.ts';

export async function openStore(options: StoreOptions): Promise<Store> {
  const store = await openProduct(options);
  const commit = (change: Change): Promise<CommitOutcome> => {
    const { insert, replace, remove } = change;
    return insert || replace || remove ? store.commit(change) : Promise.resolve({});
  };
  return { ...store, commit };
}
