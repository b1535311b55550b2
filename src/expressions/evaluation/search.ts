/** The cost of finding one string in another: in the worst case, the product of their lengths. */
import { toValue } from 'liquidjs';
import type { Budget } from './budget.ts';

/** V8 compares about this many characters in one unit of work. */
const comparedPerWork = 2;

/** Splitting a string at a match, and making the resulting piece. */
const pieceWork = 60;

/**
 * Spends the worst-case cost of finding `pattern` once. No string has a lower bound: V8 searches
 * backwards character by character, and drops its forward skip tables where they do not help.
 */
export function payForSearch(text: string, pattern: string, budget: Budget): void {
  budget.use(text.length + (text.length * pattern.length) / comparedPerWork);
}

/** Spends the cost of splitting `text` at each `pattern` and writing `between` in its place. */
export function payForSplit(
  { text, pattern, between = '' }: { text: string; pattern: string; between?: string },
  budget: Budget,
): void {
  payForSearch(text, pattern, budget);
  const work = pieceWork + between.length;
  if (pattern === '') {
    budget.use(text.length * work);
    return;
  }
  let at = text.indexOf(pattern);
  while (at >= 0) {
    budget.use(work);
    at = text.indexOf(pattern, at + pattern.length);
  }
}

/** The string to which liquidjs converts a value before it searches it. */
export function searchedText(given: unknown): string {
  const value: unknown = toValue(given);
  if (value === null || value === undefined) return '';
  return Array.isArray(value) ? value.map(searchedText).join('') : String(value);
}
