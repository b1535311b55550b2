/** Migration 13: public applications list the origins of their pages. */
import type { ColumnTypes } from './column-types.ts';

export function pageOrigins({ text }: ColumnTypes): string[] {
  return [`alter table applications add column origins ${text}`];
}
