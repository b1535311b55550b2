/** A vault under measurement: a process of its own, driven through its public API. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { packProgram } from '../tests/support/packed-program.ts';
import { freePort } from '../tests/support/temporary.ts';
import type { Method, RequestOf } from './job.ts';
import { type Server, startServer } from './process.ts';
import { type PromiseName, promises } from './promises.ts';
import type { Storage, StoredBytes } from './storage.ts';

/** As operators start it, with the settings for memory in that script. */
const { scripts } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as { readonly scripts: { readonly start: string } };
const product = 'bin/strongroom.js';
let packed: Promise<string> | undefined;

export type Transform = 'reveal' | 'mask';

export interface Vault {
  /** The process that runs now. */
  readonly server: Server;
  readonly storage: Storage;
  /** Of private applications that may do everything with tokens, and see them transformed so. */
  readonly keys: Readonly<Record<Transform, string>>;
  readonly managementKey: string;
  /** Stops, measures the stored bytes and starts again on the same data. */
  restart(): Promise<StoredBytes>;
  /** Starts one more server on the same data, which ends with the others. */
  addServer(): Promise<Server>;
  /** With the key that reveals unless another is given; the answer's text. */
  send(method: Method, request: RequestOf, key?: string): Promise<string>;
  close(): Promise<void>;
}

const tokenPermissions = ['create', 'read', 'update', 'delete', 'search', 'use'].map(
  (operation) => `token:${operation}`,
);

interface VaultOptions {
  /** A promise that it is to break, for the price of it. */
  readonly without?: PromiseName | undefined;
  /** So many answer requests. */
  readonly threads?: number;
}

export async function startVault(
  storage: Storage,
  { without, threads = 1 }: VaultOptions = {},
): Promise<Vault> {
  const managementKey = `bench_${randomBytes(24).toString('hex')}`;
  const ownPort = await freePort();
  packed ??= packProgram().then(({ command }) => command);
  const program = (without && promises[without]) ?? (await packed);
  const start = (port: number) =>
    startServer({
      script: scripts.start.replace(product, program),
      port,
      readyPath: '/readyz',
      env: {
        ...storage.env,
        STRONGROOM_PORT: String(port),
        STRONGROOM_THREADS: String(threads),
        STRONGROOM_BOOTSTRAP_KEY: managementKey,
      },
    });
  let server = await start(ownPort);
  const others: Server[] = [];

  const send = async (method: Method, { path, body }: RequestOf, key: string) => {
    const headers = headersOf(key, method);
    const response = await fetch(server.url + path, { method, headers, body: body ?? null });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} gave ${response.status}: ${text}`);
    return text;
  };
  const createApplication = async (transform: Transform): Promise<string> => {
    const rule = { priority: 1, container: '/', permissions: tokenPermissions, transform };
    const body = { name: `bench-${transform}`, type: 'private', rules: [rule] };
    const request = { path: '/applications', body: JSON.stringify(body) };
    return JSON.parse(await send('POST', request, managementKey)).key;
  };
  const keys = {
    reveal: await createApplication('reveal'),
    mask: await createApplication('mask'),
  };

  return {
    get server() {
      return server;
    },
    storage,
    keys,
    managementKey,
    async restart() {
      await server.stop();
      const stored = await storage.bytes();
      server = await start(ownPort);
      return stored;
    },
    async addServer() {
      const other = await start(await freePort());
      others.push(other);
      return other;
    },
    send: (method, request, key = keys.reveal) => send(method, request, key),
    async close() {
      for (const one of [server, ...others]) await one.stop();
      await storage.close();
    },
  };
}

export function headersOf(key: string, method: Method = 'POST'): Record<string, string> {
  const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
  return { 'content-type': type, 'svc-api-key': key };
}
