/** The service: from the configuration to a vault that listens. */
import type { AddressInfo } from 'node:net';
import { type Answering, type AnsweringOptions, createAnswering } from './answering.ts';
import type { Config } from './config.ts';
import type { Route } from './http/protocol/route.ts';
import type { JobPause } from './jobs/runner.ts';
import type { Vault } from './open-vault.ts';
import { openProcess, type Process, type ProcessOptions } from './process.ts';
import type { Bootstrapped } from './vault/tenants/bootstrap.ts';

export interface Running {
  /** Where it listens, for example `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly vault: Vault;
  /** What the first start made, in an empty store; `undefined` on every later start. */
  readonly bootstrapped: Bootstrapped | undefined;
  /** Every route that asks for a key, as declared. */
  readonly routes: readonly Route[];
  /** Finishes what is in flight, then closes the store. */
  stop(): Promise<void>;
}

export interface ServeOptions extends ProcessOptions, AnsweringOptions {
  /** Passes the time between two runs of a job; a parameter like the clock. */
  readonly jobPause?: JobPause;
}

/** Connections that wait to be accepted; more than a system keeps are reset. */
const backlog = 4_096;

export async function serve(config: Config, options: ServeOptions = {}): Promise<Running> {
  const vault = await openProcess(config, options);
  try {
    const answering = await createAnswering(vault, config, options);
    const url = await listen(answering, config);
    return run({ vault, answering, url }, options);
  } catch (error) {
    await vault.close();
    throw error;
  }
}

/** Closes what could not listen. */
async function listen({ server, close }: Answering, { host, port, tls }: Config): Promise<string> {
  try {
    await server.listen({ host, port, backlog });
  } catch (error) {
    await close();
    throw error;
  }
  const address = server.server.address() as AddressInfo;
  const name = host.includes(':') ? `[${host}]` : host;
  return `${tls ? 'https' : 'http'}://${name}:${address.port}`;
}

interface Listening {
  readonly vault: Process;
  readonly answering: Answering;
  readonly url: string;
}

function run({ vault, answering, url }: Listening, { jobPause }: ServeOptions): Running {
  const jobs = vault.startJobs(jobPause);
  return {
    url,
    vault,
    bootstrapped: vault.bootstrapped,
    routes: answering.routes,
    stop: async () => {
      await Promise.all([answering.close(), jobs.stop()]);
      await vault.close();
    },
  };
}
