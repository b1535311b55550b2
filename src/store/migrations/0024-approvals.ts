/** Migration 24: requests of programs that wait for a person. */
import type { ColumnTypes } from './column-types.ts';

export function approvals({ text, integer, bytes, strict }: ColumnTypes): string[] {
  return [
    `create table approvals (
      tenant_id ${text} not null,
      approval_id ${text} not null,
      application_id ${text} not null,
      version ${integer} not null,
      status ${text} not null,
      scope ${text},
      policy_digest ${text} not null,
      host ${text} not null,
      body ${bytes} not null,
      decider ${text},
      created_at ${integer} not null,
      decided_at ${integer},
      expires_at ${integer} not null,
      proof ${text} not null,
      constraint approvals_key primary key (tenant_id, approval_id)
    ) ${strict}`,
    'create index approvals_by_owner on approvals (tenant_id, application_id)',
    'create index approvals_by_creation on approvals (tenant_id, created_at, approval_id)',
    `create index approvals_due_by_expires_at on approvals (expires_at, tenant_id)
      where expires_at is not null`,
  ];
}
