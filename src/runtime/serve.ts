/** The service: from the configuration to a vault that listens. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Bootstrapped } from '../access/tenants/bootstrap.ts';
import type { PemPair } from '../keys/tls-pair.ts';
import { type HeldAddress, holdAddress } from './address.ts';
import type { Config, Reloadable } from './config/config.ts';
import { startDelivering } from './delivering.ts';
import type { JobPause } from './jobs/runner.ts';
import { type MetricsAddress, openMetricsAddress } from './metrics-address.ts';
import { openProcess, type Process, type ProcessOptions } from './process.ts';
import { createReload } from './reload.ts';
import type { RequestWorkerOptions } from './request-worker.ts';

export interface Running {
  /** Where it listens, for example `http://127.0.0.1:8080`. */
  readonly url: string;
  /** Where metrics are shown, if not there. */
  readonly metricsUrl: string | undefined;
  readonly vault: Process;
  /** What the first start made, in an empty store; `undefined` on every later start. */
  readonly bootstrapped: Bootstrapped | undefined;
  /**
   * Takes up what `read` returns, such as a renewed certificate, and loses no connection. What is in use stays where
   * `read` throws a ConfigError. Says in the log what came of it.
   */
  reload(read: () => Reloadable): Promise<void>;
  /** Finishes what is in flight, then closes the store. */
  stop(): Promise<void>;
}

export interface ServeOptions extends ProcessOptions, RequestWorkerOptions {
  /** Passes the time between two runs of a job; a parameter like the clock. */
  readonly jobPause?: JobPause;
  /** Called once with what was opened, before it listens: a first start shows its key whatever happens next. */
  readonly onOpened?: (vault: Process) => void;
}

/** @throws the system's error, before anything is made, when the address cannot be listened on. */
export async function serve(config: Config, options: ServeOptions = {}): Promise<Running> {
  const address = await holdAddress(config);
  let metrics: MetricsAddress | undefined;
  try {
    metrics = config.metricsAddress && (await openMetricsAddress(config.metricsAddress));
    const loading = loadMeanwhile(config);
    // It fails below, or the start has failed for another reason.
    loading.catch(() => undefined);
    const vault = await openProcess(config, options);
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
  } finally {
    await address.release();
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
    metricsUrl: metrics?.url,
    vault,
    bootstrapped: vault.bootstrapped,
    reload: createReload(config, { ...vault, setTls: listening.setTls }),
    stop: async () => {
      await Promise.all([listening.close(), jobs.stop(), delivering.stop()]);
      await metrics?.close();
      await vault.close();
    },
  };
}

interface Listening {
  readonly port: number;
  setTls(pair: PemPair): void | Promise<void>;
  /** Resolves when every request that has begun has its response. */
  close(): Promise<void>;
}

/** On threads of their own where there are several, and here where there is one. Nothing listens after an error. */
async function listen(vault: Process, { config, options, address }: Starting): Promise<Listening> {
  if (mayShare(config, vault)) {
    const { startThreads } = await import('./threads.ts');
    return startThreads(vault, config, { ...options, address });
  }
  const { createRequestWorker } = await import('./request-worker.ts');
  const worker = await createRequestWorker(vault, config, options);
  try {
    await address.release();
    const { setTls, close } = worker;
    return { port: await worker.listen(config), setTls, close };
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
