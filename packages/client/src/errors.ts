/** Every failure, as an error that says what to do. None holds a value: no body, no data, no key. */
import type { Problem } from './wire.ts';

/**
 * The failure of a call. All errors of this package are of this class, apart from the reason of an `AbortSignal`, which
 * is thrown as it is.
 *
 * @example
 * ```ts
 * import { StrongroomError } from '@strongroom/client';
 *
 * try {
 *   await vault.tokens.get('no-such-token');
 * } catch (error) {
 *   if (error instanceof StrongroomError) console.log(error.code, error.message);
 * }
 * ```
 */
export class StrongroomError extends Error {
  /** The kind of failure, for programs: `not_found`, `timeout`, `old_signature`. */
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }

  /** The name of the class, also where a bundler shortens class names. */
  override get name(): string {
    return 'StrongroomError';
  }

  /**
   * What a log has of it: also the name and the message, which `JSON.stringify` leaves out of other errors.
   *
   * @example
   * ```ts
   * await vault.tokens.get('no-such-token').catch((error) => console.log(JSON.stringify(error)));
   * ```
   */
  toJSON(): object {
    return { name: this.name, message: this.message, ...(this as object) };
  }
}

/**
 * The client was given something that cannot work: an address that is not one, no key, two options that exclude each
 * other.
 *
 * @example
 * ```ts
 * import { ConfigurationError, Strongroom } from '@strongroom/client';
 *
 * try {
 *   new Strongroom({ url: 'vault.example.com', apiKey: 'key_test_pvt_…' });
 * } catch (error) {
 *   if (error instanceof ConfigurationError) console.log(error.message);
 * }
 * ```
 */
export class ConfigurationError extends StrongroomError {
  constructor(message: string) {
    super('configuration', message);
  }

  override get name(): string {
    return 'ConfigurationError';
  }
}

/**
 * No response came: nothing listens at the address, its name is unknown, TLS failed or the connection broke.
 *
 * @example
 * ```ts
 * import { ConnectionError, Strongroom } from '@strongroom/client';
 *
 * const nowhere = new Strongroom({ url: 'http://127.0.0.1:1', apiKey, retries: 0 });
 * try {
 *   await nowhere.tokens.get('order-4711-card');
 * } catch (error) {
 *   if (error instanceof ConnectionError) console.log(error.message);
 * }
 * ```
 */
export class ConnectionError extends StrongroomError {
  constructor(message: string, code = 'connection') {
    super(code, message);
  }

  override get name(): string {
    return 'ConnectionError';
  }
}

/**
 * The response took longer than the option `timeout`. The request may have taken effect.
 *
 * @example
 * ```ts
 * import { TimeoutError } from '@strongroom/client';
 *
 * try {
 *   await vault.tokens.get('order-4711-card', { timeout: 10_000 });
 * } catch (error) {
 *   if (error instanceof TimeoutError) console.log('Try again later');
 * }
 * ```
 */
export class TimeoutError extends ConnectionError {
  constructor(message: string) {
    super(message, 'timeout');
  }

  override get name(): string {
    return 'TimeoutError';
  }
}

/**
 * A stream of lines ended before its end. `done` says how far it came.
 *
 * @example
 * ```ts
 * import { StreamError } from '@strongroom/client';
 *
 * try {
 *   for await (const token of vault.tokens.export()) console.log(token.id);
 * } catch (error) {
 *   if (error instanceof StreamError) console.log(`It broke after ${error.done} tokens`);
 * }
 * ```
 */
export class StreamError extends StrongroomError {
  /** How many tokens were received, or how many lines have a result: those before the next one to send. */
  readonly done: number;
  /** What the vault said, where it ended the stream itself. */
  readonly problem: Problem | undefined;

  constructor(message: string, done: number, problem?: Problem) {
    super('stream', message);
    this.done = done;
    this.problem = problem;
  }

  override get name(): string {
    return 'StreamError';
  }
}

/**
 * What responds at the address is no vault: a page, a proxy in front of it, another service.
 *
 * @example
 * ```ts
 * import { NotAVaultError } from '@strongroom/client';
 *
 * try {
 *   await vault.check();
 * } catch (error) {
 *   if (error instanceof NotAVaultError) console.log(error.message);
 * }
 * ```
 */
export class NotAVaultError extends StrongroomError {
  constructor(message: string) {
    super('not_a_vault', message);
  }

  override get name(): string {
    return 'NotAVaultError';
  }
}

/**
 * The vault is of a release that does not have what this client asks for.
 *
 * @example
 * ```ts
 * import { VersionError } from '@strongroom/client';
 *
 * try {
 *   await vault.check();
 * } catch (error) {
 *   if (error instanceof VersionError) console.log(error.vaultVersion);
 * }
 * ```
 */
export class VersionError extends StrongroomError {
  /** The release of the vault. */
  readonly vaultVersion: string;

  constructor(message: string, vaultVersion: string) {
    super('version', message);
    this.vaultVersion = vaultVersion;
  }

  override get name(): string {
    return 'VersionError';
  }
}

/** What is known of a refused request. */
export interface RefusalFacts {
  /** The problem document (RFC 9457). */
  readonly problem: Problem;
  /** Names the request in the log of the vault. */
  readonly traceId: string | undefined;
  /** After how many seconds to try again, where the vault said so. */
  readonly retryAfter: number | undefined;
  /** What the caller can do, where it is known. */
  readonly advice?: string | undefined;
}

/**
 * The vault refused the request, or failed. It has the problem document and the trace id; its subclasses have one
 * status each.
 *
 * @example
 * ```ts
 * import { ApiError } from '@strongroom/client';
 *
 * try {
 *   await vault.tokens.create({ type: 'card', data: { number: '4242' } });
 * } catch (error) {
 *   if (error instanceof ApiError) console.log(error.status, error.problem.errors, error.traceId);
 * }
 * ```
 */
export class ApiError extends StrongroomError {
  /** The HTTP status. */
  readonly status: number;
  /** The problem document (RFC 9457), with messages by attribute in `errors`. */
  readonly problem: Problem;
  /** Names the request in the log of the vault. */
  readonly traceId: string | undefined;
  /** After how many seconds to try again, where the vault said so. */
  readonly retryAfter: number | undefined;

  constructor({ problem, traceId, retryAfter, advice }: RefusalFacts) {
    const { type, status } = problem;
    // The code of a reactor writes such a problem itself, and may put a value into it.
    const isRaised = type.includes(':reactor_');
    const trace = traceId === undefined ? '' : ` [trace id ${traceId}]`;
    const named = Object.entries(problem.errors ?? {}).map(
      ([name, messages]) => `${name} ${messages.join(', ')}`,
    );
    const reasons = named.length === 0 ? '' : ` (${named.join('; ')})`;
    const said = isRaised ? 'The code of the reactor raised an error.' : problem.detail + reasons;
    super(
      type.slice(type.lastIndexOf(':') + 1),
      [said, ...(advice === undefined ? [] : [advice])].join(' ') + trace,
    );
    this.status = status;
    this.problem = problem;
    this.traceId = traceId;
    this.retryAfter = retryAfter;
    if (isRaised) Object.defineProperty(this, 'problem', { value: problem, enumerable: false });
  }

  override get name(): string {
    return 'ApiError';
  }
}

/**
 * 400: an attribute is missing or not valid. `problem.errors` has the messages by attribute.
 *
 * @example
 * ```ts
 * import { ValidationError } from '@strongroom/client';
 *
 * try {
 *   await vault.tokens.create({ type: 'card', data: { number: '4242' } });
 * } catch (error) {
 *   if (error instanceof ValidationError) console.log(error.problem.errors);
 * }
 * ```
 */
export class ValidationError extends ApiError {
  override get name(): string {
    return 'ValidationError';
  }
}

/**
 * 401: the key is unknown, was deleted, or has expired.
 *
 * @example
 * ```ts
 * import { AuthenticationError } from '@strongroom/client';
 *
 * try {
 *   await vault.tokens.get('order-4711-card');
 * } catch (error) {
 *   if (error instanceof AuthenticationError) console.log('Create another key');
 * }
 * ```
 */
export class AuthenticationError extends ApiError {
  override get name(): string {
    return 'AuthenticationError';
  }
}

/**
 * 403: the key may not do this. Where a key of its kind never may, the message names the kind that is needed.
 *
 * @example
 * ```ts
 * import { PermissionError } from '@strongroom/client';
 *
 * try {
 *   await vault.applications.create({
 *   name: 'Checkout',
 *   type: 'private',
 *   permissions: ['token:create'],
 * });
 * } catch (error) {
 *   if (error instanceof PermissionError) console.log(error.message);
 * }
 * ```
 */
export class PermissionError extends ApiError {
  override get name(): string {
    return 'PermissionError';
  }
}

/**
 * 404: there is nothing with this id, or it has expired.
 *
 * @example
 * ```ts
 * import { NotFoundError } from '@strongroom/client';
 *
 * try {
 *   await vault.tokens.get('no-such-token');
 * } catch (error) {
 *   if (error instanceof NotFoundError) console.log('It is gone');
 * }
 * ```
 */
export class NotFoundError extends ApiError {
  override get name(): string {
    return 'NotFoundError';
  }
}

/**
 * 409: the id is taken, or something changed at the same time. 412: it changed since the state that `ifMatch` names.
 *
 * @example
 * ```ts
 * import { ConflictError } from '@strongroom/client';
 *
 * try {
 *   await vault.tokens.create({ id: 'order-4711', type: 'token', data: 'Ada Lovelace' });
 *   await vault.tokens.create({ id: 'order-4711', type: 'token', data: 'Grace Hopper' });
 * } catch (error) {
 *   if (error instanceof ConflictError) console.log('The id is taken');
 * }
 * ```
 */
export class ConflictError extends ApiError {
  override get name(): string {
    return 'ConflictError';
  }
}

/**
 * 429: too many requests, after as many retries as the options allow. `retryAfter` has seconds.
 *
 * @example
 * ```ts
 * import { RateLimitError } from '@strongroom/client';
 *
 * try {
 *   await vault.tokens.get('order-4711-card');
 * } catch (error) {
 *   if (error instanceof RateLimitError) console.log(`Again in ${error.retryAfter} s`);
 * }
 * ```
 */
export class RateLimitError extends ApiError {
  override get name(): string {
    return 'RateLimitError';
  }
}

/**
 * 500 and above: the vault failed, or is overloaded. The request may have taken effect.
 *
 * @example
 * ```ts
 * import { ServerError } from '@strongroom/client';
 *
 * try {
 *   await vault.tokens.get('order-4711-card');
 * } catch (error) {
 *   if (error instanceof ServerError) console.log(`Name this in questions: ${error.traceId}`);
 * }
 * ```
 */
export class ServerError extends ApiError {
  override get name(): string {
    return 'ServerError';
  }
}

const classes: Readonly<Record<number, typeof ApiError>> = {
  400: ValidationError,
  401: AuthenticationError,
  403: PermissionError,
  404: NotFoundError,
  409: ConflictError,
  412: ConflictError,
  429: RateLimitError,
};

/** The error of the class for the status. */
export function refusal(facts: RefusalFacts): ApiError {
  const { status } = facts.problem;
  const Refusal = classes[status] ?? (status >= 500 ? ServerError : ApiError);
  return new Refusal(facts);
}

/**
 * The signature of a webhook is missing, old or wrong: do not act on the event.
 *
 * @example
 * ```ts
 * import { WebhookSignatureError, verifyWebhook } from '@strongroom/client';
 *
 * try {
 *   await verifyWebhook({ body: '{}', headers: {}, secret });
 * } catch (error) {
 *   if (error instanceof WebhookSignatureError) console.log(error.code); // missing_signature
 * }
 * ```
 */
export class WebhookSignatureError extends StrongroomError {
  override get name(): string {
    return 'WebhookSignatureError';
  }
}
