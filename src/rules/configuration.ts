/** Texts by name that a proxy or a reactor is given: its secrets, as a request words them. */
import type { ValidationErrors } from '../base/validation-errors.ts';

const configurationEntriesMax = 25;
const configurationNameForm = /^[^\p{Cc}]{1,100}$/u;
const configurationValueLengthMax = 10_000;

/** The entries but those that are null; what is wrong with them is in the errors. */
export function readConfiguration(
  given: Readonly<Record<string, string | null>>,
  errors: ValidationErrors,
): Readonly<Record<string, string>> {
  const entries = Object.entries(given).flatMap(([name, value]) =>
    value === null ? [] : [[name, value] as const],
  );
  if (entries.length > configurationEntriesMax) {
    errors.add('configuration', `must contain at most ${configurationEntriesMax} entries`);
  }
  if (entries.some(([name]) => !configurationNameForm.test(name) || !name.isWellFormed())) {
    const form = 'must have names of 1 to 100 characters without control characters';
    errors.add('configuration', form);
  }
  for (const [name, value] of entries) {
    if (value.length <= configurationValueLengthMax && value.isWellFormed()) continue;
    const form = `must have at most ${configurationValueLengthMax} valid Unicode characters`;
    errors.add(`configuration.${name.slice(0, 100)}`, form);
  }
  return Object.fromEntries(entries);
}

/** What callers see who may not change the configuration. */
export function withoutValues(
  configuration: Readonly<Record<string, string>>,
): Readonly<Record<string, null>> {
  return Object.fromEntries(Object.keys(configuration).map((name) => [name, null]));
}
