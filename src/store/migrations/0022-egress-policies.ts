/** Migration 22: where the programs of applications may send requests. */
import type { ColumnTypes } from './column-types.ts';

export function egressPolicies({ text }: ColumnTypes): string[] {
  return [`alter table applications add column egress ${text}`];
}
