/** Rows by their name, as lists are asked for them. */
import { type RawBuilder, type SqlBool, sql } from 'kysely';

/** `*` stands for any characters. The engines differ in whether `like` tells cases apart, so both sides are lowered. */
export function named(name: string): RawBuilder<SqlBool> {
  const pattern = name.replace(/[\\%_]/g, '\\$&').replace(/\*+/g, '%');
  return sql`lower(name) like lower(${pattern}) escape '\\'`;
}
