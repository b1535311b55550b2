/** Migration 18: who made a sign-in link, so that the link, and the session that it begins, end with them. */
import type { ColumnTypes } from './column-types.ts';

export function linkMakers({ text }: ColumnTypes): string[] {
  return ['console_links', 'console_sessions'].flatMap((table) =>
    ['created_by', 'created_by_key', 'created_by_person'].map(
      (column) => `alter table ${table} add column ${column} ${text}`,
    ),
  );
}
