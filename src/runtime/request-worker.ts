/** The parts of each thread that serves requests: outbound calls, enrichments, the gate, the server. */

import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { type Authenticate, createAuthentication } from '../access/authenticate.ts';
import { createOpenEncrypted } from '../access/client-keys/open-encrypted.ts';
import { createConsoleSessions } from '../access/console-sessions.ts';
import type { OnFailedAuthentication } from '../access/failed-authentication.ts';
import { createSigningPairs } from '../access/keyrings/signing-pairs.ts';
import type { VaultKeys } from '../access/keyrings/vault-keys.ts';
import { createFlows } from '../access/people/flows.ts';
import { createIdentityProvider } from '../access/people/identity-provider.ts';
import { createCallerOfProxy } from '../access/proxy-caller.ts';
import { createApi } from '../api/all.ts';
import type { Section } from '../api/declaration/operation.ts';
import { tokenReaders } from '../api/token-shapes.ts';
import { serializeLine } from '../api/tokens.ts';
import { newUuid } from '../base/ids.ts';
import { version } from '../base/installation/manifest.ts';
import { createProcessorTime } from '../base/processor-time.ts';
import type { Metrics } from '../base/telemetry/metrics.ts';
import { createRareWarning } from '../base/telemetry/rare-warning.ts';
import { createSpans, type Spans } from '../base/telemetry/spans.ts';
import { createTracing } from '../base/telemetry/tracing.ts';
import { consolePageRoutes } from '../browser/console-page.ts';
import { createBrowserFiles } from '../browser/files.ts';
import { createImportShared } from '../http/bulk/import-shared.ts';
import type { ImportShared, Siblings } from '../http/bulk/siblings.ts';
import { authenticatingPeople } from '../http/console/authenticate-person.ts';
import { createEgressServer } from '../http/egress/egress-server.ts';
import { createIdempotency, type Idempotency } from '../http/idempotency/idempotency.ts';
import { createOpenLimit } from '../http/limits/open-limit.ts';
import { createRateLimits, unknownRoutes } from '../http/limits/rate-limit.ts';
import { createShares } from '../http/limits/shares.ts';
import { mcpRoute } from '../http/mcp/handle-mcp.ts';
import type { Route } from '../http/protocol/route.ts';
import { calls } from '../http/proxy/methods.ts';
import { createServer, type ServerOptions } from '../http/server.ts';
import { onlyHost } from '../outbound/allow-list.ts';
import { createOutbound } from '../outbound/call.ts';
import { createCollector } from '../outbound/collector.ts';
import { createForward, type ForwardOptions } from '../outbound/forward.ts';
import { Handshakes } from '../outbound/handshakes.ts';
import { tracedForward } from '../outbound/traced.ts';
import { createTunnels } from '../outbound/tunnel.ts';
import { createProxyFinder } from '../proxies/find.ts';
import { createMasking } from '../proxies/transforms/masking.ts';
import { createStoredBytes } from '../reactors/calls/stored-bytes.ts';
import { createAdmitLog } from '../reactors/calls/stored-logs.ts';
import { openCode } from '../reactors/code/engine.ts';
import { openEnrichments } from '../tokens/enrichments/enrichments.ts';
import type { Config, Reloadable } from './config/config.ts';
import { wrongVariable } from './config/problems.ts';
import { lastBackupAt } from './last-backup.ts';
import type { Process, Shared } from './process.ts';

/** Connections that wait to be accepted; more than a system keeps are reset. */
const backlog = 4_096;

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
  /** Whether other threads listen there as well; the system deals connections out among them. */
  readonly isShared?: boolean;
}

export interface RequestWorker {
  /** @returns the port, which the system chooses for port 0. */
  listen(place: ListenAddress): Promise<number>;
  /**
   * Uses these settings from now on, the certificate for new connections.
   * @throws ConfigError, before anything has changed, for a limit on a route that does not exist.
   */
  apply(settings: WorkerReloadable): void;
  /** The port of the forward proxy, once it listens; `undefined` where there is none. */
  egressPort(): number | undefined;
  /** Every operation that requires a key, as declared. */
  readonly sections: readonly Section[];
  /** Lines of an import that another thread has begun. */
  readonly importShared: ImportShared;
  /** Resolves when every request that has begun has its response. */
  close(): Promise<void>;
}

/** The parts of the process, or of a thread's side of it, that a worker needs. */
export interface RequestWorkerTools
  extends Pick<
    Process,
    | 'store'
    | 'storeWith'
    | 'tenants'
    | 'clock'
    | 'random'
    | 'log'
    | 'isolation'
    | 'processes'
    | 'activity'
    | 'quarantine'
  > {
  readonly vaultKeys: VaultKeys;
  readonly metrics: Metrics;
  readonly shared: Pick<Shared, 'attempts' | 'onFailedAuthentication' | 'pageEnds'>;
  /** Absent if only one thread serves requests. */
  readonly siblings?: Siblings;
}

/** Plain data, which can cross to a thread. */
export type RequestWorkerConfig = Pick<
  Config,
  | 'outbound'
  | 'enrichments'
  | 'reactors'
  | 'threads'
  | 'headerPrefixes'
  | 'dataDir'
  | 'keyMaxAgeMs'
  | 'rateLimits'
  | 'tls'
  | 'trustedProxies'
  | 'publicUrl'
  | 'names'
  | 'accessLog'
  | 'egressAddress'
  | 'showsMetrics'
  | 'otlpEndpoint'
  | 'console'
  | 'identityProvider'
  | 'roleRules'
>;

/** What a worker uses of the settings that can change. */
export type WorkerReloadable = Pick<
  Reloadable,
  'tls' | 'rateLimits' | 'trustedProxies' | 'roleRules'
>;

export interface RequestWorkerOptions {
  /** The time that a client has to send a request. */
  readonly requestTimeoutMs?: number | undefined;
}

/**
 * @throws OperatorFileError when a configured file cannot be used, ConfigError for a limit on a route
 * that does not exist.
 */
export async function createRequestWorker(
  { shared, ...untraced }: RequestWorkerTools,
  config: RequestWorkerConfig,
  { requestTimeoutMs }: RequestWorkerOptions = {},
): Promise<RequestWorker> {
  const { random, metrics, log } = untraced;
  const outboundOptions = { ...config.outbound, vaultName: untraced.vaultKeys.name };
  const spans = openSpans(untraced, config, outboundOptions);
  const tracing = createTracing(random, spans);
  const processorTime = createProcessorTime();
  const store = untraced.storeWith({ tracing, onWait: processorTime.lap });
  const process = { ...untraced, store };
  const handshakes = new Handshakes({ onStep: processorTime.lap });
  /** Calls nothing beside public hosts but those of the operator's list, or one service of the operator's own. */
  const openForward = (allow = outboundOptions.allow) =>
    tracedForward(createForward({ ...outboundOptions, allow, handshakes }), tracing);
  const masking = createMasking();
  const code = openCode({ ...config.reactors, ...untraced, threads: config.threads });
  const tools = {
    ...process,
    ...shared,
    outbound: createOutbound(openForward()),
    forward: openForward(),
    maskText: masking.maskText,
    code,
    admitLog: createAdmitLog(untraced.clock),
    storedBytes: createStoredBytes(untraced),
    openEncrypted: createOpenEncrypted(process),
    signingPairs: createSigningPairs(process),
    keyMaxAgeMs: config.keyMaxAgeMs,
    lastBackupAt: () => lastBackupAt(config.dataDir),
    ...tokenReaders,
    serializeLine,
    pause,
    onMaskFailure: () => {
      metrics.count('mask_failures');
      log.warn('a stored mask could not be evaluated; its data was left out');
    },
  };
  const { bankHost } = config.enrichments;
  const enrichments = await openEnrichments(
    {
      ...tools,
      // Tenants reach what is on the operator's list, and the bank's service need not be there.
      ...(bankHost && { outbound: createOutbound(openForward(onlyHost(bankHost.url))) }),
    },
    config.enrichments,
  );
  const [headerPrefix = 'SVC'] = config.headerPrefixes;
  const { names } = config;
  const proxies = createProxyFinder({ ...process, names });
  const browserFiles = createBrowserFiles();
  const { sections, open } = createApi({
    ...tools,
    enrichments,
    proxies,
    names,
    allowedHosts: config.outbound.allow,
    showsMetrics: config.showsMetrics,
    headerPrefix,
    version,
    browserFiles,
    describe: async (api) => (await import('../api/openapi/openapi.ts')).openapiOf(api),
  });
  const routes = sections.flatMap(({ operations }) => operations);
  requireKnownRoutes(config, routes);
  const rateLimits = createRateLimits({ ...tools, rules: config.rateLimits.rules });
  const openLimits = {
    description: createOpenLimit(config.rateLimits.description),
    signIn: createOpenLimit(config.rateLimits.description),
  };
  const keyGate = createGate(tools);
  const consoleSessions = createConsoleSessions(process);
  let { roleRules } = config;
  const gate = config.console
    ? {
        ...keyGate,
        authenticate: authenticatingPeople({
          authenticate: keyGate.authenticate,
          sessions: consoleSessions,
          onFailure: countFailures(tools),
          attempts: tools.attempts,
        }),
      }
    : keyGate;
  const shares = createShares();
  const serverOptions: ServerOptions = {
    shares,
    ...tools,
    ...gate,
    routes,
    openRoutes: config.console ? [...open, ...consolePageRoutes(browserFiles)] : open,
    newTraceId: () => newUuid(random),
    headerPrefixes: config.headerPrefixes,
    tls: config.tls,
    accessLog: config.accessLog,
    processorTime,
    tracing,
    openLimit: openLimits.description,
    rateLimits: rateLimits.of,
    trustedProxies: config.trustedProxies,
    threads: config.threads,
    proxies,
    callerOfProxy: createCallerOfProxy(tools),
    names,
    vaultName: outboundOptions.vaultName,
    publicUrl: config.publicUrl,
    requestTimeoutMs,
    console: config.console
      ? {
          consoleSessions,
          flows: createFlows(tools),
          limit: openLimits.signIn.count,
          onFailure: async (origin, person) => {
            await countFailures(tools)(origin, person);
            await tools.attempts.count(origin.address);
          },
          provider:
            config.identityProvider &&
            createIdentityProvider(config.identityProvider, {
              ...tools,
              outbound: { ...outboundOptions, handshakes },
            }),
          roleRules: () => roleRules,
        }
      : undefined,
  };
  const egress =
    config.egressAddress &&
    createEgressServer({
      ...serverOptions,
      authenticate: keyGate.authenticate,
      openTunnel: createTunnels(outboundOptions),
    });
  const server = createServer({
    ...serverOptions,
    mcp: egress && {
      tools: async () => (await import('../api/agent-tools/tools.ts')).agentTools(sections),
      openForTool: egress.openForTool,
      version,
    },
  });
  return {
    sections,
    importShared: createImportShared({ ...tools, ...gate }),
    listen: async ({ host, port, isShared = false }) => {
      const place = { host, port, backlog, ...(isShared && { reusePort: true }) };
      await server.listen(place);
      if (egress) await egress.listen({ ...place, ...config.egressAddress });
      return (server.server.address() as AddressInfo).port;
    },
    egressPort: () => (egress?.server.address() as AddressInfo | null | undefined)?.port,
    apply: (settings) => {
      requireKnownRoutes(settings, routes);
      const { rules, failedAuthentication, description } = settings.rateLimits;
      for (const one of egress ? [server, egress] : [server]) {
        if (settings.tls) one.setTls(settings.tls);
        one.setTrustedProxies(settings.trustedProxies);
      }
      rateLimits.setRules(rules);
      shared.attempts.setLimit(failedAuthentication);
      roleRules = settings.roleRules;
      for (const limit of Object.values(openLimits)) limit.setLimit(description);
    },
    close: async () => {
      await Promise.all([server.close(), egress?.close()]);
      await masking.close();
      await code.sandbox?.close();
      await spans?.close();
    },
  };
}

/** The export of spans if a collector is configured. Only the stop waits for it, and only briefly. */
function openSpans(
  { metrics, log, clock }: Pick<RequestWorkerTools, 'metrics' | 'log' | 'clock'>,
  { otlpEndpoint }: RequestWorkerConfig,
  outbound: ForwardOptions,
): Spans | undefined {
  if (otlpEndpoint === undefined) return undefined;
  const warn = createRareWarning('spans were not delivered to the collector', { log, clock });
  return createSpans({
    version,
    send: createCollector(otlpEndpoint, outbound),
    onLost: (count) => {
      metrics.count('trace_spans_lost', count);
      warn(count);
    },
  });
}

interface Gate {
  readonly authenticate: Authenticate;
  readonly idempotency: Idempotency;
}

function createGate(
  tools: Omit<RequestWorkerTools, 'shared'> &
    RequestWorkerTools['shared'] & { readonly onMaskFailure: () => void },
): Gate {
  const authenticate = createAuthentication({
    ...tools,
    onFailure: countFailures(tools),
  });
  return { authenticate, idempotency: createIdempotency(tools) };
}

function countFailures({
  metrics,
  onFailedAuthentication,
}: Pick<RequestWorkerTools, 'metrics'> &
  Pick<RequestWorkerTools['shared'], 'onFailedAuthentication'>): OnFailedAuthentication {
  return (origin, key, flaw) => {
    metrics.count('authentication_failures');
    if (flaw) metrics.count('integrity_failures');
    return onFailedAuthentication(origin, key, flaw);
  };
}

function requireKnownRoutes(
  { rateLimits }: Pick<RequestWorkerConfig, 'rateLimits'>,
  routes: readonly Route[],
): void {
  const unknown = unknownRoutes(rateLimits.rules, [...routes, ...calls, mcpRoute]);
  if (unknown.length === 0) return;
  throw wrongVariable(rateLimits.place, `names routes that do not exist: ${unknown.join(', ')}`);
}
