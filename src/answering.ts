/** What each thread that answers requests has of its own: outbound calls, enrichments, the gate, the server. */
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { type Config, ConfigError } from './config.ts';
import { type Authenticate, createAuthentication } from './gate/authenticate.ts';
import { createFailedAuthentication } from './gate/failed-authentication.ts';
import { createIdempotency, type Idempotency } from './gate/idempotency.ts';
import { createRateLimits, unknownRoutes } from './http/limits/rate-limit.ts';
import type { Route } from './http/protocol/route.ts';
import { routesOf } from './http/routes/all.ts';
import { createServer } from './http/server.ts';
import { newUuid } from './lib/ids.ts';
import { createOutbound } from './outbound/call.ts';
import type { Process } from './process.ts';
import { openEnrichments } from './vault/enrichments/enrichments.ts';

/** The release; its number stands in the package alone. */
const { version } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as { readonly version: string };

export interface Answering {
  /** Ready to listen. */
  readonly server: ReturnType<typeof createServer>;
  /** Every route that asks for a key, as declared. */
  readonly routes: readonly Route[];
  /** Resolves when every request that has begun is answered. */
  close(): Promise<void>;
}

export interface AnsweringOptions {
  /** How long a client may take to send a request. */
  readonly requestTimeoutMs?: number;
}

/**
 * @throws OperatorFileError when a configured file cannot be used, ConfigError for a limit on a route
 * that does not exist.
 */
export async function createAnswering(
  process: Process,
  config: Config,
  { requestTimeoutMs }: AnsweringOptions = {},
): Promise<Answering> {
  const { random, metrics, log } = process;
  const tools = {
    ...process,
    outbound: createOutbound({ allow: config.outboundAllow, databasePort: config.databasePort }),
    pause,
    onMaskFailure: () => {
      metrics.count('mask_failures');
      log.warn('a stored mask could not be evaluated; its data was left out');
    },
  };
  const enrichments = await openEnrichments(tools, config.enrichments);
  const [headerPrefix = 'SVC'] = config.headerPrefixes;
  const { routes, openRoutes } = routesOf({ ...tools, enrichments, headerPrefix, version });
  requireKnownRoutes(config, routes);
  const server = createServer({
    ...tools,
    ...createGate(tools, config),
    routes,
    openRoutes,
    newTraceId: () => newUuid(random),
    headerPrefixes: config.headerPrefixes,
    tls: config.tls,
    rateLimits: createRateLimits({ ...tools, rules: config.rateLimits.rules }),
    trustedProxies: config.trustedProxies,
    publicUrl: config.publicUrl,
    requestTimeoutMs,
  });
  return { server, routes, close: () => server.close() };
}

interface Gate {
  readonly authenticate: Authenticate;
  readonly idempotency: Idempotency;
}

function createGate(
  tools: Process & { readonly onMaskFailure: () => void },
  { rateLimits }: Config,
): Gate {
  const onFailedAuthentication = createFailedAuthentication(tools);
  const authenticate = createAuthentication({
    ...tools,
    onFailure: (origin, key, flaw) => {
      if (flaw) tools.metrics.count('integrity_failures');
      return onFailedAuthentication(origin, key, flaw);
    },
    failureLimit: rateLimits.failedAuthentication,
  });
  return { authenticate, idempotency: createIdempotency(tools) };
}

function requireKnownRoutes({ rateLimits }: Config, routes: readonly Route[]): void {
  const unknown = unknownRoutes(rateLimits.rules, routes);
  if (unknown.length === 0) return;
  const problem = `names routes that do not exist: ${unknown.join(', ')}`;
  throw new ConfigError('STRONGROOM_RATE_LIMITS', problem);
}
