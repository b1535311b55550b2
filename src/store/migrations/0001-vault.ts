/** Migration 1: tenants, applications, keys, tokens, stored replies and the log. */
import type { ColumnTypes } from './migrate.ts';

export function vault({ text, integer, bytes }: ColumnTypes): string[] {
  return [
    `create table tenants (
      tenant_id ${text} not null,
      version ${integer} not null,
      name ${text} not null,
      type ${text} not null,
      settings ${text} not null,
      quotas ${text} not null,
      keyring ${bytes} not null,
      created_at ${integer} not null,
      modified_at ${integer},
      constraint tenants_key primary key (tenant_id)
    )`,
    'create unique index tenants_name on tenants (name)',
    `create table applications (
      tenant_id ${text} not null,
      application_id ${text} not null,
      version ${integer} not null,
      name ${text} not null,
      type ${text} not null,
      permissions ${text} not null,
      rules ${text} not null,
      created_by ${text},
      created_at ${integer} not null,
      modified_by ${text},
      modified_at ${integer},
      constraint applications_key primary key (tenant_id, application_id)
    )`,
    `create table api_keys (
      key_hash ${text} not null,
      tenant_id ${text} not null,
      application_id ${text} not null,
      key_id ${text} not null,
      created_by ${text},
      created_at ${integer} not null,
      constraint api_keys_key primary key (key_hash)
    )`,
    'create unique index api_keys_id on api_keys (tenant_id, key_id)',
    'create index api_keys_application on api_keys (tenant_id, application_id)',
    `create table tokens (
      tenant_id ${text} not null,
      token_id ${text} not null,
      version ${integer} not null,
      type ${text} not null,
      container ${text} not null,
      data ${bytes} not null,
      mask ${text},
      metadata ${text},
      fingerprint ${text},
      fingerprint_expression ${text},
      deduplicated ${integer} not null,
      search_indexes ${text},
      expires_at ${integer},
      expires_offset ${integer},
      created_by ${text} not null,
      created_at ${integer} not null,
      modified_by ${text},
      modified_at ${integer},
      constraint tokens_key primary key (tenant_id, token_id)
    )`,
    // A token created without deduplication may share its fingerprint; one that answers for it may not.
    'create unique index tokens_fingerprint on tokens (tenant_id, fingerprint) where deduplicated = 1',
    'create index tokens_by_fingerprint on tokens (tenant_id, fingerprint)',
    'create index tokens_by_creation on tokens (tenant_id, created_at)',
    'create index tokens_by_expiry on tokens (tenant_id, expires_at) where expires_at is not null',
    `create table search_terms (
      tenant_id ${text} not null,
      token_id ${text} not null,
      term ${text} not null,
      constraint search_terms_key primary key (tenant_id, token_id, term)
    )`,
    'create index search_terms_by_term on search_terms (tenant_id, term)',
    `create table replies (
      tenant_id ${text} not null,
      application_id ${text} not null,
      route ${text} not null,
      idempotency_key ${text} not null,
      version ${integer} not null,
      reply ${bytes} not null,
      created_at ${integer} not null,
      constraint replies_key primary key (tenant_id, application_id, route, idempotency_key)
    )`,
    'create index replies_by_creation on replies (tenant_id, created_at)',
    `create table logs (
      tenant_id ${text} not null,
      stream_id ${text} not null,
      seq ${integer} not null,
      hash ${text} not null,
      created_at ${integer} not null,
      actor_id ${text},
      actor_type ${text} not null,
      entity_type ${text} not null,
      entity_id ${text} not null,
      operation ${text} not null,
      message ${text} not null,
      result ${text} not null,
      origin ${text},
      trace_id ${text},
      constraint logs_key primary key (tenant_id, stream_id, seq)
    )`,
    'create index logs_by_creation on logs (tenant_id, created_at)',
  ];
}
