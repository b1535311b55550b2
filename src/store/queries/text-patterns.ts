/** Patterns of containers, ids and names as SQL. An index finds what those of containers and ids match. */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import { idRanges } from '../stored-form.ts';
import { storedId } from './stored.ts';

/** Texts that equal `text`, or begin with it. */
export interface TextPattern {
  readonly text: string;
  readonly exact: boolean;
}

/** A prefix is a range, because text sorts by code point on both engines. */
export function matches(
  column: RawBuilder<unknown>,
  { text, exact }: TextPattern,
): RawBuilder<SqlBool> {
  if (exact) return sql`${column} = ${text}`;
  const end = afterPrefix(text);
  return end === undefined
    ? sql`${column} >= ${text}`
    : sql`(${column} >= ${text} and ${column} < ${end})`;
}

const lastCodePoint = 0x10ffff;
const firstSurrogate = 0xd800;
const afterSurrogates = 0xe000;

/** The first text after all that begin with `prefix`, by code point; `undefined` where none comes after. */
export function afterPrefix(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0) ?? 0);
  while (points.at(-1) === lastCodePoint) points.pop();
  const last = points.pop();
  if (last === undefined) return undefined;
  const next = last + 1 === firstSurrogate ? afterSurrogates : last + 1;
  return String.fromCodePoint(...points, next);
}

/** Ids that equal the text of the pattern, or begin with it. */
export function matchesId(
  column: RawBuilder<unknown>,
  { text, exact }: TextPattern,
): RawBuilder<SqlBool> {
  if (exact) return sql`${column} = ${storedId(text)}`;
  const ranges = idRanges(text, afterPrefix(text)).map(({ from, to }) =>
    to === undefined
      ? sql<SqlBool>`${column} >= ${from}`
      : sql<SqlBool>`(${column} >= ${from} and ${column} < ${to})`,
  );
  return sql`(${sql.join(ranges, sql` or `)})`;
}

/**
 * Rows of that name, in which `*` stands for any characters. The engines differ in whether `like` tells cases
 * apart, so both sides are in lower case.
 */
export function named(name: string): RawBuilder<SqlBool> {
  const pattern = name.replace(/[\\%_]/g, '\\$&').replace(/\*+/g, '%');
  return sql`lower(name) like lower(${pattern}) escape '\\'`;
}
