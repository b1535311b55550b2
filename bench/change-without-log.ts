/** In place of src/store/change.ts: what a change does, and none of the log entries that it states. */
import { type Change, type FlatChange, flatten as flattenProduct } from '../src/store/change.ts';

export * from '../src/store/change.ts';

export function flatten(change: Change): FlatChange {
  return { ...flattenProduct(change), entries: [] };
}
