/** Sending what a request came to: its status, where a created resource is, and a body or a list. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../../rules/caller.ts';
import type { Reply } from '../../rules/reply.ts';
import type { Streaming } from './streaming.ts';

export interface SendingOptions {
  /** What a `Location` begins with. It does not follow from the request's Host, which anybody may write. */
  readonly publicUrl: string | undefined;
  readonly streaming: Streaming;
}

export interface Sending {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** Who is asking, as of now. */
  readonly caller: () => Promise<Caller>;
}

export type Send = (result: Reply, sending: Sending) => Promise<FastifyReply>;

export function createSend({ publicUrl = '', streaming }: SendingOptions): Send {
  return async ({ status, location, body, list }, { request, reply, caller }) => {
    if (list) return streaming.answerList({ request, reply, list, caller });
    if (location !== undefined) reply.header('location', `${publicUrl}${location}`);
    if (body === undefined || (typeof body === 'object' && body !== null)) {
      return reply.code(status).send(body);
    }
    // Fastify would send a text as text, and nothing for null.
    return reply.code(status).type('application/json').send(JSON.stringify(body));
  };
}
