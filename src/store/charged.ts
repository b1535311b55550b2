/** A store that charges the processor time of a request whenever its work stops for a store call. */
import type { ProcessorTime } from '../base/processor-time.ts';
import type { Store } from './store.ts';

export function chargedStore(store: Store, { lap }: Pick<ProcessorTime, 'lap'>): Store {
  return {
    ...store,
    get: (table, key) => {
      lap();
      return store.get(table, key);
    },
    select: (query) => {
      lap();
      return store.select(query);
    },
    scan: (query) => {
      lap();
      return store.scan(query);
    },
    commit: (change) => {
      lap();
      return store.commit(change);
    },
  };
}
