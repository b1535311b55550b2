/** Limits what errors of a transformed response may name: names from its transforms, and nothing of the response. */
import type { AttributeErrors } from '../../base/errors.ts';
import { isObject, type Json } from '../../base/json.ts';
import type { CalledProxy } from './called-proxy.ts';

/** A member by its name, or an item of a short list. */
const stepPattern = /\.?([A-Za-z_]\w*)|\[\d{1,2}\]/y;

/**
 * Cuts each path to the part that an administrator wrote: a name below it may be the destination's, which masks hide
 * from the caller.
 */
export function errorsByNames(
  errors: AttributeErrors,
  { responseTransforms }: Pick<CalledProxy, 'responseTransforms'>,
): AttributeErrors {
  const names = new Set(['response_transforms', ...namesIn(responseTransforms)]);
  const named = new Map<string, readonly string[]>();
  for (const [path, texts] of Object.entries(errors)) {
    const known = knownBeginning(path, names);
    named.set(known, [...new Set([...(named.get(known) ?? []), ...texts])]);
  }
  return Object.fromEntries(named);
}

function knownBeginning(path: string, names: ReadonlySet<string>): string {
  stepPattern.lastIndex = 0;
  let end = 0;
  for (let step = stepPattern.exec(path); step; step = stepPattern.exec(path)) {
    if (step[1] !== undefined && !names.has(step[1])) break;
    end = stepPattern.lastIndex;
  }
  return path.slice(0, end);
}

function namesIn(json: Json | readonly Json[]): string[] {
  if (json === null || typeof json !== 'object') return [];
  const members = isObject(json as Json) ? Object.keys(json) : [];
  return [...members, ...Object.values(json).flatMap(namesIn)];
}
