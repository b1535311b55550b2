/** A route at the server: the steps that each of its requests passes, in their order. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Clock, second } from '../lib/clock.ts';
import { invalid } from '../lib/errors.ts';
import { countParts, type Holder, type RouteLimits } from './limits/rate-limit.ts';
import { checkMediaType } from './protocol/body.ts';
import type { ServiceHeaders } from './protocol/headers.ts';
import type { OpenRoute, Route, WholeRoute } from './protocol/route.ts';
import type { Streaming } from './protocol/streaming.ts';
import type { RequestCallers } from './request-caller.ts';
import { anyJson } from './schemas/shared.ts';
import type { RespondWhole } from './whole-response.ts';

/** A request admitted longer ago than this is admitted again before it is handled, so that a revoked key
 * works for less than a second. */
const admissionMs = second / 2;

export interface RouteSteps {
  readonly clock: Clock;
  readonly headers: ServiceHeaders;
  readonly rateLimits: (route: Route) => RouteLimits;
  readonly callers: RequestCallers;
  readonly streaming: Streaming;
  readonly respondWhole: RespondWhole;
}

export function declareRoute(app: FastifyInstance, route: Route, steps: RouteSteps): void {
  const { clock, callers } = steps;
  const limits = steps.rateLimits(route);
  app.route({
    method: route.method,
    url: route.path,
    schema: schemasOf(route),
    // To answer HEAD a stream would do all of its work for nothing.
    exposeHeadRoute: !('stream' in route),
    onRequest: async (request, reply) => {
      const sender = callers.senderOf(request);
      await limits.byAddress(sender, reply);
      // Before a body is read.
      request.admittedAt = clock.now();
      const count = (holder: Holder) => limits.byKey({ ...sender, holder }, reply);
      request.caller = await callers.admit(route, request, count);
      checkMediaType(route, request);
    },
    ...(route.body === anyJson && { preValidation: requireBody }),
    // While a body arrives slowly, its key may be revoked.
    preHandler: (request, _reply, done) => {
      if (clock.now() - request.admittedAt < admissionMs) return done();
      callers.admit(route, request).then((caller) => {
        request.caller = caller;
        done();
      }, done);
    },
    handler: (request, reply) => respond(route, { request, reply, limits, steps }),
  });
}

/** A route that needs no key. */
export function declareOpenRoute(app: FastifyInstance, { path, handle }: OpenRoute): void {
  app.get(path, async (_request, reply) => {
    const { status, body, mediaType } = await handle();
    if (mediaType !== undefined) reply.type(mediaType);
    return reply.code(status).send(body);
  });
}

interface RouteExchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly limits: RouteLimits;
  readonly steps: RouteSteps;
}

function respond(
  route: Route,
  { request, reply, limits, steps }: RouteExchange,
): Promise<FastifyReply> {
  const { callers, streaming, headers, respondWhole } = steps;
  const count = limits.ofBody(callers.senderOf(request));
  if (!('stream' in route)) {
    return countParts(route, request, count).then(() => respondWhole(route, request, reply));
  }
  refuseIdempotencyKey(request, headers);
  const caller = () => callers.admit(route, request);
  return streaming.answer({ route, request, reply, caller, count });
}

function schemasOf(route: Route): object {
  return {
    ...(route.params && { params: route.params }),
    ...(route.query && { querystring: route.query }),
    ...(!('stream' in route) && bodySchemas(route)),
  };
}

function bodySchemas({ body, reply }: WholeRoute): object {
  return {
    ...(body && { body }),
    ...(reply.body && { response: { [reply.status]: reply.body } }),
  };
}

/** Any JSON is more than nothing, which the framework would validate as null. */
function requireBody(
  { body }: FastifyRequest,
  _reply: FastifyReply,
  done: (error?: Error) => void,
): void {
  if (body === undefined) done(invalid('body', 'is required'));
  else done();
}

/** The response of a stream is not stored, so an idempotency key would have no effect. */
function refuseIdempotencyKey(request: FastifyRequest, headers: ServiceHeaders): void {
  if (request.method === 'GET') return;
  if (headers.read(request.headers, 'idempotency-key') === undefined) return;
  const header = headers.nameAsSent(request.raw, 'idempotency-key');
  throw invalid(header, 'cannot be used with a bulk request; give each line an id instead');
}
