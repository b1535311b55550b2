/** JSON of which the same value always has the same text: keys in order, no white space. */
import type { Json } from './json.ts';

/**
 * Keys are sorted by UTF-16 code units, at every level, as `fast-json-stable-stringify` and others do. Writing a
 * copy with sorted keys would not be enough: objects list keys that look like integers first.
 */
export function sortedJson(value: Json): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(',')}]`;
  const members = Object.entries(value)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, member]) => `${JSON.stringify(key)}:${sortedJson(member)}`);
  return `{${members.join(',')}}`;
}
