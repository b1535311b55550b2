/** The composition root: from the configuration to a vault that can be asked, and one that listens. */
import { mkdirSync, readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { type Config, ConfigError } from './config.ts';
import { loadRootKey, type RootKey } from './crypto/root-key.ts';
import { createRateLimits, unknownRoutes } from './http/rate-limit.ts';
import type { Route } from './http/route.ts';
import { accessRoutes } from './http/routes/access.ts';
import { applicationKeyRoutes } from './http/routes/application-keys.ts';
import { applicationRoutes } from './http/routes/applications.ts';
import { docsRoutes } from './http/routes/docs.ts';
import { enrichmentRoutes } from './http/routes/enrichments.ts';
import { healthRoutes } from './http/routes/health.ts';
import { logRoutes } from './http/routes/logs.ts';
import { sessionRoutes } from './http/routes/sessions.ts';
import { tenantRoutes } from './http/routes/tenants.ts';
import { tokenIntentRoutes } from './http/routes/token-intents.ts';
import { tokenListRoutes } from './http/routes/token-lists.ts';
import { tokenStreamRoutes } from './http/routes/token-streams.ts';
import { tokenizationRoutes } from './http/routes/tokenization.ts';
import { tokenRoutes } from './http/routes/tokens.ts';
import { createServer } from './http/server.ts';
import { jobsOf } from './jobs/jobs.ts';
import { startJobs } from './jobs/runner.ts';
import { type Clock, minute, systemClock } from './lib/clock.ts';
import { VaultError } from './lib/errors.ts';
import { newUuid } from './lib/ids.ts';
import { createLog, type Log } from './lib/log.ts';
import { createMetrics, type Metrics } from './lib/metrics.ts';
import { pooledRandom, type Random } from './lib/random.ts';
import { createRareWarning } from './lib/rare-warning.ts';
import { createOutbound } from './outbound/call.ts';
import { openStore } from './store/open.ts';
import type { Store, StoreOptions } from './store/store.ts';
import { telling } from './store/telling.ts';
import { createAuthentication } from './vault/access/authenticate.ts';
import { createFailedAuthentication } from './vault/access/failed-authentication.ts';
import { openEnrichments } from './vault/enrichments/enrichments.ts';
import { createIdempotency } from './vault/idempotency.ts';
import { openCheckpointSink } from './vault/logs/checkpoint-sink.ts';
import { createLogExport, type LogExport, toFile, toStandardOutput } from './vault/logs/export.ts';
import { createRefusals } from './vault/logs/refusals.ts';
import { vouching } from './vault/logs/vouched.ts';
import { type Bootstrapped, bootstrap } from './vault/tenants/bootstrap.ts';
import { isRootKeyBesideProduction } from './vault/tenants/root-key-place.ts';
import { createTenants, type Tenants } from './vault/tenants/tenants.ts';

/** The release; its number stands in the package alone. */
const { version } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as { readonly version: string };

/** The parts that the server and the command line share, over one store. */
export interface Vault {
  readonly store: Store;
  readonly tenants: Tenants;
  readonly rootKey: RootKey;
  readonly clock: Clock;
  readonly random: Random;
  close(): Promise<void>;
}

/** The start is refused: the root key is not the one that sealed what is stored. */
export class ForeignRootKeyError extends Error {
  constructor(origin: string, cause: unknown) {
    super(
      `The root key (${origin}) does not open the keys stored in this database: it is another ` +
        'root key than the one they were sealed with, or the database was altered. Restore the right ' +
        'root key from its backup. Nothing was changed.',
      { cause },
    );
    this.name = 'ForeignRootKeyError';
  }
}

interface VaultOptions extends Pick<StoreOptions, 'onCommitted'> {
  readonly clock?: Clock;
  /** In place of {@link openStore}, for the benchmark, which opens one that keeps a promise less. */
  readonly open?: typeof openStore;
}

/** Opens the store and proves that the root key belongs to it, before anything is changed. */
export async function openVault(
  config: Config,
  { clock = systemClock, onCommitted, open = openStore }: VaultOptions = {},
): Promise<Vault> {
  const random = pooledRandom();
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 });
  const store = await open({
    databaseUrl: config.databaseUrl,
    dataDir: config.dataDir,
    newStreamId: () => newUuid(random),
    onCommitted,
  });
  try {
    const stored = await store.select((db) =>
      db.selectFrom('tenants').select('tenant_id').limit(1),
    );
    const rootKey = loadRootKey({
      text: config.rootKey,
      file: config.rootKeyFile,
      createIfMissing: stored.length === 0,
      random,
    });
    const tenants = createTenants({ store, rootKey, clock, random });
    await proveRootKey({ tenants, rootKey });
    const vouched = vouching(store, tenants);
    return { store: vouched, tenants, rootKey, clock, random, close: () => store.close() };
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function proveRootKey({
  tenants,
  rootKey,
}: Pick<Vault, 'tenants' | 'rootKey'>): Promise<void> {
  try {
    await tenants.verifyRootKey();
  } catch (error) {
    if (!(error instanceof VaultError) || error.code !== 'integrity') throw error;
    throw new ForeignRootKeyError(rootKey.origin, error);
  }
}

export interface Running {
  /** Where it listens, for example `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly vault: Vault;
  /** What the first start made, in an empty store; `undefined` on every later start. */
  readonly bootstrapped: Bootstrapped | undefined;
  /** Every route that asks for a key, as declared. */
  readonly routes: readonly Route[];
  /** Resolves once what became due while no server was up is done. */
  readonly caughtUp: Promise<void>;
  /** Finishes what is in flight, then closes the store. */
  stop(): Promise<void>;
}

export interface ServeOptions {
  readonly clock?: Clock;
  readonly log?: Log;
  /** How long a client may take to send a request. */
  readonly requestTimeoutMs?: number;
  /** Whether jobs run again by their time, and not only at the start. */
  readonly jobsRepeat?: boolean;
  /** See {@link VaultOptions}. */
  readonly open?: typeof openStore;
}

/** Connections that wait to be accepted; more than a system keeps are reset. */
const backlog = 4_096;

export async function serve(config: Config, options: ServeOptions = {}): Promise<Running> {
  const { clock = systemClock, log = createLog(config.logLevel), open = openStore } = options;
  const metrics = createMetrics();
  const logExport = startLogExport(config, { metrics, log, clock });
  const opened = await openVault(config, { clock, open, onCommitted: logExport?.take });
  const outbound = createOutbound({
    allow: config.outboundAllow,
    databasePort: config.databasePort,
  });
  const { tenants, random } = opened;
  const { checkpointSink } = config;
  const sink =
    checkpointSink &&
    openCheckpointSink(checkpointSink, { tenants, outbound, metrics, log, clock });
  const vault: Vault = {
    ...opened,
    store: sink ? telling(opened.store, sink.take) : opened.store,
  };
  const refusals = createRefusals({ store: vault.store, clock, log });
  const { store } = refusals;
  try {
    const bootstrapped = await bootstrap(vault, config.bootstrap);
    // Another server, with another root key, may have been the first in a store that was empty.
    if (!bootstrapped) await proveRootKey(vault);
    if (await isRootKeyBesideProduction(store, config)) {
      log.warn(
        'the root key lies in the data directory, beside the database of a production tenant: who ' +
          'copies the directory can read all values. Set STRONGROOM_ROOT_KEY_FILE or STRONGROOM_ROOT_KEY',
      );
    }
    const onMaskFailure = () => {
      metrics.count('mask_failures');
      log.warn('a stored mask could not be evaluated; its data was left out');
    };
    const enrichments = await openEnrichments(
      { clock, random, outbound, log, metrics, pause },
      config.enrichments,
    );
    const onFailedAuthentication = createFailedAuthentication({ store, clock, log });
    const { authenticate, forget } = createAuthentication({
      store,
      tenants,
      clock,
      onFailure: (origin, key, flaw) => {
        if (flaw) metrics.count('integrity_failures');
        return onFailedAuthentication(origin, key, flaw);
      },
      failureLimit: config.rateLimits.failedAuthentication,
    });
    const routes = [
      ...tokenRoutes({ store, clock, random, onMaskFailure }),
      ...tokenListRoutes({ store, clock, onMaskFailure }),
      ...tokenizationRoutes({ store, clock, random, onMaskFailure }),
      ...tokenStreamRoutes({ store, clock, random, onMaskFailure }),
      ...tokenIntentRoutes({ store, clock, random }),
      ...applicationRoutes({ store, clock, random }),
      ...applicationKeyRoutes({ store, clock, random }),
      ...accessRoutes({ store, clock }),
      ...sessionRoutes({ store, clock, random }),
      ...tenantRoutes({ store, tenants, clock }),
      ...logRoutes({ store, clock }),
      ...enrichmentRoutes({ store, clock, ...enrichments }),
    ];
    const probes = healthRoutes({ store, clock });
    const [headerPrefix = 'SVC'] = config.headerPrefixes;
    const unlimited = unknownRoutes(config.rateLimits.rules, routes);
    if (unlimited.length > 0) {
      const problem = `names routes that do not exist: ${unlimited.join(', ')}`;
      throw new ConfigError('STRONGROOM_RATE_LIMITS', problem);
    }
    const server = createServer({
      routes,
      openRoutes: [
        ...probes,
        ...docsRoutes({ routes, openRoutes: probes, headerPrefix, version, metrics }),
      ],
      metrics,
      authenticate,
      idempotency: createIdempotency({ store, clock, random, onMaskFailure }),
      store: telling(store, (change) => {
        forget(change);
        tenants.forget(change);
      }),
      clock,
      newTraceId: () => newUuid(random),
      headerPrefixes: config.headerPrefixes,
      log,
      tls: config.tls,
      rateLimits: createRateLimits({ rules: config.rateLimits.rules, store, clock }),
      trustedProxies: config.trustedProxies,
      publicUrl: config.publicUrl,
      requestTimeoutMs: options.requestTimeoutMs,
    });
    await server.listen({ host: config.host, port: config.port, backlog });
    const { port } = server.server.address() as AddressInfo;
    const host = config.host.includes(':') ? `[${config.host}]` : config.host;
    const checkpointsEveryMs = sink && minute;
    const jobs = startJobs(jobsOf({ store, tenants, clock, random }, checkpointsEveryMs), log, {
      repeats: options.jobsRepeat,
      onFailure: () => metrics.count('job_failures'),
    });
    return {
      url: `${config.tls ? 'https' : 'http'}://${host}:${port}`,
      vault,
      bootstrapped,
      routes,
      caughtUp: jobs.caughtUp,
      stop: async () => {
        await Promise.all([server.close(), jobs.stop()]);
        await refusals.close();
        await sink?.close();
        await vault.close();
        await logExport?.close();
      },
    };
  } catch (error) {
    await vault.close();
    throw error;
  }
}

function startLogExport(
  { logExport }: Config,
  { metrics, log, clock }: { readonly metrics: Metrics; readonly log: Log; readonly clock: Clock },
): LogExport | undefined {
  if (logExport === undefined) return undefined;
  const message = 'log entries were not exported; they are in the log itself';
  const warn = createRareWarning(message, { log, clock });
  const onLost = (count: number) => {
    for (let lost = 0; lost < count; lost++) metrics.count('log_export_failures');
    warn(count);
  };
  const write = logExport === 'stdout' ? toStandardOutput : toFile(logExport);
  return createLogExport({ write, onLost, pause: (ms) => pause(ms, undefined, { ref: false }) });
}
