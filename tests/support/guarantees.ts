/** The guarantees that tests protect: the comment with which each test file begins. */
import type { SourceFile } from './source.ts';

export interface Guarantee {
  readonly path: string;
  /** On one line. */
  readonly guarantee: string;
}

/** In the order of the files; one that does not begin with such a comment has no guarantee. */
export function guaranteesOf(files: readonly SourceFile[]): Guarantee[] {
  return files.flatMap(({ path, text }) => {
    const comment = /^\/\*\*(.*?)\*\//s.exec(text)?.[1];
    if (comment === undefined) return [];
    const words = comment.replace(/^\s*\* ?/gm, ' ').replace(/\s+/g, ' ');
    return [{ path, guarantee: words.trim() }];
  });
}
