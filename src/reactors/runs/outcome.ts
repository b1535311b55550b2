/** The outcome of running code, for its caller and for the log. */
import { type ErrorCode, VaultError } from '../../base/errors.ts';
import type { Json } from '../../base/json.ts';
import type {
  CodeError,
  CodeErrorName,
  CodeLogLine,
  EndReason,
  SandboxResult,
} from '../sandbox/sandbox.ts';

/** A response that the code creates: its status, headers, and body. */
export interface CodeResponse {
  /** At least 200. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Json | undefined;
}

export type CodeOutcome =
  | { readonly kind: 'returned'; readonly value: Json }
  /** The code threw `CustomHttpResponseError`. */
  | { readonly kind: 'responded'; readonly response: CodeResponse }
  | { readonly kind: 'failed'; readonly failure: CodeFailure };

export interface CodeFailure {
  readonly error: VaultError;
  /** The code refused explicitly, with a class of the error package. */
  readonly isOwn?: boolean;
  /** For log entries: a fixed string, or the name of a class of the error package. */
  readonly reason: string;
  /** Appears only in the call's log, which the tenant reads. */
  readonly cause: string | undefined;
}

const codes: Readonly<Record<CodeErrorName, ErrorCode>> = {
  BadRequestError: 'reactor_bad_request',
  InvalidReactorConfigurationError: 'reactor_bad_request',
  AuthenticationError: 'reactor_unauthenticated',
  InvalidPaymentMethodError: 'reactor_payment_required',
  AuthorizationError: 'reactor_forbidden',
  InvalidReactorFormulaError: 'reactor_unprocessable',
  RateLimitError: 'reactor_rate_limited',
  ReactorRuntimeError: 'reactor_failed',
  ServiceUnavailableError: 'reactor_unavailable',
  CustomHttpResponseError: 'reactor_failed',
  other: 'reactor_failed',
};

const runtimeError = 'Reactor Runtime Error';

/** For a line of the log. An attacker who controls the process may send a megabyte. */
const causeLengthMax = 8_000;

export function outcomeOf(result: SandboxResult): CodeOutcome {
  if (result.kind === 'returned') {
    return { kind: 'returned', value: (result.value ?? null) as Json };
  }
  if (result.kind === 'ended') return { kind: 'failed', failure: ended[result.reason]() };
  const { response, name } = result.error;
  if (response && response.status >= 200) {
    const { status, headers, body } = response;
    return { kind: 'responded', response: { status, headers, body: body as Json | undefined } };
  }
  return { kind: 'failed', failure: response ? unsendable() : thrown(name, result.error) };
}

/** Errors of the error package are meant for the caller. Any other error may quote a value, as JSON.parse does. */
function thrown(name: CodeErrorName, { detail, errors }: CodeError): CodeFailure {
  const own = name !== 'other';
  const error = new VaultError(codes[name], {
    public: own ? detail : runtimeError,
    internal: `the code threw ${own ? name : 'an error of its own'}`,
    errors: own ? errors : { error: ['The code failed; the log of the call says why.'] },
  });
  const cause = Object.entries(errors).flatMap(([path, texts]) =>
    texts.map((text) => (path === 'error' ? text : `${path}: ${text}`)),
  );
  return {
    error,
    isOwn: own,
    reason: own ? name : runtimeError,
    cause: own ? undefined : cause.join('\n').slice(0, causeLengthMax),
  };
}

function unsendable(): CodeFailure {
  return failure('the status of a response must be from 200 to 599');
}

/** @param what describes the failure of the code, without any values. */
export function failure(what: string): CodeFailure {
  const error = new VaultError('reactor_failed', {
    public: runtimeError,
    internal: `code: ${what}`,
    errors: { error: [`The code did not end as it should: ${what}.`] },
  });
  return { error, reason: what, cause: what };
}

const retryAfter = { headers: { 'retry-after': '1' } };

const refused = (code: ErrorCode, detail: string) => (): CodeFailure => ({
  error: new VaultError(code, { public: detail, ...retryAfter }),
  reason: 'it was not run',
  cause: undefined,
});

const ended: Readonly<Record<EndReason, () => CodeFailure>> = {
  timeout: () => failure('it took longer than its time limit'),
  memory: () => failure('it used more than its memory limit'),
  crashed: () => failure('the process in which it ran crashed'),
  'input too large': () => ({
    error: new VaultError('body_too_large', {
      public: 'What the code is given must have at most 1 MB.',
    }),
    reason: 'its input is too large',
    cause: undefined,
  }),
  'result too large': () => failure('its result has more than 1 MB'),
  'result not JSON': () => failure('its result is not JSON'),
  'tenant busy': refused(
    'too_many_requests',
    'Too many calls of this tenant run code at once; try again.',
  ),
  'pool full': refused('too_many_requests', 'Too many calls run code at once; try again.'),
  'no process': refused(
    'overloaded',
    'The system has no room for a process that could run the code; try again.',
  ),
  stopped: refused('unavailable', 'The vault stops; try again.'),
};

/** The log lines of the code, followed by the reason for which it ended. */
export function linesOf(result: SandboxResult, outcome: CodeOutcome, at: number): CodeLogLine[] {
  const cause = outcome.kind === 'failed' ? outcome.failure.cause : undefined;
  return [
    ...result.log,
    ...(cause === undefined ? [] : [{ level: 'error', at, text: cause } as const]),
  ];
}
