/** Migration 4: the names that the operator gives to tenants for their proxies. */
import type { ColumnTypes } from './column-types.ts';

export function tenantHosts({ text, integer, strict }: ColumnTypes): string[] {
  return [
    `create table tenant_hosts (
      host ${text} not null,
      version ${integer} not null,
      tenant_id ${text} not null,
      created_at ${integer} not null,
      proof ${text} not null,
      constraint tenant_hosts_key primary key (host)
    ) ${strict}`,
    'create index tenant_hosts_by_tenant on tenant_hosts (tenant_id, host)',
  ];
}
