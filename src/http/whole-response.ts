/** Whole responses: the operation runs, once per idempotency key where there is one, and its reply is sent. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Idempotency } from '../gate/idempotency.ts';
import type { Clock } from '../lib/clock.ts';
import { createSerial } from '../lib/serial.ts';
import { perform, type ReplySlot } from '../rules/operation.ts';
import { loggingFailures } from '../rules/refusal.ts';
import type { Reply } from '../rules/reply.ts';
import type { Store } from '../store/store.ts';
import type { ServiceHeaders } from './protocol/headers.ts';
import type { WholeRoute } from './protocol/route.ts';
import { createSend } from './protocol/sending.ts';
import type { Streaming } from './protocol/streaming.ts';
import type { RequestCallers } from './request-caller.ts';

export interface WholeResponderOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly idempotency: Idempotency;
  readonly headers: ServiceHeaders;
  readonly callers: RequestCallers;
  readonly streaming: Streaming;
  /** What a `Location` begins with; without it, it is a path. */
  readonly publicUrl: string | undefined;
}

export type RespondWhole = (
  route: WholeRoute,
  request: FastifyRequest,
  reply: FastifyReply,
) => Promise<FastifyReply>;

type Run = (slot?: ReplySlot) => Promise<Reply>;

export function createWholeResponder(options: WholeResponderOptions): RespondWhole {
  const { store, clock, idempotency, headers, callers } = options;
  const send = createSend(options);
  const inOrder = createSerial();

  /** Requests with one serial key run one after the other. */
  function operationOf(route: WholeRoute, { caller, params, query, body }: FastifyRequest): Run {
    const input = { caller, params, query, body } as never;
    const decided = () => {
      const decide = route.handle(input);
      return caller ? loggingFailures(decide, { caller, clock, route }) : decide;
    };
    const run: Run = (slot) => perform(store, decided(), slot);
    const order = route.serialKey?.(input);
    return order === undefined ? run : (slot) => inOrder(order, () => run(slot));
  }

  return async (route, request, reply) => {
    const { caller } = request;
    const run = operationOf(route, request);
    const sending = { request, reply, caller: () => callers.admit(route, request) };
    const key = headers.read(request.headers, 'idempotency-key');
    // A key is an order for one effect; reading twice and removing twice are harmless as they are.
    if (!caller || key === undefined || route.method === 'GET' || route.method === 'DELETE') {
      return send(await run(), sending);
    }
    const header = () => headers.nameAsSent(request.raw, 'idempotency-key');
    const keyed = { caller, route: `${route.method} ${pathOf(request)}`, key, header };
    return send(await idempotency(keyed, run), sending);
  };
}

/** The path as it was sent; with and without a slash at its end it is the same. */
function pathOf(request: FastifyRequest): string {
  return (request.url.split('?', 1)[0] ?? '').replace(/\/$/, '');
}
