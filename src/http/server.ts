/** The HTTP server: every request passes the same steps, in the order in which they stand here. */
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { Authenticate } from '../gate/authenticate.ts';
import type { Idempotency } from '../gate/idempotency.ts';
import { type Clock, second } from '../lib/clock.ts';
import { invalid, VaultError } from '../lib/errors.ts';
import { createSerial } from '../lib/serial.ts';
import type { Log } from '../lib/telemetry/log.ts';
import type { Metrics } from '../lib/telemetry/metrics.ts';
import type { Caller, Origin } from '../rules/caller.ts';
import { perform, type ReplySlot } from '../rules/operation.ts';
import type { HolderKind } from '../rules/permissions.ts';
import { loggingFailures } from '../rules/refusal.ts';
import type { Store } from '../store/store.ts';
import { type Applicant, createAdmission } from './limits/admission.ts';
import { countParts, type RouteLimits, type Sender } from './limits/rate-limit.ts';
import { bodyBytesMax, checkMediaType, jsonMediaTypes, parseBody } from './protocol/body.ts';
import { createRefuseConnection } from './protocol/connection.ts';
import { answerPreflight, createCors } from './protocol/cors.ts';
import { createFailures } from './protocol/failures.ts';
import { createServiceHeaders } from './protocol/headers.ts';
import { refuseOtherMethods } from './protocol/methods.ts';
import { watchProgress } from './protocol/progress.ts';
import { linesMediaType, type OpenRoute, type Route, type WholeRoute } from './protocol/route.ts';
import { createSend } from './protocol/sending.ts';
import { schemaController } from './protocol/serialization.ts';
import { stopGracefully } from './protocol/stopping.ts';
import { createStreaming } from './protocol/streaming.ts';
import { compileValidator, type RequestPart } from './protocol/validation.ts';
import { anyJson } from './schemas/shared.ts';

/** A token id of 400 characters, each percent-encoded as four bytes of UTF-8. */
const pathParamLengthMax = 4800;
const headerBytesMax = 16_384;
/** How long a client may take to send a request, also while the server stops. */
export const requestTimeoutMs = 30 * second;
/** How often Node looks for requests past that; its own default would double the time. */
const timeoutCheckMs = second;
const keepAliveMs = 72 * second;
/** What was admitted by then is admitted again before it is handled: no key outlives its end by a second. */
const admissionMs = second / 2;

const traceIdForm = /^[\x21-\x7e]{1,100}$/;

export interface ServerOptions {
  readonly routes: readonly Route[];
  readonly openRoutes: readonly OpenRoute[];
  readonly authenticate: Authenticate;
  readonly idempotency: Idempotency;
  readonly store: Store;
  readonly clock: Clock;
  readonly newTraceId: () => string;
  /** Prefixes of the service's headers; the first is its own. */
  readonly headerPrefixes: readonly string[];
  readonly log: Log;
  readonly metrics: Metrics;
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  readonly rateLimits: (route: Route) => RouteLimits;
  /** Addresses and networks of proxies whose word on the client's address is taken. */
  readonly trustedProxies: readonly string[];
  /** What a `Location` begins with; without it, it is a path. */
  readonly publicUrl: string | undefined;
  /** Another one than {@link requestTimeoutMs}. */
  readonly requestTimeoutMs?: number | undefined;
}

declare module 'fastify' {
  interface FastifyRequest {
    origin: Origin | null;
    caller: Caller | null;
    /** When the caller was admitted; 0 before. */
    admittedAt: number;
  }
}

export function createServer(options: ServerOptions): FastifyInstance {
  const { store, clock, idempotency, log } = options;
  const { tell, fail } = createFailures(log, options.metrics);
  const admit = createAdmission(options);
  const headers = createServiceHeaders(options.headerPrefixes);
  const cors = createCors(options.headerPrefixes);
  const inOrder = createSerial();
  const patienceMs = options.requestTimeoutMs ?? requestTimeoutMs;
  const checkMs = Math.min(timeoutCheckMs, patienceMs);
  const limits = {
    maxHeaderSize: headerBytesMax,
    headersTimeout: patienceMs,
    connectionsCheckingInterval: checkMs,
  };
  const app = fastify({
    logger: false,
    bodyLimit: bodyBytesMax,
    requestTimeout: patienceMs,
    keepAliveTimeout: keepAliveMs,
    return503OnClosing: false,
    trustProxy: options.trustedProxies.length > 0 && [...options.trustedProxies],
    ...(options.tls
      ? { https: { ...limits, handshakeTimeout: patienceMs, ...options.tls } }
      : { http: limits }),
    schemaController,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: pathParamLengthMax },
    clientErrorHandler: createRefuseConnection(log, (socket) => streaming.isStreaming(socket)),
    frameworkErrors: (error, request, reply) => {
      open(request as FastifyRequest, reply as FastifyReply);
      fail(error, request as FastifyRequest, reply as FastifyReply);
    },
  }) as unknown as FastifyInstance;

  app.addHook('onResponse', (request, reply, done) => {
    options.metrics.request({
      method: request.method,
      route: request.routeOptions.url ?? 'none',
      status: reply.statusCode,
      seconds: reply.elapsedTime / second,
    });
    done();
  });
  const stopping = stopGracefully(app, patienceMs);
  const progress = watchProgress(app.server, { patienceMs, checkMs, log });
  const streaming = createStreaming({ stopping, progress, patienceMs, tell });
  const send = createSend({ publicUrl: options.publicUrl, streaming });
  app.addHook('onClose', () => streaming.ended());
  app.decorateRequest('origin', null);
  app.decorateRequest('caller', null);
  app.decorateRequest('admittedAt', 0);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(jsonMediaTypes, { parseAs: 'buffer' }, (_request, bytes, done) => {
    try {
      done(null, parseBody(bytes as Buffer));
    } catch (error) {
      done(error as Error);
    }
  });
  app.addContentTypeParser(linesMediaType, (_request, payload, done) => done(null, payload));
  app.setValidatorCompiler<never>(({ schema, httpPart }) =>
    compileValidator(schema, httpPart as RequestPart),
  );
  app.setErrorHandler(fail);

  app.addHook('onRequest', (request, reply, done) => {
    open(request, reply);
    if (answerPreflight(cors, request, reply)) return;
    // Before the body is read, which nobody asked for.
    if (request.is404) done(new VaultError('not_found', { public: 'There is no such route.' }));
    else done();
  });

  for (const route of options.routes) declare(route);
  for (const route of options.openRoutes) {
    app.get(route.path, async (_request, reply) => {
      const { status, body, mediaType } = await route.handle();
      if (mediaType !== undefined) reply.type(mediaType);
      return reply.code(status).send(body);
    });
  }
  const probes = options.openRoutes.map(({ path }) => ({ path, method: 'GET' }));
  refuseOtherMethods(app, [...options.routes, ...probes]);
  return app;

  function declare(route: Route): void {
    const limits = options.rateLimits(route);
    const schema = {
      ...(route.params && { params: route.params }),
      ...(route.query && { querystring: route.query }),
      ...(!('stream' in route) && bodySchemas(route)),
    };
    app.route({
      method: route.method,
      url: route.path,
      schema,
      // To answer HEAD a stream would do all of its work for nothing.
      exposeHeadRoute: !('stream' in route),
      onRequest: async (request, reply) => {
        const sender = senderOf(request);
        await limits.byAddress(sender, reply);
        // Before a body is read.
        request.admittedAt = clock.now();
        const count = (kind: HolderKind) => limits.byKey({ ...sender, kind }, reply);
        request.caller = await admitted(route, request, count);
        checkMediaType(route, request);
      },
      ...(route.body === anyJson && { preValidation: requireBody }),
      // While a body arrives slowly, its key may be revoked.
      preHandler: (request, _reply, done) => {
        if (clock.now() - request.admittedAt < admissionMs) return done();
        admitted(route, request).then((caller) => {
          request.caller = caller;
          done();
        }, done);
      },
      handler: (request, reply) => {
        const count = limits.ofBody(senderOf(request));
        if (!('stream' in route)) {
          return countParts(route, request, count).then(() => answer(route, request, reply));
        }
        refuseIdempotencyKey(request);
        const caller = () => admitted(route, request);
        return streaming.answer({ route, request, reply, caller, count });
      },
    });
  }

  function senderOf(request: FastifyRequest): Sender {
    const key = headers.read(request.headers, 'api-key');
    return { address: originOf(request).address, key, kind: request.caller?.kind };
  }

  /** What every answer carries, also where the path was not even a path. */
  function open(request: FastifyRequest, reply: FastifyReply): void {
    const dialect = headers.dialectOf(request.headers);
    const sent = headers.read(request.headers, 'trace-id');
    const traceId = sent !== undefined && traceIdForm.test(sent) ? sent : options.newTraceId();
    request.origin = { address: request.ip, traceId, dialect };
    reply.header(`${dialect.toLowerCase()}-trace-id`, traceId);
    reply.header('cache-control', 'no-store');
    reply.header('x-content-type-options', 'nosniff');
    if (request.headers.origin !== undefined) reply.headers(cors.headers);
  }

  function admitted(
    route: Route,
    request: FastifyRequest,
    count?: Applicant['count'],
  ): Promise<Caller> {
    const key = headers.read(request.headers, 'api-key');
    return admit(route, { key, origin: originOf(request), count });
  }

  /** No answer is kept of a stream, so its key would promise what is not so. */
  function refuseIdempotencyKey(request: FastifyRequest): void {
    if (request.method === 'GET') return;
    if (headers.read(request.headers, 'idempotency-key') === undefined) return;
    const header = headers.nameAsSent(request.raw, 'idempotency-key');
    throw invalid(
      header,
      'is not taken with a stream, which is idempotent by the ids of its lines',
    );
  }

  async function answer(
    route: WholeRoute,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> {
    const { caller, params, query, body } = request;
    const input = { caller, params, query, body } as never;
    const sending = { request, reply, caller: () => admitted(route, request) };
    const decided = () => {
      const decide = route.handle(input);
      return caller ? loggingFailures(decide, { caller, clock, route }) : decide;
    };
    const run = (slot?: ReplySlot) => perform(store, decided(), slot);
    const order = route.serialKey?.(input);
    const take = order === undefined ? run : (slot?: ReplySlot) => inOrder(order, () => run(slot));
    const key = headers.read(request.headers, 'idempotency-key');
    // A key is an order for one effect; reading twice and removing twice are harmless as they are.
    if (!caller || key === undefined || route.method === 'GET' || route.method === 'DELETE') {
      return send(await take(), sending);
    }
    const header = () => headers.nameAsSent(request.raw, 'idempotency-key');
    const asked = { caller, route: `${route.method} ${pathOf(request)}`, key, header };
    return send(await idempotency(asked, take), sending);
  }
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
) {
  if (body === undefined) done(invalid('body', 'is required'));
  else done();
}

function originOf(request: FastifyRequest): Origin {
  if (!request.origin) throw new Error('the first hook sets the origin');
  return request.origin;
}

/** The path as it was sent; with and without a slash at its end it is the same. */
function pathOf(request: FastifyRequest): string {
  return (request.url.split('?', 1)[0] ?? '').replace(/\/$/, '');
}
