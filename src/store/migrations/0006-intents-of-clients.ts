/**
 * Migration 6: of token intents, for which key their data was encrypted, and what was recognized in it. Both stay
 * empty for those that earlier releases write.
 */
import type { ColumnTypes } from './column-types.ts';

export function intentsOfClients({ bytes, text }: ColumnTypes): string[] {
  return [
    `alter table token_intents add column client_key_id ${bytes}`,
    `alter table token_intents add column recognized ${text}`,
  ];
}
