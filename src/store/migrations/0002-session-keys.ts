/** Migration 2: from which keys a session came, so that it ends with them, and the order of their list. */
import type { ColumnTypes } from './column-types.ts';

export function sessionKeys({ text }: ColumnTypes): string[] {
  return [
    `alter table sessions add column created_by_key ${text}`,
    `alter table sessions add column authorized_by_key ${text}`,
    'create index sessions_by_creation on sessions (tenant_id, created_at, session_id)',
  ];
}
