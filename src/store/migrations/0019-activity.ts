/** Migration 19: what the callers of each tenant did, in figures. */
import type { ColumnTypes } from './column-types.ts';

export function activity({ text, integer, strict }: ColumnTypes): string[] {
  return [
    `create table activity (
      tenant_id ${text} not null,
      span ${text} not null,
      slot ${integer} not null,
      started_at ${integer} not null,
      figures ${text} not null,
      revision ${integer} not null,
      constraint activity_key primary key (tenant_id, span, slot)
    ) ${strict}`,
  ];
}
