/** Migration 16: with what people sign in again. */
import type { ColumnTypes } from './column-types.ts';

export function signInMethods({ text, integer, strict }: ColumnTypes): string[] {
  return [
    `create table sign_in_methods (
      tenant_id ${text} not null,
      identity_hash ${text} not null,
      version ${integer} not null,
      method_id ${text} not null,
      person_id ${text} not null,
      kind ${text} not null,
      name ${text} not null,
      details ${text} not null,
      created_at ${integer} not null,
      used_at ${integer} not null,
      proof ${text} not null,
      constraint sign_in_methods_key primary key (tenant_id, identity_hash)
    ) ${strict}`,
  ];
}
