/** Sending what a request came to: its status, where a created resource is, and a body or a list. */
import type { Caller } from '../../rules/caller.ts';
import type { Reply } from '../../rules/reply.ts';
import { type Exchange, jsonMediaType } from './exchange.ts';
import { sendMade } from './made-response.ts';
import type { WholeRoute } from './route.ts';
import type { Serialize } from './serialization.ts';
import type { Streaming } from './streaming.ts';

export interface SendingOptions {
  /** What a `Location` begins with. It does not follow from the request's Host, which anybody may write. */
  readonly publicUrl: string | undefined;
  readonly streaming: Streaming;
}

export interface Sending {
  readonly exchange: Exchange;
  readonly route: WholeRoute;
  /** By the schema of the route. */
  readonly serialize: Serialize;
  /** Who is asking, as of now. */
  readonly caller: () => Promise<Caller>;
}

/** Resolves when the response is on its way. */
export type Send = (result: Reply, sending: Sending) => Promise<void>;

export function createSend({ publicUrl = '', streaming }: SendingOptions): Send {
  return async ({ status, location, body, list, made }, sending) => {
    const { exchange, route, serialize } = sending;
    if (made) return sendMade(exchange, made);
    if (list) return streaming.answerList({ ...sending, list });
    if (location !== undefined) exchange.setHeader('location', `${publicUrl}${location}`);
    if (body === undefined) return exchange.send(status);
    const hasSchema = typeof body === 'object' && body !== null && status === route.reply.status;
    const text = hasSchema ? serialize(body) : JSON.stringify(body);
    return exchange.send(status, text, jsonMediaType);
  };
}
