/** How deep the JSON of a request may be nested, and which attribute goes beyond it. */

import { isObject, nestingMax } from '../../base/json.ts';
import { isPropertyName } from '../../expressions/attribute-path.ts';

/** A body of tokenize may be nested itself, and so may the data of a token request within it. */
export const bodyNestingMax = 2 * nestingMax;

/** The attribute that is nested too deeply, as far as its path can be named. */
export function deepAttributeOf(json: unknown): string | undefined {
  if (!isObject(json)) return undefined;
  const names = Object.keys(json);
  return names.find((name) => isPropertyName(name) && hasLevel(json[name], bodyNestingMax));
}

/** True of a value with that many levels or more; never goes deeper than that itself. */
function hasLevel(value: unknown, level: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (level === 1) return true;
  return Object.values(value).some((member) => hasLevel(member, level - 1));
}
