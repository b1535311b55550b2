/** The service: from the configuration to a vault that listens. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ForeignRootKeyError } from '../access/keyrings/open-vault-keys.ts';
import type { Bootstrapped } from '../access/tenants/bootstrap.ts';
import { reasonOf } from '../base/errors.ts';
import { pooledRandom } from '../base/random.ts';
import { createLog } from '../base/telemetry/log.ts';
import { RootKeyError } from '../keys/root/root-key.ts';
import { createHeldKeys, type HeldKeys, shamirName } from '../keys/root/shamir.ts';
import { type HeldAddress, holdAddress } from './address.ts';
import type { Config, Reloadable } from './config/config.ts';
import { startDelivering } from './delivering.ts';
import type { JobPause } from './jobs/runner.ts';
import { type MetricsAddress, openMetricsAddress } from './metrics-address.ts';
import { readSharedKeyIds, sharedKeyIds } from './open-vault.ts';
import { openProcess, type Process, type ProcessOptions } from './process.ts';
import { createReload, type Reloaded } from './reload.ts';
import type { RequestWorker, RequestWorkerOptions } from './request-worker.ts';
import { openRootKeySocket, type RootKeySocket } from './root-key-socket.ts';
import { listenSealed } from './sealed.ts';
import { createUnsealing, type Unsealing, type UnsealProgress } from './unsealing.ts';

export interface Running {
  /** The address on which it listens, for example `http://127.0.0.1:8080`. */
  readonly url: string;
  /** The address of the forward proxy, if there is one. */
  readonly egressUrl: string | undefined;
  /** The address of metrics, if it is another one. */
  readonly metricsUrl: string | undefined;
  readonly vault: Process;
  /** The tenant and key that the first start made in an empty store. `undefined` on every later start. */
  readonly bootstrapped: Bootstrapped | undefined;
  /**
   * Takes up what `read` returns, such as a renewed certificate, and loses no connection. What is in use stays where
   * `read` throws a ConfigError, or where what it returns cannot be used.
   */
  reload(read: () => Reloadable): Promise<Reloaded>;
  /** Resolves when every thread that serves requests has shown that it is not stuck. */
  respond(): Promise<void>;
  /** Finishes what is in flight, then closes the store. */
  stop(): Promise<void>;
}

export interface ServeOptions extends ProcessOptions, RequestWorkerOptions {
  /** Passes the time between two runs of a job; a parameter like the clock. */
  readonly jobPause?: JobPause;
  /** Called once with what was opened, before it listens: a first start shows its key whatever happens next. */
  readonly onOpened?: (vault: Process) => void;
  /** Called once if the vault waits for shares of its root key, when it listens. */
  readonly onSealed?: (url: string, progress: UnsealProgress) => void;
}

/** @throws the system's error, before anything is made, when the address cannot be listened on. */
export async function serve(config: Config, options: ServeOptions = {}): Promise<Running> {
  const held = createHeldKeys(pooledRandom());
  if (config.rootKey.source === shamirName) return serveSealed(config, options, held);
  const address = await holdAddress(config);
  try {
    let running: Running | undefined;
    const unsealing = createUnsealing({
      held,
      wrappingKeyIds: async () => keyIdsIn(running),
      onKey: async (key, threshold) => void held.add(key, threshold),
    });
    running = await open({ config, options, address, held });
    return await withSocket(running, config, unsealing);
  } finally {
    await address.release();
  }
}

async function keyIdsIn(running: Running | undefined): Promise<readonly string[]> {
  if (running === undefined) throw new RootKeyError('the server is starting');
  return sharedKeyIds(running.vault.store);
}

/** Without a socket only a later move to shares is not possible, so the server goes on. */
async function withSocket(
  running: Running,
  config: Config,
  { handle }: Unsealing,
): Promise<Running> {
  try {
    const socket = await openRootKeySocket(config.dataDir, handle);
    return stoppingAlso(running, socket);
  } catch (error) {
    if (!(error instanceof RootKeyError)) throw error;
    running.vault.log.debug('the root key cannot move to shares', { reason: error.message });
    return running;
  }
}

function stoppingAlso(running: Running, socket: RootKeySocket): Running {
  const stop = async () => {
    await socket.close();
    await running.stop();
  };
  return { ...running, stop };
}

/** Listens at once, and opens the vault when enough shares were given. */
async function serveSealed(
  config: Config,
  options: ServeOptions,
  held: HeldKeys,
): Promise<Running> {
  const { log = createLog(config.logLevel) } = options;
  const knownKeyIds = await readSharedKeyIds(config, options);
  const opened = Promise.withResolvers<Running>();
  let running: Running | undefined;
  const unsealing = createUnsealing({
    held,
    knownKeyIds,
    wrappingKeyIds: () => (running ? keyIdsIn(running) : readSharedKeyIds(config, options)),
    onKey: async (key, threshold) => {
      held.add(key, threshold);
      if (running) return;
      try {
        const { port } = address;
        running = await open({ config: { ...config, port }, options, address, held });
        opened.resolve(running);
      } catch (error) {
        log.error('the vault could not be unsealed', { reason: operatorReason(error) });
        // Nothing listens there any more.
        if (address.isReleased) opened.reject(error);
        throw new RootKeyError(
          `the vault could not be opened: ${operatorReason(error)}. Give all shares again`,
          { cause: error },
        );
      }
    },
  });
  const socket = await openRootKeySocket(config.dataDir, unsealing.handle);
  const { progress } = unsealing;
  const address = await listenSealed(config, { progress, log }).catch(async (error) => {
    await socket.close();
    throw error;
  });
  options.onSealed?.(urlOf(config, address.port), unsealing.progress());
  try {
    return stoppingAlso(await opened.promise, socket);
  } catch (error) {
    await socket.close();
    throw error;
  }
}

function operatorReason(error: unknown): string {
  const isOwn = error instanceof RootKeyError || error instanceof ForeignRootKeyError;
  return isOwn ? error.message : reasonOf(error);
}

interface Opening {
  readonly config: Config;
  readonly options: ServeOptions;
  readonly address: HeldAddress;
  readonly held: HeldKeys;
}

async function open({ config, options, address, held }: Opening): Promise<Running> {
  let metrics: MetricsAddress | undefined;
  try {
    metrics = config.metricsAddress && (await openMetricsAddress(config.metricsAddress));
    const loading = loadMeanwhile(config);
    // It fails below, or the start has failed for another reason.
    loading.catch(() => undefined);
    const vault = await openProcess(config, { ...options, sharedKeys: held });
    try {
      await loading;
      options.onOpened?.(vault);
      metrics?.show(vault);
      return await start(vault, { config, options, address, metrics });
    } catch (error) {
      await vault.close();
      throw error;
    }
  } catch (error) {
    await metrics?.close();
    throw error;
  }
}

/** Loads the server's modules while another thread, or a server, opens the database. */
async function loadMeanwhile({ threads }: Config): Promise<void> {
  await nextTurn();
  await (threads > 1 ? import('./threads.ts') : import('./request-worker.ts'));
}

interface Starting {
  readonly config: Config;
  readonly options: ServeOptions;
  readonly address: HeldAddress;
  readonly metrics: MetricsAddress | undefined;
}

async function start(vault: Process, starting: Starting): Promise<Running> {
  const { config, options, metrics } = starting;
  const listening = await listen(vault, starting);
  const jobs = vault.startJobs(options.jobPause);
  const delivering = startDelivering(vault, config);
  return {
    url: urlOf(config, listening.port),
    egressUrl:
      config.egressAddress && urlOf({ ...config, ...config.egressAddress }, listening.egressPort),
    metricsUrl: metrics?.url,
    vault,
    bootstrapped: vault.bootstrapped,
    reload: createReload(config, { ...vault, listening }),
    respond: listening.respond,
    stop: async () => {
      await Promise.all([listening.close(), jobs.stop(), delivering.stop()]);
      await metrics?.close();
      await vault.close();
    },
  };
}

interface Listening {
  readonly port: number;
  readonly egressPort: number;
  apply(...settings: Parameters<RequestWorker['apply']>): void | Promise<void>;
  respond(): Promise<void>;
  /** Resolves when every request that has begun has its response. */
  close(): Promise<void>;
}

/** On threads of their own where there are several, and here where there is one. Nothing listens after an error. */
async function listen(vault: Process, { config, options, address }: Starting): Promise<Listening> {
  if (mayShare(config, vault)) {
    const { startThreads } = await import('./threads.ts');
    const threads = await startThreads(vault, config, { ...options, address });
    return { ...threads, egressPort: config.egressAddress?.port ?? 0 };
  }
  const { createRequestWorker } = await import('./request-worker.ts');
  const worker = await createRequestWorker(vault, config, options);
  try {
    await address.release();
    const { apply, close } = worker;
    // It is this thread.
    const respond = async () => undefined;
    const port = await worker.listen(config);
    return { port, egressPort: worker.egressPort() ?? 0, apply, respond, close };
  } catch (error) {
    await worker.close();
    throw error;
  }
}

/** Whether several threads can listen on one port, which only Linux then deals connections out from. */
function mayShare({ threads }: Config, { log }: Process): boolean {
  if (threads === 1 || process.platform === 'linux') return threads > 1;
  log.warn('several threads share a port on Linux alone; one thread answers all requests');
  return false;
}

function urlOf({ host, tls }: Config, port: number): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return `${tls ? 'https' : 'http'}://${name}:${port}`;
}
