/** What is below every route: connections and their limits, bodies, failures, and the end of all of it. */
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { second } from '../lib/clock.ts';
import { VaultError } from '../lib/errors.ts';
import type { Log } from '../lib/telemetry/log.ts';
import type { Metrics } from '../lib/telemetry/metrics.ts';
import type { BeginResponse } from './begin-response.ts';
import { bodyBytesMax, jsonMediaTypes, parseBody } from './protocol/body.ts';
import { createRefuseConnection } from './protocol/connection.ts';
import { answerPreflight, type Cors } from './protocol/cors.ts';
import { createFailures } from './protocol/failures.ts';
import { watchProgress } from './protocol/progress.ts';
import { linesMediaType } from './protocol/route.ts';
import { schemaController } from './protocol/serialization.ts';
import { stopGracefully } from './protocol/stopping.ts';
import { createStreaming, type Streaming } from './protocol/streaming.ts';
import { compileValidator, type RequestPart } from './protocol/validation.ts';

/** A token id of 400 characters, each percent-encoded as four bytes of UTF-8. */
const pathParamLengthMax = 4800;
const headerBytesMax = 16_384;
/** How long a client may take to send a request, also while the server stops. */
export const requestTimeoutMs = 30 * second;
/** How often Node looks for requests past that; its own default would double the time. */
const timeoutCheckMs = second;
const keepAliveMs = 72 * second;

export interface ConnectionOptions {
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  /** Addresses and networks of proxies whose `X-Forwarded-For` is trusted. */
  readonly trustedProxies: readonly string[];
  /** Another one than {@link requestTimeoutMs}. */
  readonly requestTimeoutMs?: number | undefined;
}

export interface TransportOptions extends ConnectionOptions {
  readonly begin: BeginResponse;
  readonly cors: Cors;
  readonly log: Log;
  readonly metrics: Metrics;
}

export interface Transport {
  readonly app: FastifyInstance;
  readonly streaming: Streaming;
}

/** A server without routes. */
export function createTransport(options: TransportOptions): Transport {
  const { begin, log, metrics } = options;
  const { logFailure, fail } = createFailures(log, metrics);
  const patienceMs = options.requestTimeoutMs ?? requestTimeoutMs;
  const checkMs = Math.min(timeoutCheckMs, patienceMs);
  const app = fastify({
    ...connectionLimits(options, { patienceMs, checkMs }),
    logger: false,
    bodyLimit: bodyBytesMax,
    schemaController,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: pathParamLengthMax },
    clientErrorHandler: createRefuseConnection(log, (socket) => streaming.isStreaming(socket)),
    frameworkErrors: (error, request, reply) => {
      begin(request as FastifyRequest, reply as FastifyReply);
      fail(error, request as FastifyRequest, reply as FastifyReply);
    },
  }) as unknown as FastifyInstance;

  countResponses(app, metrics);
  const stopping = stopGracefully(app, patienceMs);
  const progress = watchProgress(app.server, { patienceMs, checkMs, log });
  const streaming = createStreaming({ stopping, progress, patienceMs, logFailure });
  app.addHook('onClose', () => streaming.ended());
  app.decorateRequest('origin', null);
  app.decorateRequest('caller', null);
  app.decorateRequest('admittedAt', 0);
  takeBodies(app);
  app.setValidatorCompiler<never>(({ schema, httpPart }) =>
    compileValidator(schema, httpPart as RequestPart),
  );
  app.setErrorHandler(fail);
  beginResponses(app, options);
  return { app, streaming };
}

interface Patience {
  readonly patienceMs: number;
  readonly checkMs: number;
}

function connectionLimits(
  { tls, trustedProxies }: ConnectionOptions,
  { patienceMs, checkMs }: Patience,
) {
  const limits = {
    maxHeaderSize: headerBytesMax,
    headersTimeout: patienceMs,
    connectionsCheckingInterval: checkMs,
  };
  return {
    requestTimeout: patienceMs,
    keepAliveTimeout: keepAliveMs,
    return503OnClosing: false,
    trustProxy: trustedProxies.length > 0 && [...trustedProxies],
    ...(tls ? { https: { ...limits, handshakeTimeout: patienceMs, ...tls } } : { http: limits }),
  };
}

function countResponses(app: FastifyInstance, metrics: Metrics): void {
  app.addHook('onResponse', (request, reply, done) => {
    metrics.request({
      method: request.method,
      route: request.routeOptions.url ?? 'none',
      status: reply.statusCode,
      seconds: reply.elapsedTime / second,
    });
    done();
  });
}

/** JSON as a whole, lines as they arrive, and nothing else. */
function takeBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(jsonMediaTypes, { parseAs: 'buffer' }, (_request, bytes, done) => {
    try {
      done(null, parseBody(bytes as Buffer));
    } catch (error) {
      done(error as Error);
    }
  });
  app.addContentTypeParser(linesMediaType, (_request, payload, done) => done(null, payload));
}

function beginResponses(
  app: FastifyInstance,
  { begin, cors }: Pick<TransportOptions, 'begin' | 'cors'>,
): void {
  app.addHook('onRequest', (request, reply, done) => {
    begin(request, reply);
    if (answerPreflight(cors, request, reply)) return;
    // Before the body is read, which is not needed.
    if (request.is404) done(new VaultError('not_found', { public: 'There is no such route.' }));
    else done();
  });
}
