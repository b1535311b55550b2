/** The cost of the filter `date`, which depends on its pattern. */
import { toValue } from 'liquidjs';
import type { Budget } from './budget.ts';

/** A conversion for which liquidjs creates an Intl formatter, and any other conversion. */
const formattedWork = 60_000;
const conversionWork = 1200;

/** Names of days and months, and the formats of the locale. */
const formattedPattern = /^[aAbBhcxX]$/;

/** Resolving a named time zone takes two formatters. */
const zoneWork = 150_000;

/** Spends the cost of formatting a date by `pattern` in `zone`. */
export function payForDate(pattern: unknown, zone: unknown, budget: Budget): void {
  const given: unknown = toValue(pattern);
  if (typeof toValue(zone) === 'string') budget.use(zoneWork);
  // Without a pattern, liquidjs uses its default, which contains the names of the day and the month.
  const text = given === undefined || given === null ? '%A, %B' : String(given);
  for (const piece of text.split('%').slice(1)) {
    const letter = piece.replace(/^[-_0^#:]*[0-9]*[EO]?/, '').slice(0, 1);
    budget.use(formattedPattern.test(letter) ? formattedWork : conversionWork);
  }
}
