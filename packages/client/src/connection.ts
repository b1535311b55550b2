/** The connection to a vault: each request with its key, its time, its retries, and its failure as a typed error. */
import { conceal } from './conceal.ts';
import {
  ApiError,
  ConfigurationError,
  ConnectionError,
  NotAVaultError,
  refusal,
  StrongroomError,
  TimeoutError,
  VersionError,
} from './errors.ts';
import { tagged } from './etag.ts';
import { after, chunksOf } from './lines.ts';
import { retryAfterOf, waitMs } from './retries.ts';
import { apiVersion, type OperationId, type Operations, operations, type Problem } from './wire.ts';

/**
 * How to reach a vault.
 *
 * @example
 * ```ts
 * import { Strongroom, type StrongroomOptions } from '@strongroom/client';
 *
 * const options: StrongroomOptions = { url, apiKey, timeout: 10_000, retries: 3 };
 * const patient = new Strongroom(options);
 * ```
 */
export interface StrongroomOptions {
  /** The address of the vault, such as `https://vault.example.com`. */
  readonly url: string | URL;
  /** The key of an application, or of a session. */
  readonly apiKey: string;
  /** How many milliseconds each attempt has, its response included: 30,000 unless given. */
  readonly timeout?: number | undefined;
  /** How often a request is sent again when it can succeed then: 2 unless given. */
  readonly retries?: number | undefined;
  /** The prefix of the service's headers, where the operator changed it: `SVC` unless given. */
  readonly headerPrefix?: string | undefined;
  /**
   * True where the key may be sent to an `http` address beyond this machine, such as on a network that is protected by
   * other means. Without it, such a `url` is refused.
   */
  readonly allowHttp?: boolean | undefined;
  /** In place of the global `fetch`. */
  readonly fetch?: typeof fetch | undefined;
  /** Called after each request, for logs and metrics. */
  readonly onResponse?: ((facts: ResponseFacts) => void) | undefined;
}

/**
 * What is known of a request that has ended, without a value.
 *
 * @example
 * ```ts
 * import { type ResponseFacts, Strongroom } from '@strongroom/client';
 *
 * const note = (facts: ResponseFacts) => console.log(facts.operation, facts.status, facts.traceId);
 * const noted = new Strongroom({ url, apiKey, onResponse: note });
 * ```
 */
export interface ResponseFacts {
  /** The name of the operation in the OpenAPI document of the vault. */
  readonly operation: string;
  readonly status: number;
  /** Names the request in the log of the vault. */
  readonly traceId: string | undefined;
  /** The tag of the state that the request read or made, of what has one: see {@link etagOf}. */
  readonly etag?: string;
  /** 1, and one more for each retry. */
  readonly attempts: number;
}

/**
 * Options of one call, in the place of those of the client.
 *
 * @example
 * ```ts
 * import type { RequestOptions } from '@strongroom/client';
 *
 * const options: RequestOptions = { timeout: 5_000, signal: AbortSignal.timeout(8_000) };
 * await vault.tokens.get('order-4711-card', options);
 * ```
 */
export interface RequestOptions {
  /** How many milliseconds each attempt has. */
  readonly timeout?: number | undefined;
  /** How often the request is sent again when it can succeed then. */
  readonly retries?: number | undefined;
  /** Ends the call; its reason is thrown. */
  readonly signal?: AbortSignal | undefined;
  /** Of requests that change something: a random one unless given. The vault does what has one key once. */
  readonly idempotencyKey?: string | undefined;
  /**
   * Of a request that changes one thing: the tag of its state, see {@link etagOf}. Where it is in another state by now,
   * the vault changes nothing, and a `ConflictError` is thrown. Given without a tag, it is a `ConfigurationError`.
   */
  readonly ifMatch?: string | undefined;
  /** Names the request in the log of the vault, which chooses one unless it is given. */
  readonly traceId?: string | undefined;
}

/** What an operation takes; what it does not take is absent. */
export type Input<Id extends OperationId> = {
  [Part in 'params' | 'query' | 'body' as Operations[Id][Part] extends undefined
    ? never
    : Part]: Operations[Id][Part];
};

/** The body of a response, as the vault sends it. */
export type Reply<Id extends OperationId> = Operations[Id]['reply'];

/** What is sent, once or several times. */
export interface Outgoing {
  readonly operation: string;
  readonly method: string;
  /** From the address of the vault on. */
  readonly path: string;
  readonly headers?: Headers;
  readonly body?: NonNullable<RequestInit['body']> | undefined;
  /** Whether sending it again has no second effect. */
  readonly isRepeatable: boolean;
  readonly init?: RequestInit;
  /** True for a response that is not the vault's own. */
  readonly isForeign?: (response: Response) => boolean;
}

/** Reads the response while the attempt has time. */
type ReadResponse<Result> = (response: Response) => Promise<Result> | Result;

/** Sent without an idempotency key, because the vault would store a response that may hold values. */
const reading: ReadonlySet<string> = new Set([
  'searchTokens',
  'detokenize',
  'explainAccess',
  'verifyBankAccount',
  'createTokens',
]);

/** The caller decides the form of these responses. */
const ofAnyForm: ReadonlySet<string> = new Set([
  'tokenize',
  'detokenize',
  'react',
  'getReactorResult',
]);

const keyKinds: Readonly<Record<string, string>> = {
  pub: 'public',
  pvt: 'private',
  mgt: 'management',
  ses: 'session',
};

const timeoutDefault = 30_000;
const retriesDefault = 2;
const mergePatch = 'application/merge-patch+json';
/** Names the request for the release of the vault. */
const ofVersion = 'check';
const problemType = 'urn:strongroom:problem:';

/** Sends requests to one vault with one key. It shows neither to an inspection. */
export class Connection {
  /** Without a slash at the end. */
  readonly #url: string;
  readonly #apiKey: string;
  readonly #options: StrongroomOptions;
  readonly #fetch: typeof fetch;

  /** @throws ConfigurationError for an address or a key that cannot be one. */
  constructor(options: StrongroomOptions) {
    this.#url = urlOf(options);
    this.#apiKey = apiKeyOf(options.apiKey);
    this.#options = options;
    this.#fetch = options.fetch ?? ((...request) => fetch(...request));
  }

  /** The name of a header of the service: `api-key` as `SVC-API-KEY`. */
  header(name: string): string {
    return `${this.#options.headerPrefix ?? 'SVC'}-${name}`;
  }

  /** Performs an operation, and gives the body of its response with its secrets concealed. */
  async call<Id extends OperationId>(
    id: Id,
    input: Input<Id>,
    options: RequestOptions = {},
  ): Promise<Reply<Id>> {
    return this.send(
      this.prepare(id, input, options),
      async (response) => {
        const text = await response.text();
        const mediaType = response.headers.get('content-type') ?? '';
        const etag = response.headers.get('etag');
        if (text === '') return (etag === null ? undefined : tagged({}, etag)) as Reply<Id>;
        if (mediaType.startsWith('text/plain')) return text as Reply<Id>;
        const body = conceal(this.#parse(text, response, id), ofAnyForm.has(id));
        return tagged(body, etag) as Reply<Id>;
      },
      options,
    );
  }

  /** @param body lines, in the place of `input.body`. */
  prepare<Id extends OperationId>(
    id: Id,
    input: Input<Id>,
    options: RequestOptions = {},
    body?: string,
  ): Outgoing {
    const { idempotencyKey, ifMatch } = options;
    const given = input as { params?: object; query?: object; body?: unknown };
    const [method = '', pattern = ''] = operations[id].split(' ');
    const params = new Map(Object.entries(given.params ?? {}));
    const path = pattern.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = params.get(name);
      // As a segment of the path, dots alone would lead to another path.
      if (typeof value !== 'string' || /^\.{0,2}$/.test(value)) {
        throw new ConfigurationError(`${id} needs the ${name} as a string, as the vault gave it.`);
      }
      return encodeURIComponent(value);
    });
    const headers = new Headers();
    const changes = /^P/.test(method);
    if (changes && !reading.has(id)) {
      headers.set(this.header('IDEMPOTENCY-KEY'), idempotencyKey ?? randomId());
    }
    if ('ifMatch' in options) {
      if (!ifMatch) {
        throw new ConfigurationError(
          `${id} has an empty ifMatch, so it would change any state. Read what it changes, and give the etagOf that.`,
        );
      }
      headers.set('if-match', ifMatch);
    }
    if (body !== undefined) headers.set('content-type', 'application/x-ndjson');
    else if (given.body !== undefined) {
      headers.set('content-type', method === 'PATCH' ? mergePatch : 'application/json');
    }
    return {
      operation: id,
      method,
      path: path + queryOf(given.query),
      headers,
      body: body ?? (given.body === undefined ? undefined : JSON.stringify(given.body)),
      isRepeatable: true,
    };
  }

  /**
   * Sends it, again where that can succeed, and gives what `read` makes of the response.
   *
   * @throws StrongroomError, or the reason of the signal.
   */
  async send<Result>(
    outgoing: Outgoing,
    read: ReadResponse<Result>,
    options: RequestOptions = {},
  ): Promise<Result> {
    const retries = this.retriesOf(options);
    let mayHaveHappened = false;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(outgoing, read, options, attempt);
      } catch (error) {
        if (!(error instanceof StrongroomError)) throw error;
        const isGone = outgoing.method === 'DELETE' && error.code === 'not_found';
        // An earlier attempt deleted it, and its response was lost.
        if (isGone && mayHaveHappened) return undefined as Result;
        const wait = waitMs(error, attempt);
        if (wait === undefined || attempt > retries || !outgoing.isRepeatable) throw error;
        mayHaveHappened ||= !(error instanceof ApiError) || error.status >= 500;
        await pause(wait, options.signal);
      }
    }
  }

  /** How often a request is sent again. */
  retriesOf({ retries }: RequestOptions): number {
    return retries ?? this.#options.retries ?? retriesDefault;
  }

  /** Sends it, and gives the body of the response as it arrives. @throws as {@link send}. */
  async open(outgoing: Outgoing, options: RequestOptions = {}): Promise<AsyncIterable<Uint8Array>> {
    const { signal, timeout = this.#options.timeout ?? timeoutDefault } = options;
    const body = await this.send(outgoing, (response) => response.body, options);
    return chunksOf(body, { signal, timeout });
  }

  async #attempt<Result>(
    outgoing: Outgoing,
    read: ReadResponse<Result>,
    options: RequestOptions,
    attempts: number,
  ): Promise<Result> {
    const { operation, method, path, body, init, isForeign } = outgoing;
    const { signal, traceId } = options;
    const timeout = options.timeout ?? this.#options.timeout ?? timeoutDefault;
    signal?.throwIfAborted();
    const headers = this.#headersOf(outgoing, traceId);
    const control = new AbortController();
    const abort = () => control.abort(signal?.reason);
    signal?.addEventListener('abort', abort);
    let isLate = false;
    let hasResponded = false;
    const timer = after(timeout, () => {
      isLate = true;
      control.abort();
    });
    try {
      const response = await this.#fetch(this.#url + path, {
        ...init,
        method,
        headers,
        ...(body != null && { body }),
        // A browser, and others, would send the key on to wherever a redirect leads.
        redirect: 'manual',
        signal: control.signal,
      });
      hasResponded = true;
      const etag = response.headers.get('etag');
      this.#options.onResponse?.({
        operation,
        status: response.status,
        traceId: this.#traceOf(response),
        attempts,
        ...(etag !== null && { etag }),
      });
      if (!isForeign?.(response) && !response.ok) throw await this.#refusalOf(response, operation);
      return await read(response);
    } catch (error) {
      if (error instanceof StrongroomError) throw error;
      signal?.throwIfAborted();
      if (isLate) {
        throw new TimeoutError(
          `${operation} got no response from ${this.#url} within ${timeout} ms. Give it more time with ` +
            'the option timeout, or check that the vault is not overloaded.',
        );
      }
      throw this.#unreachable(
        error,
        hasResponded ? 'lost its response from' : 'cannot reach',
        operation,
      );
    } finally {
      clearTimeout(timer);
      // The caller reads the body of a response that is not the vault's own, and may still give up.
      if (isForeign === undefined) signal?.removeEventListener('abort', abort);
    }
  }

  #headersOf({ headers: given }: Outgoing, traceId: string | undefined): Headers {
    const headers = new Headers(given);
    headers.set(this.header('API-KEY'), this.#apiKey);
    if (traceId !== undefined) {
      if (!/^[\x21-\x7e]{1,100}$/.test(traceId)) {
        throw new ConfigurationError('traceId must have 1 to 100 visible characters of ASCII.');
      }
      headers.set(this.header('TRACE-ID'), traceId);
    }
    return headers;
  }

  #traceOf({ headers }: Response): string | undefined {
    return headers.get(this.header('TRACE-ID')) ?? undefined;
  }

  /** Without the message of `error`: a parser quotes what it reads, and `fetch` what it was given. */
  #unreachable(error: unknown, what: string, operation: string): ConnectionError {
    const { cause, code = (cause as { code?: unknown } | undefined)?.code } = error as {
      cause?: unknown;
      code?: unknown;
    };
    const known = typeof code === 'string' && /^[A-Z_0-9]+$/.test(code) ? ` (${code})` : '';
    return new ConnectionError(
      `${operation} ${what} the vault at ${this.#url}${known}. Check that it runs there, that the option ` +
        'url has its scheme and port, and that a certificate and a firewall allow the connection.',
    );
  }

  #parse(text: string, response: Response, operation: string): unknown {
    try {
      return JSON.parse(text);
    } catch {
      throw this.#notAVault(response, operation);
    }
  }

  #notAVault({ status, type, headers }: Response, operation: string): NotAVaultError {
    const isRedirect = type === 'opaqueredirect' || (status >= 300 && status < 400);
    const what = isRedirect
      ? 'redirects to another address'
      : `responds to ${operation} with status ${status} and ${headers.get('content-type') ?? 'no type'}, ` +
        'as no vault does';
    return new NotAVaultError(
      `The server at ${this.#url} ${what}. Set the option url to the address of the vault itself.`,
    );
  }

  async #refusalOf(response: Response, operation: string): Promise<StrongroomError> {
    // The response to HEAD has no body.
    const ofHead = this.#traceOf(response) && { type: `${problemType}http`, title: 'Refused' };
    const body: unknown = await response.json().catch(() => (response.body ? undefined : ofHead));
    const { proxy_error = body } = (body ?? {}) as { proxy_error?: unknown };
    const given = { ...(proxy_error as Partial<Problem> | undefined) };
    const { type, title = '', status = response.status, detail = title } = given;
    if (typeof type !== 'string' || !type.startsWith(problemType)) {
      return this.#notAVault(response, operation);
    }
    const problem: Problem = { ...given, type, title, status, detail };
    const isNoRoute = status === 404 && /\broute\b/.test(detail);
    if (operation !== ofVersion && (isNoRoute || type === `${problemType}method_not_allowed`)) {
      return this.#noSuchRoute(operation);
    }
    return refusal({
      problem,
      traceId: this.#traceOf(response),
      retryAfter: retryAfterOf(response.headers.get('retry-after')),
      advice: this.#adviceFor(status, operation),
    });
  }

  #adviceFor(status: number, operation: string): string | undefined {
    if (status === 401) {
      return 'Check that the option apiKey is a whole key of this vault that was not deleted.';
    }
    if (status !== 403) return undefined;
    const kind = keyKinds[/^key_[a-z]+_([a-z]+)_/.exec(this.#apiKey)?.[1] ?? ''];
    const kinds = operations[operation as OperationId]?.split(' ').slice(2) ?? [];
    if (kind === undefined || kinds.length === 0 || kinds.includes(kind)) return undefined;
    return `${operation} needs a ${kinds.join(' or ')} key, and this client has a ${kind} key.`;
  }

  /** The vault does not know an operation of this client. Under a wrong path, it does not know its version either. */
  async #noSuchRoute(operation: string): Promise<StrongroomError> {
    const version = await this.version().catch(() => apiVersion);
    if (version !== apiVersion) return this.#otherVersion(version, operation);
    return new NotAVaultError(
      `The vault does not have ${operation} at ${this.#url}. Set the option url to the address of the vault ` +
        'without a path, unless a server in front of it adds one.',
    );
  }

  #otherVersion(version: string, operation: string): VersionError {
    return new VersionError(
      `The vault at ${this.#url} has the version ${version}, without ${operation}. This client is for ` +
        `${apiVersion}: update the vault, or install @strongroom/client@${version}.`,
      version,
    );
  }

  /** The release of the vault. @throws NotAVaultError where none responds. */
  async version(options?: RequestOptions): Promise<string> {
    const outgoing = {
      operation: ofVersion,
      method: 'GET',
      path: '/openapi.json',
      isRepeatable: true,
    };
    return this.send(
      outgoing,
      async (response) => {
        const description: unknown = await response.json().catch(() => undefined);
        const info = (description as { info?: { title?: unknown; version?: unknown } } | undefined)
          ?.info;
        if (info?.title !== 'Strongroom') throw this.#notAVault(response, ofVersion);
        return String(info.version);
      },
      options,
    );
  }

  /** @throws VersionError for a vault whose interface is another one. */
  requireVersion(version: string): void {
    if (interfaceOf(version) !== interfaceOf(apiVersion))
      throw this.#otherVersion(version, 'this interface');
  }
}

/** What may not change within releases: the first number, or before 1.0 the first two. */
function interfaceOf(version: string): string {
  const [major = '', minor] = version.split('.');
  return major === '0' ? `0.${minor}` : major;
}

function urlOf({ url: given, allowHttp }: StrongroomOptions): string {
  let url: URL | undefined;
  try {
    url = new URL(String(given));
  } catch {
    // Refused below, with what has no scheme.
  }
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new ConfigurationError(
      'url must be the address of the vault with its scheme, such as https://vault.example.com.',
    );
  }
  if (url.username !== '' || url.search !== '' || url.hash !== '') {
    throw new ConfigurationError('url must have no user, query or fragment; the key is apiKey.');
  }
  const isLocal = /^(?:localhost|127\.0\.0\.1|\[::1\])$/.test(url.hostname);
  if (url.protocol === 'http:' && !isLocal && allowHttp !== true) {
    throw new ConfigurationError(
      'url must be https, because the key is sent there. To send it over plain HTTP, give allowHttp.',
    );
  }
  return url.href.replace(/\/+$/, '');
}

function apiKeyOf(key: unknown): string {
  if (typeof key === 'string' && /^[\x21-\x7e]+$/.test(key)) return key;
  throw new ConfigurationError(
    'apiKey must be the key of an application, without spaces. Is the variable set that holds it?',
  );
}

/** Lists repeat their name, and maps have it before each of theirs. */
function queryOf(query: object = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null) continue;
    if (Array.isArray(value)) for (const one of value) search.append(name, String(one));
    else if (typeof value !== 'object') search.set(name, String(value));
    else for (const [key, one] of Object.entries(value)) search.set(`${name}[${key}]`, String(one));
  }
  const text = search.toString();
  return text === '' ? '' : `?${text}`;
}

/** A UUID of version 4, also in pages that were not loaded through TLS, where `crypto.randomUUID` is absent. */
export function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const hex = Array.from(bytes, (byte, at) => {
    const fixed = at === 6 ? (byte & 0x0f) | 0x40 : at === 8 ? (byte & 0x3f) | 0x80 : byte;
    return fixed.toString(16).padStart(2, '0');
  }).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** @throws the reason of the signal. */
export function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      settle();
    };
    const abort = () => end(() => reject(signal?.reason));
    const timer = setTimeout(() => end(resolve), milliseconds);
    signal?.addEventListener('abort', abort);
  });
}
