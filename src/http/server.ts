/** The HTTP server: a transport, the steps that requests pass on it, and the routes. */
import type { ActivityCounter } from '../access/activity/counting.ts';
import type { Authenticate } from '../access/authenticate.ts';
import type { OpenEncrypted } from '../access/client-keys/open-encrypted.ts';
import type { CallerOfProxy } from '../access/proxy-caller.ts';
import type { Clock } from '../base/clock.ts';
import type { ProcessorTime } from '../base/processor-time.ts';
import type { Random } from '../base/random.ts';
import type { Log } from '../base/telemetry/log.ts';
import type { Metrics } from '../base/telemetry/metrics.ts';
import type { Tracing } from '../base/telemetry/tracing.ts';
import type { Forward } from '../outbound/forward.ts';
import type { ProxyFinder } from '../proxies/find.ts';
import type { Masking } from '../proxies/transforms/masking.ts';
import type { CodeEngine } from '../reactors/code/engine.ts';
import type { VaultNames } from '../rules/host-names.ts';
import type { Tenants } from '../rules/tenant.ts';
import type { Store } from '../store/store.ts';
import type { OnMaskFailure } from '../tokens/contents/view.ts';
import { createBeginResponse } from './begin-response.ts';
import { consoleKeyOf } from './console/credential.ts';
import { type SigningIn, signInRoutes } from './console/sign-in.ts';
import { createHandling, openHandlerOf } from './handle-request.ts';
import type { Idempotency } from './idempotency/idempotency.ts';
import { createAdmission } from './limits/admission.ts';
import type { OpenLimit } from './limits/open-limit.ts';
import type { RouteLimits, RouteName } from './limits/rate-limit.ts';
import type { Shares } from './limits/shares.ts';
import { createMcp, type McpOptions, mcpPath } from './mcp/handle-mcp.ts';
import { observingRequests } from './observe-requests.ts';
import { createCors } from './protocol/cors.ts';
import { createServiceHeaders } from './protocol/headers.ts';
import { otherMethods } from './protocol/methods.ts';
import type { OpenRoute, Route } from './protocol/route.ts';
import { type CallingOptions, createCalling } from './proxy/handle-call.ts';
import { type ConnectionOptions, createTransport, type HttpServer } from './transport.ts';

/** The console; absent where the operator turned it off. */
export type ConsoleOptions = Omit<
  SigningIn,
  | 'store'
  | 'clock'
  | 'tenants'
  | 'random'
  | 'headers'
  | 'headerPrefix'
  | 'publicUrl'
  | 'isTls'
  | 'openLimit'
>;

export interface ServerOptions
  extends ConnectionOptions,
    Pick<CallingOptions, 'readRequest' | 'readPatch'> {
  readonly routes: readonly Route[];
  readonly openRoutes: readonly OpenRoute[];
  readonly authenticate: Authenticate;
  readonly idempotency: Idempotency;
  readonly store: Store;
  readonly clock: Clock;
  readonly tenants: Pick<Tenants, 'find' | 'findForRequest'>;
  readonly newTraceId: () => string;
  /** Prefixes of the service's headers; the first is its own. */
  readonly headerPrefixes: readonly string[];
  readonly log: Log;
  readonly metrics: Metrics;
  readonly rateLimits: (route: RouteName) => RouteLimits;
  readonly openLimit: OpenLimit;
  readonly processorTime: ProcessorTime;
  readonly proxies: ProxyFinder;
  readonly callerOfProxy: CallerOfProxy;
  readonly forward: Forward;
  readonly maskText: Masking['maskText'];
  readonly openEncrypted: OpenEncrypted;
  readonly code: CodeEngine;
  readonly random: Random;
  readonly onMaskFailure: OnMaskFailure;
  readonly names: VaultNames;
  readonly vaultName: string;
  /** The prefix of a `Location`; without it, the `Location` is a path. */
  readonly publicUrl: string | undefined;
  /** Whether each request is a line of the log. */
  readonly accessLog: boolean;
  readonly tracing: Tracing;
  readonly activity: Pick<ActivityCounter, 'request'>;
  readonly console: ConsoleOptions | undefined;
  /** The tools for agents; absent where there is no forward proxy. */
  readonly mcp?: Pick<McpOptions, 'tools' | 'openForTool' | 'version'> | undefined;
  readonly shares: Shares;
}

export function createServer(options: ServerOptions): HttpServer {
  const { routes, openRoutes, headerPrefixes } = options;
  const headers = createServiceHeaders(headerPrefixes);
  const cors = createCors(headerPrefixes);
  const begin = createBeginResponse({ ...options, headers, cors });
  const transport = createTransport({
    ...options,
    begin,
    cors,
    onEnd: observingRequests(options),
    keyOf: ({ headers: sent }) =>
      headers.read(sent, 'api-key') ?? (options.console && consoleKeyOf(sent, headers)),
  });
  const admission = createAdmission(options);
  const { streaming } = transport;
  const handlerOf = createHandling({ ...options, headers, admission, streaming });
  transport.divert(
    createCalling({
      ...options,
      headers,
      admission,
      streaming,
    }),
  );
  for (const route of routes) {
    transport.route(methodsOf(route), route.path, handlerOf(route));
  }
  for (const route of openRoutes) {
    transport.route(['GET', 'HEAD'], route.path, openHandlerOf(route, options.openLimit));
  }
  const consoleRoutes = options.console ? consoleRoutesOf(options.console, options) : [];
  for (const { methods, path, handle } of consoleRoutes) transport.route(methods, path, handle);
  const mcpRoutes = options.mcp
    ? [
        {
          methods: ['POST'] as const,
          path: mcpPath,
          handle: createMcp({ ...options, ...options.mcp, admission }),
        },
      ]
    : [];
  for (const { methods, path, handle } of mcpRoutes) transport.route(methods, path, handle);
  const known = [
    ...consoleRoutes,
    ...mcpRoutes,
    ...routes.map((route) => ({ path: route.path, methods: methodsOf(route) })),
    ...openRoutes.map(({ path }) => ({ path, methods: ['GET', 'HEAD'] })),
  ];
  for (const { methods, path, refusal } of otherMethods(known)) {
    transport.refuse(methods, path, refusal);
  }
  return transport;
}

function consoleRoutesOf(served: ConsoleOptions, options: ServerOptions) {
  const { headerPrefixes, tls } = options;
  const [headerPrefix = 'SVC'] = headerPrefixes;
  const headers = createServiceHeaders(headerPrefixes);
  const tools = { ...options, ...served, headers, headerPrefix, isTls: tls !== undefined };
  return signInRoutes(tools).map(({ method, ...route }) => ({ methods: [method], ...route }));
}

/** A stream would do all of its work for a HEAD request, for nothing. */
function methodsOf(route: Route): Route['method'][] | ['GET', 'HEAD'] {
  return route.method === 'GET' && !('stream' in route) ? ['GET', 'HEAD'] : [route.method];
}
