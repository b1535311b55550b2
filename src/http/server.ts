/** The HTTP server: every request passes the same steps, in the order in which they stand here. */
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { type Clock, second } from '../lib/clock.ts';
import { errorKinds, VaultError } from '../lib/errors.ts';
import type { Log } from '../lib/log.ts';
import { createSerial } from '../lib/serial.ts';
import type { Store } from '../store/store.ts';
import { holds } from '../vault/access.ts';
import type { Authenticate } from '../vault/authenticate.ts';
import type { Caller, Origin } from '../vault/caller.ts';
import type { Idempotency } from '../vault/idempotency.ts';
import { perform, type Reply, type ReplySlot, refuse } from '../vault/perform.ts';
import { bodyBytesMax, jsonMediaTypes, mediaTypeOf, parseBody } from './body.ts';
import { createServiceHeaders } from './headers.ts';
import { problemMediaType, problemOf, vaultErrorOf } from './problem.ts';
import type { OpenRoute, Route } from './route.ts';
import { compileValidator, type Part } from './validation.ts';

/** A token id of 400 characters, each percent-encoded as four bytes of UTF-8. */
const pathParamLengthMax = 4800;
const headerBytesMax = 16_384;
/** How long a client may take to send a request. */
const requestTimeoutMs = 30 * second;
const keepAliveMs = 72 * second;

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
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
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
}

declare module 'fastify' {
  interface FastifyRequest {
    origin: Origin | null;
    caller: Caller | null;
  }
}

export function createServer(options: ServerOptions): FastifyInstance {
  const { store, clock, authenticate, idempotency, log } = options;
  const headers = createServiceHeaders(options.headerPrefixes);
  const inTurn = createSerial();
  const app = fastify({
    logger: false,
    bodyLimit: bodyBytesMax,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: keepAliveMs,
    http: { maxHeaderSize: headerBytesMax, headersTimeout: requestTimeoutMs },
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: pathParamLengthMax },
    frameworkErrors: (error, request, reply) =>
      fail(error, request as FastifyRequest, reply as FastifyReply),
    ...(options.tls && { https: options.tls }),
  }) as unknown as FastifyInstance;

  app.decorateRequest('origin', null);
  app.decorateRequest('caller', null);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(jsonMediaTypes, { parseAs: 'buffer' }, (_request, bytes, done) => {
    try {
      done(null, parseBody(bytes as Buffer));
    } catch (error) {
      done(error as Error);
    }
  });
  app.setValidatorCompiler<never>(({ schema, httpPart }) =>
    compileValidator(schema, httpPart as Part),
  );
  app.setErrorHandler(fail);
  app.setNotFoundHandler(() => {
    throw new VaultError('not_found', { public: 'There is no such route.' });
  });

  app.addHook('onRequest', async (request, reply) => {
    const dialect = headers.dialectOf(request.headers);
    const sent = headers.read(request.headers, 'trace-id');
    const traceId = sent !== undefined && traceIdForm.test(sent) ? sent : options.newTraceId();
    request.origin = { address: request.ip, traceId, dialect };
    reply.header(`${dialect.toLowerCase()}-trace-id`, traceId);
    reply.header('cache-control', 'no-store');
    reply.header('x-content-type-options', 'nosniff');
  });

  for (const route of options.routes) declare(route);
  for (const route of options.openRoutes) {
    app.get(route.path, async (_request, reply) => {
      const { status, body } = await route.handle();
      return reply.code(status).send(body);
    });
  }
  refuseOtherMethods();
  return app;

  function declare(route: Route): void {
    const schema = {
      ...(route.params && { params: route.params }),
      ...(route.query && { querystring: route.query }),
      ...(route.body && { body: route.body }),
      ...(route.reply.body && { response: { [route.reply.status]: route.reply.body } }),
    };
    app.route({
      method: route.method,
      url: route.path,
      schema,
      onRequest: async (request) => {
        request.caller = await admit(route, request);
        checkMediaType(route, request);
      },
      handler: (request, reply) => answer(route, request, reply),
    });
  }

  /** Who is calling, and whether the key holds the route's permission at all, before a body is read. */
  async function admit(route: Route, request: FastifyRequest): Promise<Caller> {
    const caller = await authenticate(headers.read(request.headers, 'api-key'), originOf(request));
    const { permission } = route;
    if (permission !== 'any key' && !holds(caller.policy, permission)) {
      const entity = permission.slice(0, permission.lastIndexOf(':'));
      await perform(store, async () =>
        refuse(caller, clock.now(), { entity, id: '*', permission }),
      );
    }
    return caller;
  }

  async function answer(
    route: Route,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> {
    const { caller, params, query, body } = request;
    const input = { caller, params, query, body } as never;
    const run = (slot?: ReplySlot) => perform(store, route.handle(input), slot);
    const turn = route.turn?.(input);
    const take = turn === undefined ? run : (slot?: ReplySlot) => inTurn(turn, () => run(slot));
    const key = headers.read(request.headers, 'idempotency-key');
    // A key is an order for one effect; reading twice and removing twice are harmless as they are.
    const once = caller && key !== undefined && route.method !== 'GET' && route.method !== 'DELETE';
    const result = once
      ? await idempotency({ caller, route: `${route.method} ${pathOf(request)}`, key }, take)
      : await take();
    return send(result, request, reply);
  }

  function fail(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const failure = vaultErrorOf(error);
    const { status } = errorKinds[failure.code];
    const fields = {
      method: request.method,
      status,
      code: failure.code,
      reason: failure.message,
      ...(request.routeOptions?.url !== undefined && { route: request.routeOptions.url }),
      ...(request.origin && { trace_id: request.origin.traceId }),
      ...(request.caller && { tenant_id: request.caller.tenant.id }),
    };
    if (status >= 500) log.error('request failed', fields);
    else log.debug('request refused', fields);
    // The reply's schema is for success; a problem document is serialised as it is.
    return reply
      .code(status)
      .headers({ ...failure.headers, 'content-type': problemMediaType })
      .serializer((problem: unknown) => JSON.stringify(problem))
      .send(problemOf(failure));
  }

  /** A known path with a method it does not have is a 405 that says which it has. */
  function refuseOtherMethods(): void {
    const known = new Map<string, string[]>();
    for (const { path } of options.openRoutes) known.set(path, ['GET']);
    for (const { path, method } of options.routes)
      known.set(path, [...(known.get(path) ?? []), method]);
    for (const [path, allowed] of known) {
      const allow = [...allowed, ...(allowed.includes('GET') ? ['HEAD'] : [])].sort().join(', ');
      app.route({
        method: methods.filter((method) => !allowed.includes(method)),
        url: path,
        handler: async () => {
          throw new VaultError('method_not_allowed', {
            public: `This path takes ${allow}.`,
            headers: { allow },
          });
        },
      });
    }
  }
}

function originOf(request: FastifyRequest): Origin {
  if (!request.origin) throw new Error('the first hook sets the origin');
  return request.origin;
}

function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0] ?? '';
}

function checkMediaType(
  { body, mediaType = 'application/json' }: Route,
  request: FastifyRequest,
): void {
  if (!body || mediaTypeOf(request.headers['content-type']) === mediaType) return;
  throw new VaultError('unsupported_media_type', {
    public: `The body must be sent as ${mediaType}.`,
    headers: request.method === 'PATCH' ? { 'accept-patch': mediaType } : {},
  });
}

function send(result: Reply, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (result.location !== undefined) {
    reply.header('location', `${request.protocol}://${request.host}${result.location}`);
  }
  return reply.code(result.status).send(result.body);
}
