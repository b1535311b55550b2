/** The content of the log entry, and of the event, about a token that was read. */
import type { Instant } from '../../base/clock.ts';
import { isObject } from '../../base/json.ts';
import type { Actor } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { TokenBody } from '../../rules/reply.ts';
import type { Disclosure } from '../../store/log-chain/disclosure.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import type { Row } from '../../store/tables.ts';

export interface ReadToken {
  readonly row: Pick<Row<'tokens'>, 'token_id' | 'type' | 'container'>;
  readonly disclosure: Disclosure | undefined;
  /** The token as it is shown, where the entry is made once that is known. */
  readonly body?: TokenBody;
}

/** Where the row is, as entries about it name the place. An intent has no container yet. */
export function containerIn(row: object | Pick<Row<'tokens'>, 'container'>): string | undefined {
  return 'container' in row ? row.container : undefined;
}

/** That a token was read. */
export function readEntry(
  actor: Actor,
  at: Instant,
  { row, disclosure, body }: ReadToken,
): LogEntry {
  const event = { token: { type: row.type } };
  const { token_id: id, container } = row;
  const fact = { entity: 'token', id, container, operation: 'read', disclosure, event } as const;
  const entry = entryOf(actor, at, fact);
  const bin = disclosure?.shown === 'revealed' && body ? binOf(body) : undefined;
  return bin === undefined ? entry : { ...entry, bin };
}

/** The BIN that the summary of a card has. */
export function binOf(summarized: object): string | undefined {
  const { card, network_token } = summarized as Readonly<Record<string, unknown>>;
  const bin = isObject(card) ? card['bin'] : isObject(network_token) && network_token['bin'];
  return typeof bin === 'string' && bin !== '' ? bin : undefined;
}
