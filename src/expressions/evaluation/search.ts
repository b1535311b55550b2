/** What finding one text in another costs: in the worst case, their lengths multiplied. */
import { toValue } from 'liquidjs';
import type { Budget } from './budget.ts';

/** V8 compares about so many characters in the time of one unit of work. */
const comparedPerWork = 2;

/** Cutting a text at a place that was found, and the piece that comes of it. */
const pieceWork = 60;

/**
 * Spends what it may take to find `pattern` once. No shorter time is promised for any text: V8 searches
 * backwards character by character, and forwards it gives up its tables where they do not help.
 */
export function payForSearch(text: string, pattern: string, budget: Budget): void {
  budget.use(text.length + (text.length * pattern.length) / comparedPerWork);
}

/** Spends what it takes to cut `text` wherever `pattern` is, and to write `between` in its place. */
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

/** The text that liquidjs makes of a value before it searches it. */
export function searchedText(given: unknown): string {
  const value: unknown = toValue(given);
  if (value === null || value === undefined) return '';
  return Array.isArray(value) ? value.map(searchedText).join('') : String(value);
}
