/**
 * Migration 8: uses of client keys prove themselves and have a name in the log. Both stay empty for those that earlier
 * releases write.
 */
import type { ColumnTypes } from './column-types.ts';

export function provenKeyUses({ text }: ColumnTypes): string[] {
  return [
    `alter table client_key_uses add column use_id ${text}`,
    `alter table client_key_uses add column proof ${text}`,
    'create index client_key_uses_by_id on client_key_uses (tenant_id, use_id)',
  ];
}
