/** The one way to fail: a closed table of codes, and the error that carries one. */

interface ErrorKind {
  readonly status: number;
  readonly title: string;
}

const validation = 'One or more validation errors occurred.';

/** Every failure that a caller can receive. The code is the last segment of the problem's `type`. */
export const errorKinds = {
  validation_failed: { status: 400, title: validation },
  malformed_request: { status: 400, title: 'Malformed request' },
  invalid_proxy_request: { status: 400, title: 'Invalid proxy request' },
  unauthenticated: { status: 401, title: 'Unauthorized' },
  forbidden: { status: 403, title: 'Forbidden' },
  reauthentication_required: { status: 403, title: 'Reauthentication Required' },
  not_found: { status: 404, title: 'Not Found' },
  method_not_allowed: { status: 405, title: 'Method Not Allowed' },
  request_timeout: { status: 408, title: 'Request Timeout' },
  conflict: { status: 409, title: 'Conflict' },
  gone: { status: 410, title: 'Gone' },
  precondition_failed: { status: 412, title: 'Precondition Failed' },
  body_too_large: { status: 413, title: 'Content Too Large' },
  unsupported_media_type: { status: 415, title: 'Unsupported Media Type' },
  unprocessable: { status: 422, title: 'Unprocessable Content' },
  too_many_requests: { status: 429, title: 'Too Many Requests' },
  headers_too_large: { status: 431, title: 'Request Header Fields Too Large' },
  internal: { status: 500, title: 'Internal Server Error' },
  reactor_bad_request: { status: 400, title: validation },
  reactor_unauthenticated: { status: 401, title: validation },
  reactor_payment_required: { status: 402, title: validation },
  reactor_forbidden: { status: 403, title: validation },
  reactor_unprocessable: { status: 422, title: validation },
  reactor_rate_limited: { status: 429, title: validation },
  reactor_failed: { status: 500, title: validation },
  reactor_unavailable: { status: 503, title: validation },
  integrity: { status: 500, title: 'Stored data failed its integrity check' },
  bad_gateway: { status: 502, title: 'Bad Gateway' },
  gateway_timeout: { status: 504, title: 'Gateway Timeout' },
  loop_detected: { status: 508, title: 'Loop Detected' },
  unavailable: { status: 503, title: 'Service Unavailable' },
  insufficient_storage: { status: 507, title: 'Insufficient Storage' },
  overloaded: { status: 503, title: 'Service Overloaded' },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errorKinds;

/** Messages by attribute, keyed by dotted snake_case path such as `data.number` or `containers[0]`. */
export type AttributeErrors = Readonly<Record<string, readonly string[]>>;

export interface VaultErrorDetails {
  /** What the caller may read. Names attributes, ids and limits; never a value. */
  readonly public: string;
  /** What the operator may read in the log. Never a value either. */
  readonly internal?: string;
  readonly errors?: AttributeErrors;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
  /** The row that was altered in the database, outside the vault. */
  readonly altered?: AlteredRow;
}

export interface AlteredRow {
  /** The name that the log uses. */
  readonly entity: string;
  readonly id: string;
}

export class VaultError extends Error {
  readonly code: ErrorCode;
  readonly public: string;
  readonly errors: AttributeErrors | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly altered: AlteredRow | undefined;

  constructor(code: ErrorCode, details: VaultErrorDetails) {
    super(details.internal ?? details.public, { cause: details.cause });
    this.name = 'VaultError';
    this.code = code;
    this.public = details.public;
    this.errors = details.errors;
    this.headers = details.headers;
    this.altered = details.altered;
  }
}

/** Details for the operator's log: the name of a stored value that was altered outside the vault, and what it was. */
interface IntegrityDetails {
  readonly altered?: AlteredRow;
  readonly cause?: unknown;
}

/** The failure to read a value that the vault cannot have written. The caller receives no details. */
export function integrityError(internal: string, details: IntegrityDetails = {}): VaultError {
  const shown = 'A stored value failed its integrity check.';
  return new VaultError('integrity', { public: shown, internal, ...details });
}

/** The code with which the system or Node names a failure, such as `ENOENT`. Unlike the message, it quotes nothing. */
export function systemCodeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}

export function isIntegrityError(error: unknown): error is VaultError {
  return error instanceof VaultError && error.code === 'integrity';
}

/** A 400 about one attribute, or about several when a map is given. */
export function invalid(path: string, message: string): VaultError;
export function invalid(errors: AttributeErrors): VaultError;
export function invalid(first: string | AttributeErrors, message = ''): VaultError {
  const errors = typeof first === 'string' ? { [first]: [message] } : first;
  return new VaultError('validation_failed', {
    public: 'The request has attributes that are not valid; see errors.',
    errors,
  });
}

/**
 * The reason for the operator's log. For an error that is not ours, it includes only the name and the place: messages
 * may hold a value, such as that of JSON.parse, which quotes its input.
 */
export function reasonOf(error: unknown): string {
  if (error instanceof VaultError) return error.message;
  if (!(error instanceof Error)) return 'a non-Error value was thrown';
  const frames = (error.stack ?? '').split('\n').filter((line) => line.startsWith('    at '));
  return [error.name, ...frames.slice(0, 8).map((line) => line.trim())].join(' ');
}
