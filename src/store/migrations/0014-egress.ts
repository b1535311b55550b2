/** Migration 14: egress budgets of applications, and what alerts have to remember. */
import type { ColumnTypes } from './column-types.ts';

export function egress({ text, integer, strict }: ColumnTypes): string[] {
  return [
    `alter table applications add column egress_budget ${text}`,
    `create table alert_marks (
      tenant_id ${text} not null,
      kind ${text} not null,
      subject ${text} not null,
      place ${text} not null,
      created_at ${integer} not null,
      constraint alert_marks_key primary key (tenant_id, kind, subject, place)
    ) ${strict}`,
  ];
}
