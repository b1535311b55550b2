/** A running vault for tests of the HTTP interface, on either engine, with a clock that tests move. */
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import type { Section } from '../../src/api/declaration/operation.ts';
import { SharedClock } from '../../src/base/shared-clock.ts';
import type { Log, LogFields } from '../../src/base/telemetry/log.ts';
import type { Route } from '../../src/http/protocol/route.ts';
import type { findIsolation } from '../../src/reactors/sandbox/probe.ts';
import { type Config, readConfig } from '../../src/runtime/config/config.ts';
import { jobsOf } from '../../src/runtime/jobs/jobs.ts';
import { createRequestWorker } from '../../src/runtime/request-worker.ts';
import { type Running, serve } from '../../src/runtime/serve.ts';
import { type Engine, openTested, type Place } from './engines.ts';
import { holdJobs } from './held-jobs.ts';
import { findIsolationOnce } from './isolation.ts';
import type { Lender } from './temporary.ts';

/** So many threads answer the requests of every vault that tests start. */
export const threads = process.env['TEST_THREADS'] ?? '1';

export const managementKey = 'management.key.for.tests.only.000000';

/** All that a private application may do with tokens, in plaintext. */
export const revealEverything = {
  priority: 1,
  container: '/',
  permissions: [
    'token:create',
    'token:read',
    'token:update',
    'token:delete',
    'token:search',
    'token:use',
  ],
  transform: 'reveal',
} as const;

/** A clock that tests move, and whose vaults notice at once that it was moved. */
export class TestClock extends SharedClock {
  readonly #noticing: (() => void)[] = [];

  override advance(milliseconds: number): void {
    super.advance(milliseconds);
    for (const notice of this.#noticing) notice();
  }

  /** Called after each advance, for what looks at the clock only every few seconds. */
  onAdvance(notice: () => void): void {
    this.#noticing.push(notice);
  }
}

/** Starts at the machine's time, so that dates in requests may be written as usual. */
export function createTestClock(): TestClock {
  return new TestClock();
}

/** Stands still between advances, for what is so until an instant and no more from it on. */
export function createStillClock(): TestClock {
  return new TestClock(SharedClock.standingAt(Date.now()).memory);
}

export interface Sent {
  readonly key?: string | undefined;
  /** Serialized as JSON; a string or a Buffer is sent as it is. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Received {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests assert on whatever came back
  readonly body: any;
}

export interface TestVault {
  readonly place: Place;
  readonly url: string;
  readonly clock: TestClock;
  readonly running: Running;
  /** What the operator's log was told. */
  readonly logged: { readonly message: string; readonly fields: LogFields | undefined }[];
  send(method: string, path: string, sent?: Sent): Promise<Received>;
  /** The key of a new application; without rules or permissions one that may do everything. */
  application(request?: Readonly<Record<string, unknown>>): Promise<string>;
  /** Closes it; the same place can be opened again. */
  stop(): Promise<void>;
}

export interface TestVaultOptions {
  /** Where a vault ran before, or a place without tables; an empty vault's tables without. */
  readonly place?: Place;
  readonly clock?: TestClock;
  readonly environment?: Readonly<Record<string, string>>;
  readonly requestTimeoutMs?: number;
  /** In place of what this machine permits. */
  readonly findIsolation?: typeof findIsolation;
}

export function configFor(
  place: Place,
  environment: Readonly<Record<string, string>> = {},
): Config {
  return readConfig({
    STRONGROOM_PORT: '0',
    STRONGROOM_DATA_DIR: place.dataDir,
    STRONGROOM_DATABASE_URL: place.databaseUrl,
    STRONGROOM_BOOTSTRAP_KEY: managementKey,
    // A test that is about limits sets them.
    STRONGROOM_RATE_LIMITS: 'off',
    STRONGROOM_THREADS: threads,
    ...environment,
  });
}

/** Starts a vault that is stopped after the test. */
export async function startVault(
  t: Lender,
  engine: Engine,
  options: TestVaultOptions = {},
): Promise<TestVault> {
  const place = options.place ?? (await engine.migrated(t));
  const clock = options.clock ?? createTestClock();
  const logged: TestVault['logged'] = [];
  const jobs = holdJobs();
  const config = configFor(place, options.environment);
  const running = await serve(config, {
    clock,
    log: recorder(logged),
    jobPause: jobs.pause,
    openStore: openTested,
    findIsolation: options.findIsolation ?? findIsolationOnce,
    ...(options.requestTimeoutMs !== undefined && { requestTimeoutMs: options.requestTimeoutMs }),
  });
  // Looks for what is due, as after a commit. Without, it would do so up to three seconds later.
  clock.onAdvance(() => running.vault.store.epochs.advance('events'));
  // No job of the vault's own comes between the first steps of a test, nor the one that notices stops, or ends roles.
  const others = config.console ? 2 : 1;
  await jobs.ran(jobsOf(running.vault, undefined, running.vault.reactorRuns).length + others);
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= running.stop();
    return stopped;
  };
  t.after(stop);
  const send: TestVault['send'] = (method, path, sent) => request(running.url + path, method, sent);
  return {
    place,
    url: running.url,
    clock,
    running,
    logged,
    send,
    stop,
    application: (request) => createApplication(running.url, request),
  };
}

/** Every operation that asks for a key, as declared, by section. */
export async function sectionsOf({ running, place }: TestVault): Promise<readonly Section[]> {
  return (await createRequestWorker(running.vault, configFor(place))).sections;
}

/** The same as routes. */
export async function routesOf(vault: TestVault): Promise<readonly Route[]> {
  return (await sectionsOf(vault)).flatMap(({ operations }) => operations);
}

/** Creates an application and gives its key; see {@link TestVault.application}. */
export async function createApplication(
  url: string,
  given: Readonly<Record<string, unknown>> = {},
  key = managementKey,
): Promise<string> {
  const scope = 'permissions' in given || 'rules' in given ? {} : { rules: [revealEverything] };
  const body = { name: 'test', type: 'private', ...scope, ...given };
  const created = await request(`${url}/applications`, 'POST', { key, body });
  if (created.status !== 201) throw new Error(`no application: ${created.text}`);
  return created.body.key;
}

/** Connections are kept, and keep no process alive. */
const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });

/** By Node's own client: under the hooks of a test runner `fetch` costs more than what it asks for. */
export async function request(url: string, method: string, sent: Sent = {}): Promise<Received> {
  const { key, body, headers } = sent;
  const raw = typeof body === 'string' || body instanceof Uint8Array;
  const bytes = body === undefined ? undefined : Buffer.from(raw ? body : JSON.stringify(body));
  const mediaType = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
  const { promise, resolve, reject } = Promise.withResolvers<Received>();
  httpRequest(url, {
    method,
    agent,
    headers: {
      ...(key !== undefined && { 'SVC-API-KEY': key }),
      ...(bytes && { 'content-type': mediaType, 'content-length': bytes.length }),
      // A connection stays with its thread; so requests that follow one another meet all of them.
      ...(threads !== '1' && { connection: 'close' }),
      ...headers,
    },
  })
    .on('response', (response) => {
      const chunks: Buffer[] = [];
      response
        .on('data', (chunk) => chunks.push(chunk))
        .on('error', reject)
        .on('end', () => resolve(receivedOf(response, Buffer.concat(chunks).toString())));
    })
    .on('error', reject)
    .end(bytes);
  return promise;
}

function receivedOf({ statusCode = 0, rawHeaders }: IncomingMessage, text: string): Received {
  const headers = new Headers();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    headers.append(rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '');
  }
  const isJson = /[/+]json\b/.test(headers.get('content-type') ?? '');
  return {
    status: statusCode,
    headers,
    text,
    body: isJson && text !== '' ? JSON.parse(text) : undefined,
  };
}

export function recorder(logged: TestVault['logged']): Log {
  const record = (message: string, fields?: LogFields) => void logged.push({ message, fields });
  return { debug: record, info: record, warn: record, error: record };
}
