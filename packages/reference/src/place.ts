/** Where the reader is: `#createToken` is an operation, `#errors` a chapter, `#problem-conflict` a part of one. */
import type { Operation, Tag } from './document.ts';

export const chapters = {
  introduction: 'Introduction',
  authentication: 'Keys and permissions',
  requests: 'Requests and pages',
  errors: 'Errors',
  limits: 'Limits, quotas, and settings',
  types: 'Token types',
  expressions: 'Expressions',
} as const;

export type Chapter = keyof typeof chapters;

/** Where the parts of a chapter are: their anchors begin with it. */
const partsOf: Readonly<Record<string, Chapter>> = {
  problem: 'errors',
  permission: 'authentication',
  quota: 'limits',
  setting: 'limits',
  type: 'types',
  filter: 'expressions',
};

export type Place =
  | { readonly kind: 'chapter'; readonly chapter: Chapter; readonly part?: string }
  | { readonly kind: 'tag'; readonly tag: Tag }
  | { readonly kind: 'operation'; readonly operation: Operation; readonly part?: string };

export function tagAnchor(name: string): string {
  return `tag-${name.toLowerCase().replaceAll(' ', '-')}`;
}

/** @param hash without its `#`. What is unknown leads to the introduction. */
export function placeOf(
  hash: string,
  tags: readonly Tag[],
  operations: readonly Operation[],
): Place {
  const [first = '', part] = hash.split('/');
  const operation = operations.find(({ operationId }) => operationId === first);
  if (operation) return { kind: 'operation', operation, ...(part !== undefined && { part }) };
  const tag = tags.find(({ name }) => tagAnchor(name) === first);
  if (tag) return { kind: 'tag', tag };
  if (first in chapters) return { kind: 'chapter', chapter: first as Chapter };
  const chapter = partsOf[first.slice(0, first.indexOf('-'))];
  if (chapter) return { kind: 'chapter', chapter, part: first };
  return { kind: 'chapter', chapter: 'introduction' };
}
