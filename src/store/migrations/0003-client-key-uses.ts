/** Migration 3: which JWEs were opened that can be used once. Earlier releases never write the table. */
import type { ColumnTypes } from './column-types.ts';

export function clientKeyUses({ text, integer, strict }: ColumnTypes): string[] {
  return [
    `create table client_key_uses (
      tenant_id ${text} not null,
      client_key_id ${text} not null,
      jti_digest ${text} not null,
      used_at ${integer} not null,
      constraint client_key_uses_key primary key (tenant_id, client_key_id, jti_digest)
    ) ${strict}`,
    'create index client_key_uses_by_owner on client_key_uses (tenant_id, client_key_id)',
  ];
}
