/**
 * The part of migration 1 by which jobs find the tenants that have something due. These indexes begin with a time:
 * a job reads what is due, however many tenants there are. None holds a row that has nothing to expire.
 */
import type { ColumnTypes } from './column-types.ts';

const dueColumns: readonly (readonly [table: string, column: string])[] = [
  ['tokens', 'expires_at'],
  ['tokens', 'code_expires_at'],
  ['token_intents', 'expires_at'],
  ['token_intents', 'code_expires_at'],
  ['replies', 'next_expiry_at'],
  ['sessions', 'expires_at'],
  ['client_keys', 'expires_at'],
  ['reactor_runs', 'expires_at'],
  ['events', 'created_at'],
  ['event_sequences', 'ended_at'],
  ['deliveries', 'created_at'],
];

export function due({ text, integer, strict }: ColumnTypes): string[] {
  return [
    `create table due_work (
      tenant_id ${text} not null,
      work ${text} not null,
      due_at ${integer} not null,
      constraint due_work_key primary key (tenant_id, work, due_at)
    ) ${strict}`,
    'create index due_work_by_time on due_work (work, due_at, tenant_id)',
    // The first tenant is asked for by its age.
    'create index tenants_by_creation on tenants (created_at, tenant_id)',
    ...dueColumns.map(
      ([table, column]) =>
        `create index ${table}_due_by_${column} on ${table} (${column}, tenant_id)
          where ${column} is not null`,
    ),
  ];
}
