/** The composition root: from the configuration to a vault that can be asked, and one that listens. */
import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import type { Config } from './config.ts';
import { loadRootKey, type RootKey } from './crypto/root-key.ts';
import { applicationRoutes } from './http/routes/applications.ts';
import { healthRoutes } from './http/routes/health.ts';
import { logRoutes } from './http/routes/logs.ts';
import { tokenRoutes } from './http/routes/tokens.ts';
import { createServer } from './http/server.ts';
import { type Clock, systemClock } from './lib/clock.ts';
import { VaultError } from './lib/errors.ts';
import { createLog, type Log } from './lib/log.ts';
import { pooledRandom, type Random } from './lib/random.ts';
import { openStore, type Store } from './store/store.ts';
import { createAuthenticate } from './vault/authenticate.ts';
import { type Bootstrapped, bootstrap } from './vault/bootstrap.ts';
import { createIdempotency } from './vault/idempotency.ts';
import { createTenants, type Tenants } from './vault/tenants.ts';

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

/** Opens the store and proves that the root key belongs to it, before anything is changed. */
export async function openVault(config: Config, clock: Clock = systemClock): Promise<Vault> {
  const random = pooledRandom();
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 });
  const store = await openStore({
    databaseUrl: config.databaseUrl,
    dataDir: config.dataDir,
    newStreamId: randomUUID,
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
    await tenants.verifyRootKey().catch((error: unknown) => {
      throw error instanceof VaultError && error.code === 'integrity'
        ? new ForeignRootKeyError(rootKey.origin, error)
        : error;
    });
    return { store, tenants, rootKey, clock, random, close: () => store.close() };
  } catch (error) {
    await store.close();
    throw error;
  }
}

export interface Running {
  /** Where it listens, for example `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly vault: Vault;
  /** What the first start made, in an empty store; `undefined` on every later start. */
  readonly bootstrapped: Bootstrapped | undefined;
  /** Finishes what is in flight, then closes the store. */
  stop(): Promise<void>;
}

export interface ServeOptions {
  readonly clock?: Clock;
  readonly log?: Log;
}

export async function serve(config: Config, options: ServeOptions = {}): Promise<Running> {
  const { clock = systemClock, log = createLog(config.logLevel) } = options;
  const vault = await openVault(config, clock);
  const { store, tenants, random } = vault;
  try {
    const bootstrapped = await bootstrap(vault, config.bootstrap);
    const onMaskFailure = () =>
      log.warn('a stored mask could not be evaluated; its data was left out');
    const server = createServer({
      routes: [
        ...tokenRoutes({ store, clock, random, onMaskFailure }),
        ...applicationRoutes({ clock, random }),
        ...logRoutes({ store, clock }),
      ],
      openRoutes: healthRoutes({ store, clock }),
      authenticate: createAuthenticate({ store, tenants, clock }),
      idempotency: createIdempotency({ store, clock, random }),
      store,
      clock,
      newTraceId: randomUUID,
      headerPrefixes: config.headerPrefixes,
      log,
      tls: config.tls,
    });
    await server.listen({ host: config.host, port: config.port });
    const { port } = server.server.address() as AddressInfo;
    const host = config.host.includes(':') ? `[${config.host}]` : config.host;
    return {
      url: `${config.tls ? 'https' : 'http'}://${host}:${port}`,
      vault,
      bootstrapped,
      stop: async () => {
        await server.close();
        await vault.close();
      },
    };
  } catch (error) {
    await vault.close();
    throw error;
  }
}
