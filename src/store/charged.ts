/** A store at whose calls the work of a request stops, and its processor time is charged. */
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
