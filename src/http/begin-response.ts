/** The beginning of every response: where its request comes from, and the headers that all carry. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller, Origin } from '../rules/caller.ts';
import type { Cors } from './protocol/cors.ts';
import type { ServiceHeaders } from './protocol/headers.ts';

const traceIdForm = /^[\x21-\x7e]{1,100}$/;

declare module 'fastify' {
  interface FastifyRequest {
    origin: Origin | null;
    caller: Caller | null;
    /** When the caller was admitted; 0 before. */
    admittedAt: number;
  }
}

export interface BeginResponseOptions {
  readonly headers: ServiceHeaders;
  readonly cors: Cors;
  readonly newTraceId: () => string;
}

/** Also for a request whose path was not even a path. */
export type BeginResponse = (request: FastifyRequest, reply: FastifyReply) => void;

export function createBeginResponse({
  headers,
  cors,
  newTraceId,
}: BeginResponseOptions): BeginResponse {
  return (request, reply) => {
    const dialect = headers.dialectOf(request.headers);
    const sent = headers.read(request.headers, 'trace-id');
    const traceId = sent !== undefined && traceIdForm.test(sent) ? sent : newTraceId();
    request.origin = { address: request.ip, traceId, dialect };
    reply.header(`${dialect.toLowerCase()}-trace-id`, traceId);
    reply.header('cache-control', 'no-store');
    reply.header('x-content-type-options', 'nosniff');
    if (request.headers.origin !== undefined) reply.headers(cors.headers);
  };
}

export function originOf(request: FastifyRequest): Origin {
  if (!request.origin) throw new Error('the first hook sets the origin');
  return request.origin;
}
