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
