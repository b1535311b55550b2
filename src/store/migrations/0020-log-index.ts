/** Migration 20: which blocks of the log have a search term, and the proof of how far a stream was pushed. */
import type { ColumnTypes } from './column-types.ts';

export function logIndex({ tenant, text, integer, bytes, keptByKey }: ColumnTypes): string[] {
  return [
    `create table log_index (
      tenant_id ${tenant} not null,
      slot ${integer} not null,
      until ${integer} not null,
      since ${integer} not null,
      postings ${bytes} not null,
      proof ${text} not null,
      constraint log_index_key primary key (tenant_id, slot, until)
    ) ${keptByKey}`,
    `alter table log_pushes add column proof ${text}`,
  ];
}
