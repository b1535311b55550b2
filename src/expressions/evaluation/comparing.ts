/** The cost of comparing two values. */
import { type Budget, nameWork } from './budget.ts';
import { payForSearch, searchedText } from './search.ts';

/** The fixed cost of an operator: liquidjs runs several generators for each. */
export const operatorWork = 800;

/** For each character, and for each member of a list, because liquidjs runs a generator for it. */
const textWork = 4;
const itemWork = 200;

/** Spends the worst-case cost of the operator on its two operands. */
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

/** Lists are compared member by member, objects by identity. */
export function payForSide(value: unknown, budget: Budget, times = 1): void {
  if (typeof value === 'string') {
    budget.use(value.length * textWork * times);
  } else if (Array.isArray(value)) {
    budget.use((value.length + 1) * itemWork * times);
    for (const item of value) payForSide(item, budget, times);
  } else if (typeof value === 'object' && value !== null) {
    // A comparison with `empty` lists the names of the object, and so does this code.
    budget.use(Object.keys(value).length * 2 * nameWork * times);
  }
}
