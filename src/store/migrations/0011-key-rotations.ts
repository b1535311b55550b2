/** Migration 11: rotations of tenants' keys, and the claims of deduplicated values while they last. */
import type { ColumnTypes } from './column-types.ts';

export function keyRotations({ text, integer, bytes, tenant, strict }: ColumnTypes): string[] {
  return [
    `create table key_rotations (
      tenant_id ${text} not null,
      purpose ${text} not null,
      phase ${text} not null,
      phase_at ${integer} not null,
      is_paused ${integer} not null,
      started_at ${integer} not null,
      rows_done ${integer} not null,
      rows_total ${integer},
      unreadable ${integer} not null,
      holder ${text} not null,
      until ${integer} not null,
      finished_at ${integer},
      revision ${integer} not null,
      constraint key_rotations_key primary key (tenant_id, purpose)
    ) ${strict}`,
    `create table fingerprint_claims (
      tenant_id ${tenant} not null,
      token_id ${bytes} not null,
      fingerprint ${text} not null,
      expression ${text} not null,
      constraint fingerprint_claims_key primary key (tenant_id, fingerprint, expression)
    ) ${strict}`,
    'create index fingerprint_claims_by_owner on fingerprint_claims (tenant_id, token_id)',
  ];
}
