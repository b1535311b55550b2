/** Migration 12: people, the links that let them in, and their sessions in the console. */
import type { ColumnTypes } from './column-types.ts';

export function people({ text, integer, strict }: ColumnTypes): string[] {
  return [
    `create table people (
      tenant_id ${text} not null,
      person_id ${text} not null,
      version ${integer} not null,
      name ${text} not null,
      application_ids ${text} not null,
      created_by ${text},
      created_at ${integer} not null,
      modified_by ${text},
      modified_at ${integer},
      proof ${text} not null,
      constraint people_key primary key (tenant_id, person_id)
    ) ${strict}`,
    `create table console_links (
      tenant_id ${text} not null,
      code_hash ${text} not null,
      version ${integer} not null,
      link_id ${text} not null,
      person_id ${text} not null,
      new_name ${text},
      created_at ${integer} not null,
      expires_at ${integer} not null,
      proof ${text} not null,
      constraint console_links_key primary key (tenant_id, code_hash)
    ) ${strict}`,
    `create table console_sessions (
      tenant_id ${text} not null,
      secret_hash ${text} not null,
      version ${integer} not null,
      session_id ${text} not null,
      person_id ${text} not null,
      sign_in ${text} not null,
      authenticated_at ${integer} not null,
      address ${text} not null,
      created_at ${integer} not null,
      idle_at ${integer} not null,
      expires_at ${integer} not null,
      proof ${text} not null,
      constraint console_sessions_key primary key (tenant_id, secret_hash),
      constraint console_sessions_id unique (tenant_id, session_id)
    ) ${strict}`,
  ];
}
