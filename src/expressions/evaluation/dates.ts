/** What the filter `date` costs: by its pattern, and hardly by the date. */
import { toValue } from 'liquidjs';
import type { Budget } from './budget.ts';

/** A conversion that liquidjs makes a new formatter of Intl for, and any other. */
const formattedWork = 60_000;
const conversionWork = 1200;

/** Names of days and months, and the forms of the locale. */
const formattedPattern = /^[aAbBhcxX]$/;

/** Reading a zone that has a name takes two formatters. */
const zoneWork = 150_000;

/** Spends what writing a date by `pattern` takes, and finding its time in `zone`. */
export function payForDate(pattern: unknown, zone: unknown, budget: Budget): void {
  const given: unknown = toValue(pattern);
  if (typeof toValue(zone) === 'string') budget.use(zoneWork);
  // Without a pattern liquidjs takes its own, which names the day and the month.
  const text = given === undefined || given === null ? '%A, %B' : String(given);
  for (const piece of text.split('%').slice(1)) {
    const letter = piece.replace(/^[-_0^#:]*[0-9]*[EO]?/, '').slice(0, 1);
    budget.use(formattedPattern.test(letter) ? formattedWork : conversionWork);
  }
}
