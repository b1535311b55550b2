/** Migration 17: how far each stream of the log was pushed to the operator's collector. */
import type { ColumnTypes } from './column-types.ts';

export function logPushes({ text, integer, strict }: ColumnTypes): string[] {
  return [
    `create table log_pushes (
      tenant_id ${text} not null,
      stream_id ${text} not null,
      seq ${integer} not null,
      constraint log_pushes_key primary key (tenant_id, stream_id)
    ) ${strict}`,
  ];
}
