/** The configuration of a proxy or a reactor: strings by name, its secrets among them, as a request contains them. */
import type { ValidationErrors } from '../base/validation-errors.ts';
import type { Caller } from './caller.ts';
import type { Permission } from './permissions.ts';
import { holds } from './policy.ts';

const configurationEntriesMax = 25;
const configurationNameForm = /^[^\p{Cc}]{1,100}$/u;
const configurationValueLengthMax = 10_000;

/** The entries that are not null. Errors are added to the list. */
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

/**
 * The configuration as shown to the caller: whole for those who may change it. People see its values, as any others,
 * once they have proved to be present.
 */
export function shownConfiguration(
  { policy, signedIn }: Pick<Caller, 'policy' | 'signedIn'>,
  permission: Permission,
  configuration: Readonly<Record<string, string>>,
): Readonly<Record<string, string | null>> {
  const isWhole = holds(policy, permission) && signedIn?.isPresent !== false;
  return isWhole ? configuration : withoutValues(configuration);
}

/** The configuration as shown to callers who may not change it. */
export function withoutValues(
  configuration: Readonly<Record<string, string>>,
): Readonly<Record<string, null>> {
  return Object.fromEntries(Object.keys(configuration).map((name) => [name, null]));
}
