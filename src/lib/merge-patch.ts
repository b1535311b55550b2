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
 * The patch that leads from one value to the other: an empty object when they are equal, else no more
 * than what differs. Null stands for absence in a patch, so a member that becomes null is removed.
 */
export function patchBetween(before: Json, after: Json): Json {
  if (!isObject(before) || !isObject(after)) return after;
  const patch = new Map<string, Json>();
  for (const name of Object.keys(before)) {
    if (!Object.hasOwn(after, name)) patch.set(name, null);
  }
  for (const [name, value] of Object.entries(after)) {
    const old = Object.hasOwn(before, name) ? before[name] : undefined;
    if (old === undefined) patch.set(name, value);
    else if (!isSame(old, value)) patch.set(name, patchBetween(old, value));
  }
  return Object.fromEntries(patch) as JsonObject;
}

/** Told by the text, which is several times as fast for small values as to walk them side by side. */
function isSame(one: Json, other: Json): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
