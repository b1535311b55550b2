/** The header `If-Match` (RFC 9110, 13.1.1). */
import { invalid } from '../../base/errors.ts';
import type { IfMatch } from '../../rules/entity-tag.ts';

const entityTag = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/;

/**
 * The condition. Tags are compared as they are, so weak ones never match a tag of the vault.
 * @throws VaultError `validation_failed` for anything but `*` or a list of tags.
 */
export function parseIfMatch(header: string | undefined): IfMatch | undefined {
  if (header === undefined) return undefined;
  if (header.trim() === '*') return '*';
  const tags = (header.match(/(?:[^,"]|"[^"]*"?)+/g) ?? []).map((tag) => tag.trim());
  const given = tags.filter((tag) => tag !== '');
  if (given.length > 0 && given.every((tag) => entityTag.test(tag))) return new Set(given);
  throw invalid('If-Match', 'must be * or a list of entity tags, each as ETag gave it, in quotes');
}
