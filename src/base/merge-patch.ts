/** JSON merge patch, RFC 7386. */
import { isObject, type Json, type JsonObject } from './json.ts';

/**
 * Applies `patch` to `target` without altering either: `null` removes a member, an object merges
 * member by member, anything else replaces the whole target.
 */
export function mergePatch(target: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const merged = new Map<string, Json>(isObject(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, mergePatch(merged.get(key), value));
  }
  return Object.fromEntries(merged) as JsonObject;
}

/**
 * Returns the patch that leads from one value to the other: an empty object if they are equal, otherwise only the
 * differences. Null means absence in a patch, so a member that becomes null is removed.
 */
export function patchBetween(before: Json, after: Json): Json {
  if (!isObject(before) || !isObject(after)) return after;
  const patch: [name: string, change: Json][] = [];
  for (const name of Object.keys(before)) {
    if (!Object.hasOwn(after, name)) patch.push([name, null]);
  }
  for (const name of Object.keys(after)) {
    const old = Object.hasOwn(before, name) ? before[name] : undefined;
    const value = after[name] as Json;
    if (old === value) continue;
    const change = old === undefined ? value : patchBetween(old, value);
    if (old === undefined || !isNothing(old, change)) patch.push([name, change]);
  }
  return Object.fromEntries(patch) as JsonObject;
}

/** True for a patch that changes nothing. */
function isNothing(value: Json, patch: Json): boolean {
  if (isObject(patch)) return isObject(value) && Object.keys(patch).length === 0;
  return JSON.stringify(value) === JSON.stringify(patch);
}
