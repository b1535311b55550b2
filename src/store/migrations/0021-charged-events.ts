/** Migration 21: the application whose stored bytes an event counts as, which is the one that caused it. */
import type { ColumnTypes } from './column-types.ts';

export function chargedEvents({ bytes }: ColumnTypes): string[] {
  return [`alter table events add column charged_to ${bytes}`];
}
