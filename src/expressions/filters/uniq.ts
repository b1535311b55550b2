/** The filter uniq, which keeps the first of equal members. */
import { toValue } from 'liquidjs';

/**
 * Like liquidjs, but with numbers compared as strings: V8 hashes small integers without a seed, so an
 * attacker could make a list in which each member is compared with all members before it.
 */
export function uniq(value: unknown): unknown[] {
  const list: unknown = toValue(value);
  if (list === null || list === undefined) return [];
  if (!Array.isArray(list)) return [list];
  const seen = new Set<unknown>();
  return list.filter((member: unknown) => {
    const key = typeof member === 'string' || typeof member === 'number' ? keyOf(member) : member;
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

function keyOf(member: string | number): string {
  return typeof member === 'string' ? `"${member}` : `#${member === 0 ? 0 : member}`;
}
