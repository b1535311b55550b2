/** Migration 1: tenants, applications, keys, proxies, tokens, stored replies, webhooks and the log. */
import { due } from './0001-due.ts';
import { events } from './0001-events.ts';
import type { ColumnTypes } from './column-types.ts';

export function vault(types: ColumnTypes): string[] {
  const { text, integer, bytes, tenant, strict, scratchTable, keptByKey, keyCovers } = types;
  return [
    `create table tenants (
      tenant_id ${text} not null,
      version ${integer} not null,
      name ${text} not null,
      display_name ${text},
      type ${text} not null,
      settings ${text} not null,
      quotas ${text} not null,
      keyring ${bytes} not null,
      created_at ${integer} not null,
      modified_by ${text},
      modified_at ${integer},
      deleted_at ${integer},
      proof ${text} not null,
      constraint tenants_key primary key (tenant_id)
    ) ${strict}`,
    'create unique index tenants_name on tenants (name)',
    // The number by which rows name their tenant; see stored-form.ts.
    'create unique index tenants_number on tenants (substr(tenant_id, 1, 8))',
    `create table applications (
      tenant_id ${text} not null,
      application_id ${text} not null,
      version ${integer} not null,
      name ${text} not null,
      type ${text} not null,
      permissions ${text} not null,
      rules ${text} not null,
      key_ids ${text} not null,
      created_by ${text},
      created_at ${integer} not null,
      modified_by ${text},
      modified_at ${integer},
      proof ${text} not null,
      constraint applications_key primary key (tenant_id, application_id)
    ) ${strict}`,
    `create table api_keys (
      key_hash ${text} not null,
      version ${integer} not null,
      tenant_id ${text} not null,
      application_id ${text} not null,
      key_id ${text} not null,
      session_id ${text},
      created_by ${text},
      created_at ${integer} not null,
      last_used_at ${integer},
      proof ${text} not null,
      constraint api_keys_key primary key (key_hash)
    ) ${strict}`,
    'create unique index api_keys_id on api_keys (tenant_id, key_id)',
    'create index api_keys_application on api_keys (tenant_id, application_id) where session_id is null',
    `create table sessions (
      tenant_id ${text} not null,
      session_id ${text} not null,
      version ${integer} not null,
      application_id ${text} not null,
      key_hash ${text} not null,
      nonce_hash ${text} not null,
      permissions ${text} not null,
      rules ${text} not null,
      authorized_by ${text},
      authorized_at ${integer},
      created_at ${integer} not null,
      expires_at ${integer} not null,
      proof ${text} not null,
      constraint sessions_key primary key (tenant_id, session_id)
    ) ${strict}`,
    'create unique index sessions_nonce on sessions (tenant_id, nonce_hash)',
    'create index sessions_by_expiry on sessions (tenant_id, expires_at)',
    `create table proxies (
      tenant_id ${text} not null,
      proxy_id ${text} not null,
      version ${integer} not null,
      name ${text} not null,
      key_hash ${text} not null,
      host ${text},
      body ${bytes} not null,
      created_by ${text} not null,
      created_at ${integer} not null,
      modified_by ${text},
      modified_at ${integer},
      proof ${text} not null,
      constraint proxies_key primary key (tenant_id, proxy_id)
    ) ${strict}`,
    `create table proxy_addresses (
      address ${text} not null,
      tenant_id ${text} not null,
      proxy_id ${text} not null,
      constraint proxy_addresses_key primary key (address)
    ) ${strict}`,
    'create index proxy_addresses_by_owner on proxy_addresses (tenant_id, proxy_id)',
    `create table reactors (
      tenant_id ${text} not null,
      reactor_id ${text} not null,
      version ${integer} not null,
      name ${text} not null,
      body ${bytes} not null,
      created_by ${text} not null,
      created_at ${integer} not null,
      modified_by ${text},
      modified_at ${integer},
      proof ${text} not null,
      constraint reactors_key primary key (tenant_id, reactor_id)
    ) ${strict}`,
    `create table reactor_runs (
      tenant_id ${text} not null,
      run_id ${text} not null,
      reactor_id ${text} not null,
      version ${integer} not null,
      body ${bytes} not null,
      due_at ${integer},
      created_at ${integer} not null,
      expires_at ${integer} not null,
      constraint reactor_runs_key primary key (tenant_id, run_id)
    ) ${strict}`,
    // Also the order in which the logs of a reactor's calls are listed.
    `create index reactor_runs_by_owner on reactor_runs
      (tenant_id, reactor_id, created_at, run_id)`,
    'create index reactor_runs_by_due on reactor_runs (tenant_id, due_at) where due_at is not null',
    'create index reactor_runs_by_expiry on reactor_runs (tenant_id, expires_at)',
    `create table client_keys (
      tenant_id ${text} not null,
      client_key_id ${text} not null,
      version ${integer} not null,
      private_key ${bytes} not null,
      created_by ${text} not null,
      created_at ${integer} not null,
      expires_at ${integer} not null,
      proof ${text} not null,
      constraint client_keys_key primary key (tenant_id, client_key_id)
    ) ${strict}`,
    'create index client_keys_by_expiry on client_keys (tenant_id, expires_at)',
    // What may be long comes last: SQLite goes through all pages of a value to what is behind it.
    `create table tokens (
      tenant_id ${tenant} not null,
      token_id ${bytes} not null,
      version ${integer} not null,
      type ${text} not null,
      container ${text} not null,
      fingerprint ${text},
      fingerprint_expression ${text},
      deduplicated ${integer} not null,
      expires_at ${integer},
      expires_offset ${integer},
      code_expires_at ${integer},
      created_by ${bytes} not null,
      created_at ${integer} not null,
      modified_by ${bytes},
      modified_at ${integer},
      search_indexes ${text},
      mask ${text},
      metadata ${text},
      data ${bytes} not null,
      constraint tokens_key primary key (tenant_id, token_id)
    ) ${strict}`,
    // A token created without deduplication may share its fingerprint; one that answers for it may not,
    // unless the fingerprint came about by another expression: creators choose it, and so the fingerprint.
    `create unique index tokens_fingerprint on tokens
      (tenant_id, fingerprint, coalesce(fingerprint_expression, '')) where deduplicated = 1`,
    'create index tokens_by_fingerprint on tokens (tenant_id, fingerprint) where fingerprint is not null',
    // The order of lists. With the expiry a list can be counted and skipped through in the index alone.
    'create index tokens_by_creation on tokens (tenant_id, created_at, token_id, expires_at)',
    // The same order within each kind of token a list can ask for; see token-groups.ts.
    `create index tokens_by_container on tokens
      (tenant_id, container, type, created_at, token_id, expires_at)`,
    'create index tokens_by_expiry on tokens (tenant_id, expires_at) where expires_at is not null',
    'create index tokens_by_code_expiry on tokens (tenant_id, code_expires_at) where code_expires_at is not null',
    `create table search_terms (
      tenant_id ${tenant} not null,
      token_id ${bytes} not null,
      term ${bytes} not null,
      created_at ${integer} not null,
      container ${text} not null,
      type ${text} not null,
      expires_at ${integer},
      constraint search_terms_key primary key (tenant_id, term, created_at, token_id)
        ${keyCovers('container, type, expires_at')}
    ) ${keptByKey}`,
    'create index search_terms_by_owner on search_terms (tenant_id, token_id)',
    `create table token_intents (
      tenant_id ${tenant} not null,
      token_intent_id ${bytes} not null,
      version ${integer} not null,
      type ${text} not null,
      fingerprint ${text} not null,
      code_expires_at ${integer},
      created_by ${bytes} not null,
      created_at ${integer} not null,
      expires_at ${integer} not null,
      data ${bytes} not null,
      constraint token_intents_key primary key (tenant_id, token_intent_id)
    ) ${strict}`,
    'create index token_intents_by_expiry on token_intents (tenant_id, expires_at)',
    `create index token_intents_by_code_expiry on token_intents (tenant_id, code_expires_at)
      where code_expires_at is not null`,
    `create table replies (
      tenant_id ${tenant} not null,
      application_id ${bytes} not null,
      route ${text} not null,
      key_digest ${bytes} not null,
      version ${integer} not null,
      reply ${bytes} not null,
      next_expiry_at ${integer} not null,
      created_at ${integer} not null,
      constraint replies_key primary key (tenant_id, application_id, route, key_digest)
    ) ${strict}`,
    'create index replies_by_next_expiry on replies (tenant_id, next_expiry_at)',
    ...events(types),
    // The body is the last column: what is searched is found without the pages that a long one overflows into.
    `create table logs (
      tenant_id ${text} not null,
      stream_id ${text} not null,
      first_seq ${integer} not null,
      last_seq ${integer} not null,
      first_at ${integer} not null,
      last_at ${integer} not null,
      hash ${text} not null,
      proof ${text},
      entities ${text} not null,
      body ${text} not null,
      constraint logs_key primary key (tenant_id, stream_id, first_seq)
    ) ${keptByKey}`,
    // The order of lists. An index by entity would be written at a random place for every entry, which
    // more than doubled the cost of one.
    'create index logs_by_time on logs (tenant_id, last_at, stream_id, first_seq)',
    // Counters by rule and by key or address, which may have no tenant yet.
    `create ${scratchTable} rate_limits (
      key ${text} not null,
      points ${integer} not null,
      expire ${integer} not null,
      constraint rate_limits_key primary key (key)
    ) ${strict}`,
    `create table checkpoints (
      tenant_id ${text} not null,
      seq ${integer} not null,
      created_at ${integer} not null,
      statement ${text} not null,
      public_key ${text} not null,
      signature ${text} not null,
      constraint checkpoints_key primary key (tenant_id, seq)
    ) ${strict}`,
    `create table log_removals (
      tenant_id ${text} not null,
      stream_id ${text} not null,
      version ${integer} not null,
      to_seq ${integer} not null,
      statement ${text} not null,
      public_key ${text} not null,
      signature ${text} not null,
      constraint log_removals_key primary key (tenant_id, stream_id)
    ) ${strict}`,
    ...due(types),
  ];
}
