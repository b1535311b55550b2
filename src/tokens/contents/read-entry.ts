/** The content of the log entry, and of the event, about a token that was read. */
import type { Instant } from '../../base/clock.ts';
import type { Actor } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Disclosure } from '../../store/log-chain/disclosure.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import type { Row } from '../../store/tables.ts';

export interface ReadToken {
  readonly row: Pick<Row<'tokens'>, 'token_id' | 'type'>;
  readonly disclosure: Disclosure | undefined;
}

/** That a token was read. */
export function readEntry(actor: Actor, at: Instant, { row, disclosure }: ReadToken): LogEntry {
  const event = { token: { type: row.type } };
  const fact = { entity: 'token', id: row.token_id, operation: 'read', disclosure, event } as const;
  return entryOf(actor, at, fact);
}
