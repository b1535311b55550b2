/** What comparing two values costs. */
import { type Budget, nameWork } from './budget.ts';
import { payForSearch, searchedText } from './search.ts';

/** An operator by itself: liquidjs runs several generators for each. */
export const operatorWork = 800;

/** For each character, and for each member of a list, which liquidjs runs a generator for. */
const textWork = 4;
const itemWork = 200;

/** Spends what the operator of that name may take on its two sides. */
export function payForComparing(
  name: string,
  { left, right }: { left: unknown; right: unknown },
  budget: Budget,
): void {
  payForSide(left, budget);
  payForSide(right, budget);
  if (name !== 'contains' || typeof left !== 'string') return;
  payForSearch(left, searchedText(right), budget);
}

/** Lists are compared member by member, objects by what they are and not by what they hold. */
export function payForSide(value: unknown, budget: Budget, times = 1): void {
  if (typeof value === 'string') {
    budget.use(value.length * textWork * times);
  } else if (Array.isArray(value)) {
    budget.use((value.length + 1) * itemWork * times);
    for (const item of value) payForSide(item, budget, times);
  } else if (typeof value === 'object' && value !== null) {
    // To compare it with `empty` its names are listed, and here they are as well.
    budget.use(Object.keys(value).length * 2 * nameWork * times);
  }
}
